"""`validate` and `plan` describe a file's models; unsuitable ones are reported with line and key."""

import json
import shutil
from pathlib import Path

from small_experiment import Project
from wording import worded


def test_models_are_described_with_their_settings(project: Project) -> None:
    project.change("static: true, static_dimension: 16", "num_layers: 2, max_length: 100")
    called = project.call("validate", project.file)
    assert called.code == 0, called.err
    lines = [line.partition(": ")[2] for line in called.out.splitlines() if line.startswith("model ")]
    assert lines == [
        "bert, 2 of 3 layers, fp32, 64 positions, so max_length 100 is cut to them, 114 tokens",
        "bert, 1 of 3 layers, fp32, 64 positions, 114 tokens",
    ]
    planned = project.call("plan", project.file).out.splitlines()
    assert [line for line in planned if line.startswith("model ")] == called.out.splitlines()[:2]


def test_the_description_has_stored_dtype_and_head(project: Project, bert: Path, tmp_path: Path) -> None:
    folder = tmp_path / "other"
    shutil.copytree(bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"dtype": "bfloat16", "architectures": ["BertForSequenceClassification"]}
    config["id2label"] = {"0": "a", "1": "b", "2": "c"}
    (folder / "config.json").write_text(json.dumps(config))
    project.change(
        f'base: {{model: "{bert}", static: true, static_dimension: 16}}', f'base: {{model: "{folder}"}}'
    )
    called = project.call("validate", project.file)
    assert "bert, 3 layers, fp32, by itself bf16, 3 outputs, 64 positions, 114 tokens\n" in called.out
    project.change(f'model: "{bert}", num_layers', f'model: "{folder}", num_layers')
    called = project.call("validate", project.file)
    assert called.code == 2
    worded(called.errors, "cross_encoder.base.model", "3 outputs", "hidden_size")
