"""The predicted token limit of a base equals the loaded model's."""

import json
from pathlib import Path
from typing import Any

import pytest
from hub_cache import tiny_bert, tiny_roberta, tiny_sentence_transformer
from wording import refused

from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained
from synthbench.models.reading_limits import tokenizer_and_limit


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    tiny_bert(folder / "bert")
    tiny_sentence_transformer(folder / "encoder")
    tiny_roberta(folder / "roberta")
    settings = folder / "roberta" / "tokenizer_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "model_max_length": 10**30}))
    return folder


@pytest.mark.parametrize("name", ["bert", "encoder", "roberta", "sandbox/encoder"])
@pytest.mark.parametrize("fields", [{}, {"max_length": 7}])
def test_the_limit_equals_that_of_the_loaded_model(models: Path, name: str, fields: dict[str, Any]) -> None:
    base = Pretrained(model=name if "/" in name else str(models / name), **fields)
    found = tokenizer_and_limit(base)
    assert found is not None
    tokenizer, limit = found
    loaded = build_encoder(base, 0, "cpu")
    assert limit == loaded.max_seq_length
    assert len(tokenizer) == len(loaded.tokenizer)


def test_a_training_may_have_a_lower_limit(models: Path) -> None:
    base = Pretrained(model=str(models / "bert"))
    own = tokenizer_and_limit(base)
    less = tokenizer_and_limit(base, 5)
    more = tokenizer_and_limit(base, 10**5)
    assert own is not None
    assert less is not None
    assert more is not None
    assert (less[1], more[1]) == (5, own[1])


def test_models_that_read_whole_texts_have_no_limit(models: Path) -> None:
    assert tokenizer_and_limit(Pretrained(model=str(models / "bert"), static=True)) is None


@pytest.mark.parametrize("name", ["nobody/has-it", "./gone"])
def test_a_missing_model_is_named(name: str) -> None:
    with refused(name, "is not on this machine"):
        tokenizer_and_limit(Pretrained(model=name))


def test_a_tokenizer_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    tiny_bert(tmp_path / "bert")
    (tmp_path / "bert" / "tokenizer.json").write_text("{}", encoding="utf-8")
    with refused("bert", "its tokenizer can't be loaded"):
        tokenizer_and_limit(Pretrained(model=str(tmp_path / "bert")))


def test_module_paths_that_leave_the_models_folder_are_not_followed(models: Path, tmp_path: Path) -> None:
    tiny_bert(tmp_path / "bert")
    (tmp_path / "bert" / "modules.json").write_text(
        json.dumps([{"path": "../../", "type": "x.Transformer"}]), encoding="utf-8"
    )
    found = tokenizer_and_limit(Pretrained(model=str(tmp_path / "bert")), 5)
    assert found is not None
    assert found[1] == 5
