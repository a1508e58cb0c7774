"""Models with Python code of their own: it runs by a flag, where the user allows code, and is named."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES, HubCache, tiny_bert
from huggingface_hub.utils import filter_repo_objects
from small_experiment import Project, new_project
from wording import refused, worded

from synthbench.base.runtime import Runtime
from synthbench.cli.dataset import loaded_encoder
from synthbench.models.artifact import load, save_baseline, save_model, save_untrained
from synthbench.models.building import build_encoder
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.files import ALLOWED, check_code_of

CODE = """
from transformers import BertConfig, BertModel

class OwnConfig(BertConfig):
    model_type = "own-bert"

class OwnModel(BertModel):
    config_class = OwnConfig
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of an architecture that transformers does not know, with its code."""
    folder = tmp_path_factory.mktemp("models") / "own"
    folder.mkdir()
    tiny_bert(folder)
    (folder / "own_bert.py").write_text(CODE, encoding="utf-8")
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config |= {
        "model_type": "own-bert",
        "architectures": ["OwnModel"],
        "auto_map": {"AutoConfig": "own_bert.OwnConfig", "AutoModel": "own_bert.OwnModel"},
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


@pytest.mark.parametrize("is_static", [False, True])
def test_a_models_code_runs_only_on_request(own: Path, is_static: bool) -> None:
    with refused("trust_remote_code: true", str(own)):
        build_encoder(Pretrained(model=str(own), static=is_static), 0, "cpu")


def test_the_flag_also_allows_the_code_of_the_trained_model(own: Path, tmp_path: Path) -> None:
    model = build_encoder(Pretrained(model=str(own), trust_remote_code=True), 0, "cpu")
    assert type(model[0].auto_model).__name__ == "OwnModel"
    save_model(model, tmp_path)
    with refused(str(tmp_path), "the experiment allows none"):
        load(tmp_path, Runtime(device="cpu"))
    again = load(
        tmp_path, Runtime(device="cpu"), trusted=[Pretrained(model=str(own), trust_remote_code=True)]
    )
    assert isinstance(again, LengthBatchedEncoder)
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)


def test_a_hub_models_code_is_loaded_with_it(
    own: Path, hub_cache: HubCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub sends only requested files; so does this fake cache."""
    snapshot = hub_cache.add_model("org/own", "a" * 40, lambda folder: _copy(own, folder))

    def download(*_: object, allow_patterns: list[str], **__: object) -> str:
        names = [file.relative_to(snapshot).as_posix() for file in snapshot.rglob("*")]
        for name in set(names) - set(filter_repo_objects(names, allow_patterns=allow_patterns)):
            (snapshot / name).unlink()
        return str(snapshot)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with refused("trust_remote_code: true", "org/own"):
        build_encoder(Pretrained(model="org/own"), 0, "cpu")
    model = build_encoder(Pretrained(model="org/own", trust_remote_code=True), 0, "cpu")
    assert type(model[0].auto_model).__name__ == "OwnModel"


@pytest.mark.parametrize("is_trained", [True, False])
def test_a_model_folder_from_elsewhere_runs_no_code_unless_its_folder_is_allowed(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_trained: bool
) -> None:
    monkeypatch.delenv(ALLOWED, raising=False)
    base = Pretrained(model=str(own), trust_remote_code=True)
    if is_trained:
        save_model(build_encoder(base, 0, "cpu"), tmp_path)
    else:
        save_untrained(base, tmp_path)
    with refused(str(tmp_path), ALLOWED, "code"):
        check_code_of(str(tmp_path))
    with refused(str(tmp_path), ALLOWED, "code"):
        loaded_encoder(str(tmp_path))
    monkeypatch.setenv(ALLOWED, str(tmp_path))
    assert loaded_encoder(str(tmp_path)).encode(["a man"]).shape == (1, 32)


def test_folders_without_code_need_no_permission(own: Path, tmp_path: Path) -> None:
    check_code_of(str(own))
    check_code_of("org/name")
    save_baseline("jaccard", tmp_path)
    check_code_of(str(tmp_path))


def _copy(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder, dirs_exist_ok=True)


@pytest.fixture
def project(tmp_path: Path, own: Path) -> Project:
    """A small experiment with a row whose base has code of its own."""
    made = new_project(tmp_path, own)
    base = f'{{model: "{own}", trust_remote_code: true}}'
    made.change("variants:\n", f"variants:\n  own-code:\n    train.base: {base}\n")
    return made


def test_the_user_must_allow_code(project: Project, own: Path) -> None:
    called = project.call("validate", "small.yaml", "--variant", "own-code")
    assert called.code == 2
    worded(called.errors, str(own), "--allow-code", "train.base.trust_remote_code")


def test_the_table_names_each_model_with_code_and_its_row(project: Project, own: Path) -> None:
    called = project.call(
        "run", "small.yaml", "--variant", "own-code", "--seeds", "0", "--allow-code", "--output", "out"
    )
    assert (called.code, called.errors) == (0, []), called.err
    assert f"runs code: that comes with the model {own}" in called.out + called.err
    (notes,) = (project.folder / "out").glob("*/*/notes.md")
    assert f"Runs code that comes with the model {own}: own-code." in notes.read_text(encoding="utf-8")
