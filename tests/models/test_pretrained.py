import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hub_cache import SENTENCES
from pydantic import ValidationError
from sentence_transformers import CrossEncoder
from small_models import random_t5
from transformers import AutoModel
from wording import refused

from synthbench.models.artifact import checkpoint_kind
from synthbench.models.building import build_cross_encoder, build_encoder, build_with_hidden_layer
from synthbench.models.checks import check_layers
from synthbench.models.interfaces import ModelKind
from synthbench.models.pair_scorer import LengthBatchedPairScorer
from synthbench.models.pretrained import Pretrained

TEXTS = [*SENTENCES[:5], "a dog", "the piano eats the small cat , the dog and two boys ."]
PAIRS = [(first, second) for first in TEXTS[:3] for second in TEXTS[3:]]


def _save(architecture: Any, config: Any, tokenizer_of: Path, folder: Path) -> Path:
    shutil.copytree(tokenizer_of, folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        architecture(config).save_pretrained(folder)
    return folder


@pytest.fixture
def checkpoint(request: pytest.FixtureRequest, bert: Path, roberta: Path, tmp_path: Path) -> Path:
    """One checkpoint of each common architecture, three layers each."""
    from transformers import DistilBertConfig, DistilBertModel, MPNetConfig, MPNetModel

    if request.param == "distilbert":
        settings = DistilBertConfig(vocab_size=200, dim=32, n_layers=3, n_heads=2, hidden_dim=64)
        return _save(DistilBertModel, settings, bert, tmp_path / "distilbert")
    if request.param == "mpnet":
        sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 2}
        settings = MPNetConfig(vocab_size=200, intermediate_size=64, **sizes)
        return _save(MPNetModel, settings, bert, tmp_path / "mpnet")
    return {"bert": bert, "roberta": roberta}[request.param]


@pytest.mark.parametrize("checkpoint", ["bert", "roberta", "distilbert", "mpnet"], indirect=True)
def test_the_first_layers_give_the_whole_models_intermediate_states(checkpoint: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    whole, tokenizer = AutoModel.from_pretrained(checkpoint), AutoTokenizer.from_pretrained(checkpoint)
    with torch.inference_mode():
        batch = tokenizer(TEXTS[0], return_tensors="pt", return_token_type_ids=False)
        expected = whole(**batch, output_hidden_states=True).hidden_states[2].mean(dim=1)

    model = build_encoder(Pretrained(model=str(checkpoint), num_layers=2), seed=0, device="cpu")
    assert model.encode(TEXTS[:1]) == pytest.approx(expected.numpy(), abs=1e-5)

    model.save(str(tmp_path / "saved"))
    again = build_encoder(Pretrained(model=str(tmp_path / "saved")), seed=0, device="cpu")
    assert again.encode(TEXTS) == pytest.approx(model.encode(TEXTS), abs=1e-6)


def test_more_layers_than_the_model_has_are_a_user_error(bert: Path) -> None:
    with refused("num_layers", "4", "3"):
        build_encoder(Pretrained(model=str(bert), num_layers=4), seed=0, device="cpu")


@pytest.mark.parametrize("checkpoint", ["bert", "roberta", "distilbert", "mpnet"], indirect=True)
def test_too_many_layers_are_detected_without_building_the_model(checkpoint: Path) -> None:
    check_layers(Pretrained(model=str(checkpoint), num_layers=3))
    with refused("num_layers", "4", "3"):
        check_layers(Pretrained(model=str(checkpoint), num_layers=4))


def test_a_damaged_folder_is_detected_without_building_the_model(tmp_path: Path) -> None:
    base = Pretrained(model=str(tmp_path), num_layers=1)
    with refused("weights"):
        base.check_folder()
    (tmp_path / "model.safetensors").touch()
    with refused("config.json", "modules.json"):
        base.check_folder()
    (tmp_path / "config.json").write_text("[1")
    base.check_folder()
    with refused("config.json", "JSON"):
        check_layers(base)


def test_a_hub_model_is_not_checked_before_loading() -> None:
    base = Pretrained(model="no-such-org/no-such-model", num_layers=400)
    base.check_folder()
    check_layers(base)


def test_a_static_encoder_is_the_mean_of_token_embeddings(bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    table = AutoModel.from_pretrained(bert).get_input_embeddings().weight.detach().numpy()
    tokenizer = AutoTokenizer.from_pretrained(bert)
    model = build_encoder(Pretrained(model=str(bert), static=True), seed=0, device="cpu")
    for text in TEXTS:
        expected = table[tokenizer(text, add_special_tokens=False)["input_ids"]].mean(axis=0)
        assert model.encode(text) == pytest.approx(expected, abs=1e-6)


def test_a_static_encoder_takes_the_token_embeddings_of_an_encoder_without_its_decoder(
    tmp_path: Path,
) -> None:
    for name in ("whole", "encoder"):
        (tmp_path / name).mkdir()
        random_t5(tmp_path / name)
    half = transformers.T5EncoderModel.from_pretrained(tmp_path / "whole")
    half.save_pretrained(tmp_path / "encoder")
    whole, alone = (
        build_encoder(Pretrained(model=str(tmp_path / name), static=True), 0, "cpu").encode(TEXTS)
        for name in ("whole", "encoder")
    )
    assert (whole == alone).all()
    assert np.abs(whole).max() > 0


def test_a_static_encoder_needs_a_tokenizer_with_a_file(tmp_path: Path) -> None:
    transformers.ByT5Tokenizer().save_pretrained(tmp_path)
    small = transformers.T5Config(vocab_size=384, d_model=32, d_kv=8, num_heads=4, num_layers=1, d_ff=64)
    transformers.T5Model(small).save_pretrained(tmp_path)
    with refused(str(tmp_path), "`static`", "tokenizer.json", "ByT5Tokenizer"):
        build_encoder(Pretrained(model=str(tmp_path), static=True), 0, "cpu")


def test_random_static_embeddings_depend_on_the_seed(bert: Path) -> None:
    base = Pretrained(model=str(bert), static=True, static_dimension=8)
    first, same, other = (build_encoder(base, seed, "cpu").encode(TEXTS) for seed in (1, 1, 2))
    assert first.shape == (len(TEXTS), 8)
    assert (first == same).all()
    assert not np.allclose(first, other)


def test_a_static_encoder_reads_at_most_max_length_tokens(bert: Path) -> None:
    base = Pretrained(model=str(bert), static=True, max_length=3)
    model = build_encoder(base, seed=0, device="cpu")
    assert (model.encode("a man plays the guitar") == model.encode("a man plays")).all()


def test_pooling_replaces_only_the_checkpoints_pooling_module(sentence_encoder: Path) -> None:
    kept = build_encoder(Pretrained(model=str(sentence_encoder)), seed=0, device="cpu")
    changed = build_encoder(Pretrained(model=str(sentence_encoder), pooling="cls"), seed=0, device="cpu")
    assert [type(module).__name__ for module in changed] == ["Transformer", "Pooling", "Normalize"]
    assert changed[1].pooling_mode == "cls"
    assert kept[1].pooling_mode == "mean"


def test_a_checkpoint_without_pooling_gets_mean_pooling(bert: Path) -> None:
    model = build_encoder(Pretrained(model=str(bert), max_length=7), seed=0, device="cpu")
    assert model[1].pooling_mode == "mean"
    assert model.max_seq_length == 7


def test_a_new_head_depends_on_the_seed_and_not_on_the_global_generator(bert: Path) -> None:
    before = torch.get_rng_state()
    base = Pretrained(model=str(bert), num_layers=1)
    first, same, other = (build_cross_encoder(base, seed, "cpu").predict(PAIRS) for seed in (1, 1, 2))
    assert (first == same).all()
    assert not np.allclose(first, other)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_saved_cross_encoder_retains_head_and_layers(bert: Path, tmp_path: Path) -> None:
    model = build_cross_encoder(Pretrained(model=str(bert), num_layers=1), seed=1, device="cpu")
    model.save(str(tmp_path))
    again = build_cross_encoder(Pretrained(model=str(tmp_path)), seed=2, device="cpu")
    assert again.predict(PAIRS) == pytest.approx(model.predict(PAIRS), abs=1e-6)


def with_hidden_layer(model: Path, seed: int = 1, **fields: Any) -> CrossEncoder:
    return build_with_hidden_layer(Pretrained(model=str(model), **fields), 6, seed, "cpu")


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_hidden_layer_with_tanh_lies_between_cls_and_the_sigmoid(
    family: str, request: pytest.FixtureRequest
) -> None:
    folder: Path = request.getfixturevalue(family)
    model = with_hidden_layer(folder, num_layers=2).eval()
    tokens = model.tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
    transformer = AutoModel.from_pretrained(folder, num_hidden_layers=2).eval()
    (hidden, hidden_bias), (last, last_bias) = (
        (model[place].linear.weight, model[place].linear.bias) for place in (2, 3)
    )

    with torch.inference_mode():
        cls = transformer(**tokens).last_hidden_state[:, 0]
        expected = torch.sigmoid(torch.tanh(cls @ hidden.T + hidden_bias) @ last.T + last_bias)[:, 0]

    assert (len(hidden), model.num_labels) == (6, 1)
    assert model.predict(PAIRS) == pytest.approx(expected.numpy(), abs=1e-6)
    assert LengthBatchedPairScorer(model).score(PAIRS) == pytest.approx(expected.numpy(), abs=1e-5)


def test_a_hidden_layer_depends_on_the_seed_and_is_saved_with_the_model(bert: Path, tmp_path: Path) -> None:
    first, same, other = (with_hidden_layer(bert, seed, max_length=9) for seed in (1, 1, 2))
    scores = first.predict(PAIRS)
    first.save(str(tmp_path))

    again = build_cross_encoder(Pretrained(model=str(tmp_path)), seed=2, device="cpu")

    assert (scores == same.predict(PAIRS)).all()
    assert not np.allclose(scores, other.predict(PAIRS))
    assert again.predict(PAIRS) == pytest.approx(scores, abs=1e-6)
    assert (again.max_seq_length, checkpoint_kind(tmp_path)) == (9, ModelKind.PAIR_SCORER)


def test_a_hidden_layer_needs_a_base_that_reads_pairs_too(bert: Path) -> None:
    with refused("encoder"):
        with_hidden_layer(bert, pooling="cls")
    with refused("num_layers", "9"):
        with_hidden_layer(bert, num_layers=9)


@pytest.mark.parametrize("field", [{"static": True}, {"pooling": "mean"}])
def test_a_cross_encoder_has_no_fields_of_an_encoder(bert: Path, field: dict[str, Any]) -> None:
    with refused("encoder"):
        build_cross_encoder(Pretrained(model=str(bert), **field), seed=0, device="cpu")


@pytest.mark.parametrize(
    "fields",
    [
        {"static_dimension": 8},
        {"static": True, "num_layers": 2},
        {"static": True, "pooling": "mean"},
        {"num_layers": 0},
        {"revision": "main"},
        {"max_length": "64"},
        {"layers": 2},
    ],
)
def test_unusable_bases_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Pretrained(model="bert", **fields)


def test_a_language_model_can_be_the_base_of_encoders_but_not_of_cross_encoders() -> None:
    base = Pretrained(model="sandbox/lm")
    assert build_encoder(base, 0, "cpu").encode(SENTENCES[:2]).shape == (2, 128)
    with refused("sandbox/lm"):
        build_cross_encoder(base, 0, "cpu")
