"""Models with Python code of their own: it runs by a flag, where the user allows code, and is named."""

import json
from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES, tiny_bert
from small_experiment import Project, new_project
from wording import refused, worded

from synthbench.models.artifact import load, save_model
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.pretrained import Pretrained, build_encoder
from synthbench.runtime import Runtime

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
def test_code_that_nobody_asked_for_is_never_run(own: Path, is_static: bool) -> None:
    with refused("trust_remote_code: true", str(own)):
        build_encoder(Pretrained(model=str(own), static=is_static), 0, "cpu")


def test_with_the_flag_it_runs_and_a_trained_model_keeps_it(own: Path, tmp_path: Path) -> None:
    model = build_encoder(Pretrained(model=str(own), trust_remote_code=True), 0, "cpu")
    assert type(model[0].auto_model).__name__ == "OwnModel"
    save_model(model, tmp_path)
    again = load(tmp_path, Runtime(device="cpu"))
    assert isinstance(again, LengthBatchedEncoder)
    np.testing.assert_allclose(again.encode(SENTENCES), model.encode(SENTENCES), atol=1e-5)


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


def test_the_table_names_the_model_and_the_row(project: Project, own: Path) -> None:
    called = project.call(
        "run", "small.yaml", "--variant", "own-code", "--seeds", "0", "--allow-code", "--output", "out"
    )
    assert (called.code, called.errors) == (0, [])
    (table,) = (project.folder / "out").glob("*/*/table.md")
    assert f"Runs code that comes with the model {own}: own-code." in table.read_text(encoding="utf-8")
