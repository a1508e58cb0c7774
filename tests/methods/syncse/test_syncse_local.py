"""SynCSE with a local chat model: nonsense, all of it counted, and the same to the byte after kills."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from hub_cache import SENTENCES
from small_experiment import Project, artifact, finished

from synthbench.api import SyntheticDataset
from synthbench.llm.ledger import entries

NUM_SENTENCES = 60
EXPERIMENT = """\
experiment: small
llm: {{local: {model}, batch_size: {batch_size}, max_new_tokens: 24, max_failure_rate: 1, cut_off: take}}
sources:
  captions: {{file: captions.txt}}
defaults:
  data:
    triplets: {{method: syncse-partial, sources: {{sentences: captions}}}}
  audit:
    labels: {{part: triplets, per_label: 5, seed: 0}}
baseline: all
runtime: {{device: cpu, threads: 1}}
"""
TRIPLETS = "generate syncse-partial for all seed 0"


def new_project(folder: Path, empty_database: Path, model: Path, batch_size: int) -> Project:
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    project.file.write_text(EXPERIMENT.format(model=model, batch_size=batch_size), encoding="utf-8")
    captions = "".join(f"{sentence}\n" for sentence in SENTENCES[:NUM_SENTENCES])
    (project.folder / "captions.txt").write_text(captions, encoding="utf-8")
    return project


def written(project: Project) -> dict[str, bytes]:
    folder = artifact(project, TRIPLETS) / "dataset"
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def num_units(project: Project) -> int:
    journals = (project.home / "store" / "partial").glob("*/journal.jsonl")
    return sum(len(file.read_bytes().splitlines()) for file in journals)


def kill_after(project: Project, number: int) -> None:
    process = project.start("run", "small.yaml")
    while process.poll() is None and num_units(project) < number:
        time.sleep(0.005)
    assert process.poll() is None, finished(process).err
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)


@pytest.mark.experiments
def test_a_killed_run_ends_with_the_same_data_whatever_its_batches(
    tmp_path: Path, empty_database: Path, chat_model: Path
) -> None:
    undisturbed = new_project(tmp_path / "undisturbed", empty_database, chat_model, batch_size=8)
    called = undisturbed.call("run", "small.yaml")
    assert called.code == 0, called.err
    killed = new_project(tmp_path / "killed", empty_database, chat_model, batch_size=3)
    for number in (5, 30):
        kill_after(killed, number)
    called = killed.call("run", "small.yaml")
    assert called.code == 0, called.err
    assert written(killed) == written(undisturbed)
    triplets = SyntheticDataset.read(artifact(killed, TRIPLETS) / "dataset")
    assert len(triplets) + len(list(triplets.failures())) == NUM_SENTENCES
    (plain,) = entries(undisturbed.home / "store" / "llm")
    (resumed,) = entries(killed.home / "store" / "llm")
    assert plain.answered == resumed.answered
    assert plain.in_doubt.num_attempts == 0 < resumed.in_doubt.num_attempts
