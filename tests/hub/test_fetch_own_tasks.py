"""`fetch` of tasks that an evaluator brings itself, and of code from another repository than the model's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hub_cache import HubCache, tiny_bert
from manifest_hub import manifest_hub

from synthbench.models.pretrained import Pretrained
from synthbench.pipeline.hub_needs import own_code

FILE = """\
experiment: own_tasks
description: A task that mteb brings
seeds: [0]
defaults:
  train: {trainer: none, base: {model: princeton-nlp/unsup-simcse-bert-base-uncased}}
  evaluate: {mteb: {evaluator: mteb, tasks: [STSBenchmark]}}
baseline: only
variants: {}
runtime: {device: cpu, threads: 1}
"""


@pytest.mark.experiments
def test_after_a_fetch_mteb_scores_its_task_without_a_hub(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(FILE, encoding="utf-8")

    def called(command: str, changes: dict[str, str]) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "SYNTHBENCH_HOME": str(tmp_path / "home"), **changes}
        arguments = [sys.executable, "-m", "synthbench", command, "own.yaml"]
        return subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True)

    with manifest_hub() as hub:
        environment = hub.environment(tmp_path / "huggingface")
        fetched = called("fetch", environment)
    assert fetched.returncode == 0, fetched.stderr
    assert "reading STSBenchmark" in fetched.stdout
    ran = called("run", {**environment, "HF_HUB_OFFLINE": "1"})
    assert ran.returncode == 0, ran.stderr
    assert "STSBenchmark" in ran.stdout


def test_code_that_an_allowed_model_takes_from_another_repository_is_fetched(hub_cache: HubCache) -> None:
    snapshot = hub_cache.add_model("org/own-code", "c0de" * 10, tiny_bert)
    config = json.loads((snapshot / "config.json").read_text(encoding="utf-8"))
    config["auto_map"] = {
        "AutoConfig": "maker/code--configuration.TheirConfig",
        "AutoModel": "maker/code--modeling.TheirModel",
        "AutoTokenizer": ["own_tokenizer.TheirTokenizer", None],
    }
    (snapshot / "config.json").write_text(json.dumps(config), encoding="utf-8")
    model = Pretrained(model="org/own-code", trust_remote_code=True)
    stages = [SimpleNamespace(operation=SimpleNamespace(trusted=each)) for each in ((model,), ())]
    (files,) = own_code(stages)  # type: ignore[arg-type]
    assert (files.repository.kind, files.repository.name) == ("model", "maker/code")
    assert files.chosen(["modeling.py", "README.md", "pytorch_model.bin"]) == ["modeling.py"]
