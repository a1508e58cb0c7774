"""SynCSE through the real command, with an LLM that misbehaves: a kill costs nothing."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from small_experiment import Project, artifact, finished

from synthbench.api import SyntheticDataset

EXPERIMENT = """\
experiment: small
llm:
  endpoint: sandbox
  refusals: 0.05
  empty: 0.03
  malformed: 0.08
  rate_limited: 0.03
  server_errors: 0.05
  drops: 0.03
  retry_after: 0
  latency: 0.02
sources:
  test: {sandbox: pairs, split: test, size: 40}
seeds: [0]
defaults:
  data:
    triplets: {method: syncse-scratch, size: 200}
  train:
    trainer: bi-encoder
    base: {model: sandbox/encoder}
    max_steps: 1
    batch_size: 8
  evaluate:
    sts: {evaluator: sts, tasks: [test]}
baseline: all
runtime: {device: cpu, threads: 1}
"""
SENTENCES = "generate syncse-sentences for sentences of syncse-scratch for all seed 0"
TRIPLETS = "generate syncse-scratch for all seed 0"


def new_project(folder: Path, empty_database: Path) -> Project:
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    project.file.write_text(EXPERIMENT, encoding="utf-8")
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def written(project: Project) -> dict[str, bytes]:
    """Return the files of both data sets."""
    return {
        f"{label}/{file.name}": file.read_bytes()
        for label in (SENTENCES, TRIPLETS)
        for file in (artifact(project, label) / "dataset").iterdir()
    }


def num_triplets(project: Project) -> int:
    """Return how many triplets are journalled."""
    journals = (project.home / "store" / "partial").glob("*/journal.jsonl")
    return sum(file.read_text(encoding="utf-8").count('"anchor"') for file in journals)


def kill_after(project: Project, num_lines: int) -> None:
    process = project.start("run", "small.yaml")
    while process.poll() is None and num_triplets(project) < num_lines:
        time.sleep(0.005)
    assert process.poll() is None, finished(process).err
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)


@pytest.mark.experiments
def test_a_killed_run_resumes_and_its_data_have_the_same_bytes(tmp_path: Path, empty_database: Path) -> None:
    undisturbed = new_project(tmp_path / "undisturbed", empty_database)
    called = undisturbed.call("run", "small.yaml")
    assert called.code == 0, called.err
    killed = new_project(tmp_path / "killed", empty_database)
    for num_lines in (1, 40, 90):
        kill_after(killed, num_lines)
    called = killed.call("run", "small.yaml")
    assert called.code == 0, called.err
    assert written(killed) == written(undisturbed)
    triplets = SyntheticDataset.read(artifact(killed, TRIPLETS) / "dataset")
    reasons = {getattr(failure, "reason", "") for failure in triplets.failures()}
    assert len(triplets) > 100
    assert {"positive: refusal", "negative: refusal"} & reasons
