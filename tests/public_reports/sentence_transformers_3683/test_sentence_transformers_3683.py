"""huggingface/sentence-transformers #3683: modules.json imports any installed module by its name.

Here a type is a class of the library: neither another package nor what the library's modules import.
"""

import json
import sys
from pathlib import Path

import pytest
from hub_cache import tiny_bert

from synthbench.base.errors import UserError
from synthbench.models.artifact import check_artifact
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


@pytest.mark.parametrize(
    "name", ["this.s", "antigravity.fly", "sentence_transformers.base.model.pickle", "modeling_own.Own", 7]
)
def test_loading_a_model_imports_no_module_that_the_model_names(
    folder: Path, tmp_path: Path, name: object
) -> None:
    modules = json.loads((folder / "modules.json").read_text("utf-8"))
    modules[1]["type"] = name
    (tmp_path / "model").rename(tmp_path / "base")
    folder.rename(tmp_path / "model")
    (tmp_path / "model" / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    (tmp_path / "model.json").write_text('{"kind": "encoder", "pretrained": null}', encoding="utf-8")
    with pytest.raises(UserError, match="no module of a model"):
        check_artifact(tmp_path)
    assert "antigravity" not in sys.modules
