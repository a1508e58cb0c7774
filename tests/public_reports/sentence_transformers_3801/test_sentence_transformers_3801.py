"""huggingface/sentence-transformers #3801: a local folder's module ran although trust_remote_code was off.

Here it is refused, as a base and in an artifact.
"""

import json
from pathlib import Path

import pytest
from hub_cache import tiny_bert

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.models.artifact import load
from synthbench.models.building import build_encoder
from synthbench.models.pretrained import Pretrained


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An encoder's folder with a module of its own, which writes a file when it is imported."""
    folder = tmp_path / "model"
    folder.mkdir()
    tiny_bert(folder)
    encoder = build_encoder(Pretrained(model=str(folder)), 0, "cpu")
    encoder.save(str(tmp_path / "saved"))
    marker = tmp_path / "marker"
    code = f"open({str(marker)!r}, 'w').close()\nclass Own:\n    pass\n"
    (tmp_path / "saved" / "modeling_own.py").write_text(code, encoding="utf-8")
    return tmp_path / "saved"


def test_code_in_a_local_model_folder_does_not_run(folder: Path, tmp_path: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules[1]["type"] = "modeling_own.Own"
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(UserError, match="trust_remote_code"):
        build_encoder(Pretrained(model=str(folder)), 0, "cpu")
    artifact = tmp_path / "artifact"
    artifact.mkdir()
    folder.rename(artifact / "model")
    (artifact / "model.json").write_text('{"kind": "encoder", "pretrained": null}', encoding="utf-8")
    with pytest.raises(UserError, match="no module of a model"):
        load(artifact, Runtime(device="cpu"))
    assert not (tmp_path / "marker").exists()
