"""Foreign models: their files run no code, and each fault is one line."""

import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hub_cache import tiny_bert
from sentence_transformers import SentenceTransformer
from wording import refused

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.models import own_code as own_code_module
from synthbench.models.artifact import DESCRIPTION_FILE, base_of, check_artifact, load, save_model
from synthbench.models.building import build_encoder
from synthbench.models.own_code import why_untrusted, with_own_code
from synthbench.models.pretrained import Pretrained
from synthbench.training.trainers import load_weights

CPU = Runtime(device="cpu")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained encoder's artifact."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "bert").mkdir()
    tiny_bert(folder / "bert")
    (folder / "saved").mkdir()
    save_model(build_encoder(Pretrained(model=str(folder / "bert")), 0, "cpu"), folder / "saved")
    return folder / "saved"


@pytest.fixture
def artifact(saved: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(saved, tmp_path / "artifact"))


@pytest.fixture
def marker(tmp_path: Path, artifact: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that importing the module `evil` writes, wherever it is found."""
    marker = tmp_path / "marker"
    code = f"import pathlib\npathlib.Path({str(marker)!r}).write_text('ran')\nclass Evil:\n    pass\n"
    (tmp_path / "importable").mkdir()
    for folder in (tmp_path / "importable", artifact / "model"):
        (folder / "evil.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "importable"))
    return marker


def edit(file: Path, **changes: Any) -> None:
    found = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**found, **changes}), encoding="utf-8")


def edit_module(artifact: Path, number: int, **changes: str) -> None:
    file = artifact / "model" / "modules.json"
    modules = json.loads(file.read_text("utf-8"))
    modules[number] |= changes
    file.write_text(json.dumps(modules), encoding="utf-8")


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.write_text, (self.marker, "ran"))


def pickled_weights(artifact: Path, marker: Path) -> None:
    (artifact / "model" / "model.safetensors").unlink()
    (artifact / "model" / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(marker)))


def activation(artifact: Path, name: str) -> None:
    folder = artifact / "model" / "2_Dense"
    folder.mkdir()
    edit(folder / "config.json", in_features=32, out_features=4, activation_function=name)
    torch.save(
        {"linear.weight": torch.zeros(4, 32), "linear.bias": torch.zeros(4)}, folder / "pytorch_model.bin"
    )
    file = artifact / "model" / "modules.json"
    kind = "sentence_transformers.models.Dense"
    modules = [*json.loads(file.read_text("utf-8")), {"idx": 2, "name": "2", "path": "2_Dense", "type": kind}]
    file.write_text(json.dumps(modules), encoding="utf-8")


ATTACKS: dict[str, Callable[[Path, Path], None]] = {
    "auto_map of the model": lambda a, _: edit(
        a / "model" / "config.json",
        model_type="own",
        auto_map={"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"},
    ),
    "auto_map of a known model": lambda a, _: edit(
        a / "model" / "config.json", auto_map={"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"}
    ),
    "auto_map of the tokenizer": lambda a, _: edit(
        a / "model" / "tokenizer_config.json",
        tokenizer_class="Evil",
        auto_map={"AutoTokenizer": ["evil.Evil", "evil.Evil"]},
    ),
    "a tokenizer's class": lambda a, _: edit(
        a / "model" / "tokenizer_config.json", tokenizer_class="evil.Evil"
    ),
    "a module beside the model": lambda a, _: edit_module(a, 0, type="evil.Evil"),
    "a module of Python": lambda a, _: edit_module(a, 1, type="os.system"),
    "a module behind a module of the library": lambda a, _: edit_module(
        a, 1, type="sentence_transformers.base.model.pickle"
    ),
    "a module's path elsewhere": lambda a, _: edit_module(a, 1, path="../../importable"),
    "trust in the library's own settings": lambda a, _: edit(
        a / "model" / "sentence_bert_config.json",
        model_args={"trust_remote_code": True},
        config_args={"trust_remote_code": True},
    ),
    "pickled weights": pickled_weights,
    "an activation": lambda a, _: activation(a, "evil.Evil"),
    "an activation of torch that is a function": lambda a, _: activation(a, "torch.hub.list"),
    "an adapter": lambda a, _: edit(
        a / "model" / "adapter_config.json",
        peft_type="LORA",
        base_model_name_or_path="evil/evil",
        auto_mapping={"base_model_class": "Evil", "parent_library": "evil"},
    ),
    "a chat template": lambda a, m: edit(
        a / "model" / "tokenizer_config.json",
        chat_template="{{ cycler.__init__.__globals__.os.popen('touch " + str(m) + "').read() }}",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_code_named_by_an_artifact_never_runs(
    artifact: Path, marker: Path, attack: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    attack(artifact, marker)
    try:
        encoder = load(artifact, CPU)
        encoder.encode(["a man"])  # type: ignore[union-attr]
    except UserError as error:
        assert len(error.messages) == 1
    assert not marker.exists()


@pytest.mark.parametrize("file", ["model.bin", "optimizer.pt", "rng_state.pth", "scheduler.pt"])
def test_only_the_weights_of_a_checkpoint_are_loaded(tmp_path: Path, file: str) -> None:
    """All that a paused training's artifact holds of torch is read with `weights_only`."""
    torch.save(Bomb(tmp_path / "marker"), tmp_path / file)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / file, weights_only=True)
    assert not (tmp_path / "marker").exists()


def test_the_weights_of_a_checkpoint_are_never_unpickled(saved: Path, tmp_path: Path) -> None:
    from synthbench.training.trainers import WEIGHTS_FILE

    (tmp_path / WEIGHTS_FILE).write_bytes(pickle.dumps(Bomb(tmp_path / "marker")))
    with pytest.raises(pickle.UnpicklingError):
        load_weights(torch.nn.Linear(1, 1), tmp_path)
    assert not (tmp_path / "marker").exists()


DESCRIPTIONS = [
    "[]",
    "null",
    "{}",
    "{",
    '{"kind": "program"}',
    '{"kind": ["encoder"]}',
    '{"kind": "encoder", "pretrained": 7}',
    '{"kind": "encoder", "pretrained": {"model": 7}}',
    '{"kind": "encoder", "pretrained": null, "trust_remote_code": "yes"}',
    '{"kind": "encoder", "pretrained": null, "precision": "fp1"}',
    '{"kind": "pair_scorer", "baseline": "eval"}',
    '{"kind": "encoder", "pretrained": null, "more": 1}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", DESCRIPTIONS, ids=range(len(DESCRIPTIONS)))
def test_a_malformed_description_is_refused_in_one_line(artifact: Path, text: str) -> None:
    (artifact / DESCRIPTION_FILE).write_text(text, encoding="utf-8")
    looks = [lambda folder: load(folder, CPU), *([] if text == "{}" else [check_artifact])]
    for look in looks:
        with pytest.raises(UserError) as caught:
            look(artifact)
        assert len(caught.value.messages) == 1
        assert DESCRIPTION_FILE in str(caught.value)


def own_code(folder: Path, text: str = "class Own:\n    pass\n", auto_map: str = "own.Own") -> Path:
    """Give a folder code of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "own.py").write_text(text, encoding="utf-8")
    edit(folder / "config.json", auto_map={"AutoModel": auto_map})
    (folder / "model.safetensors").touch()
    return folder


@pytest.mark.parametrize(
    ("text", "auto_map", "why"),
    [
        ("class Own:\n    pass\n", "own.Own", ""),
        ("class Own:\n    evil = 1\n", "own.Own", "own.py is not that of a base"),
        ("class Own:\n    pass\n", "evil/repository--own.Own", "evil/repository--own.Own"),
    ],
)
def test_only_the_bases_code_is_allowed(tmp_path: Path, text: str, auto_map: str, why: str) -> None:
    base = Pretrained(model=str(own_code(tmp_path / "base")), trust_remote_code=True)
    checkpoint = own_code(tmp_path / "artifact" / "model", text, auto_map)
    found = why_untrusted(base, [base], checkpoint)
    assert (why in found) if why else (found == "")
    (tmp_path / "artifact" / DESCRIPTION_FILE).write_text(
        '{"kind": "encoder", "pretrained": null, "trust_remote_code": true}', encoding="utf-8"
    )
    if why:
        with pytest.raises(UserError, match="the experiment trusts"):
            base_of(tmp_path / "artifact", [base])
    else:
        assert base_of(tmp_path / "artifact", [base]).trust_remote_code


@pytest.mark.parametrize("text", ["[" * 100_000, '{"auto_map": {"AutoTokenizer": "evil/repository--own.Own"'])
def test_settings_that_cant_be_read_are_not_trusted(tmp_path: Path, text: str) -> None:
    base = Pretrained(model=str(own_code(tmp_path / "base")), trust_remote_code=True)
    for folder in ("base", "artifact/model"):
        own_code(tmp_path / folder)
        (tmp_path / folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    found = why_untrusted(base, [base], tmp_path / "artifact" / "model")
    assert "its tokenizer_config.json is no JSON" in found


def test_settings_that_are_too_large_to_be_read_are_not_trusted(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = Pretrained(model=str(own_code(tmp_path / "base")), trust_remote_code=True)
    checkpoint = own_code(tmp_path / "own" / "model")
    evil = {"AutoTokenizer": "evil/repository--own.Own"}
    edit(checkpoint / "tokenizer_config.json", auto_map=evil, padding=" " * 1000)
    modules = artifact / "model" / "modules.json"
    modules.write_text(modules.read_text("utf-8") + " " * 1000, encoding="utf-8")
    monkeypatch.setattr(own_code_module, "MOST_BYTES", 1000)
    assert "its tokenizer_config.json is no JSON" in why_untrusted(base, [base], checkpoint)
    with refused(str(artifact), "its modules.json is no JSON"):
        base_of(artifact)


def test_an_untrained_model_with_code_must_be_the_experiments_model(tmp_path: Path) -> None:
    base = Pretrained(model=str(own_code(tmp_path / "base")), trust_remote_code=True)
    other = base.model_copy(update={"model": str(own_code(tmp_path / "other"))})
    assert why_untrusted(base, [base], None) == ""
    assert "which the experiment does not trust" in why_untrusted(other, [base], None)


def test_trusted_models_are_found_in_any_settings(tmp_path: Path) -> None:
    own = Pretrained(model="org/own", trust_remote_code=True)
    settings = {"a": [Pretrained(model="org/plain")], "b": {"c": (own,)}}
    assert list(with_own_code(settings)) == [own]


def test_a_valid_artifact_is_loaded(artifact: Path) -> None:
    check_artifact(artifact)
    assert isinstance(load(artifact, CPU).model, SentenceTransformer)  # type: ignore[union-attr]
