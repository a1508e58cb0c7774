"""DINO through the real command: the data set, and the cost of a kill."""

import json
import os
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from dino_experiment import dino_project
from hub_cache import SENTENCES
from small_experiment import Project, artifact, finished

from synthbench.api import SyntheticDataset

NUM_TEXTS = 100
GENERATE = "generate dino for all seed 0"


def written(project: Project, label: str = GENERATE) -> dict[str, bytes]:
    """Return the files of the data set."""
    return {file.name: file.read_bytes() for file in (artifact(project, label) / "dataset").iterdir()}


def journal(project: Project) -> list[dict[str, Any]]:
    """Return the complete lines of the only journal; a kill may have truncated the last."""
    text = "".join(
        file.read_text(encoding="utf-8")
        for file in (project.home / "store" / "partial").glob("*/journal.jsonl")
    )
    return [json.loads(line)["entry"] for line in text.splitlines(keepends=True) if line.endswith("\n")]


def manifest(project: Project, label: str = GENERATE) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(written(project, label)["manifest.json"])
    return loaded


def kill_after(project: Project, num_lines: int, *arguments: str) -> None:
    """Start a run, and kill it when its journal has `number` lines."""
    process = project.start("run", "small.yaml", *arguments)
    while process.poll() is None and len(journal(project)) < num_lines:
        time.sleep(0.005)
    assert process.poll() is None, finished(process).err
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)


def amounts_said(said: str) -> tuple[int, Counter[str]]:
    """Return a run's reported numbers of pairs and of failed attempts."""
    line = re.findall(r" ([\d,]+) pairs, .*; dropped: (.*)", said)[-1]
    counts = re.findall(r"(\d[\d,]*) ([a-z]+)", line[1])
    return int(line[0].replace(",", "")), Counter(
        {reason: int(count.replace(",", "")) for count, reason in counts}
    )


def amounts_in(entries: list[dict[str, Any]]) -> tuple[int, Counter[str]]:
    """Return the same of a journal's lines."""
    kept = sum(record["kind"] != "failure" for entry in entries for record in entry["records"])
    return kept, sum((Counter(entry.get("dropped", {})) for entry in entries), Counter())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Project:
    """An experiment whose data were written in one go."""
    project = new_project(tmp_path_factory.mktemp("undisturbed"), empty_database)
    called = project.call("run", "small.yaml")
    assert called.code == 0, called.err
    return project


def new_project(folder: Path, empty_database: Path) -> Project:
    project = dino_project(folder, NUM_TEXTS)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


@pytest.mark.experiments
@pytest.mark.parametrize(
    "kills", [(1,), (150,), (299,), (20, 40, 200)], ids=lambda kills: "-".join(map(str, kills))
)
def test_a_killed_run_resumes_and_its_data_have_the_same_bytes(
    tmp_path: Path, empty_database: Path, undisturbed: Project, kills: tuple[int, ...]
) -> None:
    project = new_project(tmp_path, empty_database)
    before: list[dict[str, Any]] = []
    for index, num_lines in enumerate(kills):
        kill_after(project, num_lines, "--set", f"runtime.sequences={(12, 30, 7)[index]}")
        assert journal(project)[: len(before)] == before, "what was written stays"
        before = journal(project)
    assert len({entry["key"] for entry in before}) == len(before)
    called = project.call("run", "small.yaml")
    assert called.code == 0, called.err
    assert "taking over" in called.err
    assert written(project) == written(undisturbed)
    kept_before, dropped_before = amounts_in(before)
    kept, dropped = amounts_said(called.err)
    whole = manifest(undisturbed)
    assert kept_before + kept == whole["num_records"]
    assert dropped_before + dropped == Counter(whole["dropped"])


@pytest.mark.experiments
def test_the_manifest_has_the_counts_of_the_run(undisturbed: Project) -> None:
    whole = manifest(undisturbed)
    assert set(whole["dropped"]) <= {"unclosed", "newline", "empty", "identical", "duplicate"}
    dataset = SyntheticDataset.read(artifact(undisturbed, GENERATE) / "dataset")
    assert len(dataset) == whole["num_records"] > 3 * NUM_TEXTS
    missing = Counter(
        {(text, label): 2 for text in SENTENCES[:NUM_TEXTS] for label in ("1", "0.5", "0")}
    ) - Counter((record.texts()[0], record.label) for record in dataset)
    assert len(missing) == whole["num_failures"] == len(list(dataset.failures()))


def test_generated_first_texts_are_a_separate_stage(tmp_path: Path) -> None:
    project = dino_project(tmp_path)
    project.change("      sources: {x1: x1}\n", "      x1: {size: 7}\n")
    project.change("  x1: {file: x1.tsv, kind: sentence}\n", "")
    called = project.call("run", project.file)
    assert called.code == 0, called.err
    first, second = (stage for stage in called.executed if stage.startswith("generate"))
    assert (first.startswith("generate dino-texts for x1"), second) == (True, GENERATE)
    texts, pairs = (SyntheticDataset.read(artifact(project, label) / "dataset") for label in (first, second))
    shares = Counter(record.label for record in [*texts, *texts.failures()])
    assert shares == {"1": 3, "0.5": 2, "0": 2}
    assert {pair.texts()[0] for pair in pairs} <= {text.texts()[0] for text in texts}
    assert {pair.source_id for pair in pairs} <= {text.id for text in texts}
