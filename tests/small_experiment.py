"""An experiment of a few seconds with every kind of stage in it, and the command to run it with."""

import contextlib
import functools
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hub_cache import SENTENCES, tiny_bert
from sketched_figures import drawn_figures

EXPERIMENT = """\
experiment: small
description: What silver pairs do in the smallest world
sources:
  gold: {{file: gold.tsv, kind: scored_pair}}
  dev: {{file: dev.tsv, kind: scored_pair, split: dev}}
  test: {{file: test.tsv, kind: scored_pair, split: test}}
seeds: [0, 1]
defaults:
  data:
    gold: {{source: gold}}
  train:
    trainer: bi-encoder
    base: {{model: "{bert}", static: true, static_dimension: 16}}
    batch_size: 8
    learning_rate: 0.02
    max_steps: {steps}
    evaluations: 2
    selection: {{evaluator: sts, sources: [dev]}}
  evaluate:
    sts: {{evaluator: sts, tasks: [test], exclude: [gold]}}
baseline: gold-only
variants:
  augsbert:
    data.silver:
      method: augsbert
      sources: {{gold: gold, dev: dev}}
      sampler: {{name: bm25, k: 1}}
      cross_encoder:
        base: {{model: "{bert}", num_layers: 1}}
        max_steps: {steps}
        batch_size: 8
        learning_rate: 0.001
    select:
      over: {{data.silver.sampler.k: [1, 2]}}
runtime: {{device: cpu, threads: 1}}
"""
TABLES = ("table.csv", "table.md", "table.tex", "seeds.csv", "scores.pdf", "scores.png")
PAGE = "report.html"


@dataclass(frozen=True)
class Called:
    """A command's output and exit code."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines with errors."""
        return [line.removeprefix("error: ") for line in self.err.splitlines() if line.startswith("error: ")]

    @property
    def executed(self) -> list[str]:
        """The stages that were computed."""
        started = (line.split(" running ", 1)[1] for line in self.err.splitlines() if " running " in line)
        return [re.sub(r" \[\d+/\d+\]$", "", stage) for stage in started]


@dataclass(frozen=True)
class Project:
    """A folder with an experiment in it, and the home of its store."""

    folder: Path
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> Path:
        """The experiment file."""
        return self.folder / "small.yaml"

    def change(self, old: str, new: str) -> None:
        """Replace a text that the experiment file must contain."""
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new), encoding="utf-8")

    def call(self, *arguments: str | Path) -> Called:
        """Run the command line within this process, as its entry point does."""
        import typer.main

        from synthbench.cli.main import main

        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.object(sys, "argv", ["synthbench", *map(str, arguments)]),
            # Typer builds the commands at each call; one copy per process suffices.
            mock.patch.object(typer.main, "get_command", _commands(typer.main.get_command)),
            mock.patch.dict(os.environ, {"SYNTHBENCH_HOME": str(self.home), **self.environment}),
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        return Called(int(ended.value.code or 0), out.getvalue(), err.getvalue())

    def start(self, *arguments: str | Path) -> "subprocess.Popen[str]":
        """Start the real command in a process of its own, with the store of this project."""
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("synthbench")), *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, "SYNTHBENCH_HOME": str(self.home), "OMP_NUM_THREADS": "1", **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # If the tests run as a background job, they ignore Ctrl-C, and children would inherit that.
            preexec_fn=heed_interrupts,
        )


@functools.cache
def _commands(get_command: Callable[..., Any]) -> Callable[..., Any]:
    return functools.cache(get_command)


def heed_interrupts() -> None:
    """Let a process heed Ctrl-C, as one does that was started in a terminal."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finished(process: "subprocess.Popen[str]") -> Called:
    """Wait for a process to end."""
    out, err = process.communicate()
    return Called(process.returncode, out, err)


@pytest.fixture(scope="session")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny BERT that all small experiments start from."""
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert(folder)
    return folder


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tracking database without any experiment: MLflow takes seconds to set one up."""
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    tracker = MlflowTracker(tmp_path_factory.mktemp("tracking"))
    tracker._set_up_database()
    return tracker.own_database


@pytest.fixture(scope="session")
def finished_run(
    tmp_path_factory: pytest.TempPathFactory, bert: Path, empty_database: Path
) -> tuple[Project, Called]:
    """A project with the whole experiment run without interruption; tests must not change it."""
    project = new_project(tmp_path_factory.mktemp("finished"), bert)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    with drawn_figures():
        return project, project.call("run", project.file)


@pytest.fixture
def project(tmp_path: Path, bert: Path) -> Project:
    """A small experiment of the test's own."""
    return new_project(tmp_path, bert)


def new_project(folder: Path, bert: Path) -> Project:
    """Write a small experiment into `folder`, with a home beside it."""
    write_experiment(folder / "experiment", bert)
    return Project(folder / "experiment", folder / "home")


def write_experiment(folder: Path, bert: Path, *, num_gold: int = 60, steps: int = 8) -> Path:
    """Write the experiment file and its data into a new folder."""
    folder.mkdir(parents=True)
    draw = random.Random(0)
    for name, size in (("gold", num_gold), ("dev", 30), ("test", 40)):
        write_pairs(folder / f"{name}.tsv", draw, size)
    file = folder / "small.yaml"
    file.write_text(EXPERIMENT.format(bert=bert, steps=steps), encoding="utf-8")
    return file


def write_pairs(file: Path, draw: random.Random, size: int) -> None:
    """Write pairs whose score is the share of words that they have in common."""
    lines = ["sentence1\tsentence2\tscore"]
    for _ in range(size):
        first, second = draw.sample(SENTENCES, 2)
        words = [set(sentence.rstrip(".").split()) for sentence in (first, second)]
        lines.append(f"{first}\t{second}\t{len(words[0] & words[1]) / len(words[0] | words[1]):.3f}")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def tables(project: Project, output: str = "reports", part: str = "") -> dict[str, bytes]:
    """Return the tables and the plot that a run wrote, or the run of a part."""
    return {name: (project.folder / output / "small" / part / name).read_bytes() for name in TABLES}


def artifact(project: Project, label: str) -> Path:
    """Return the folder of the artifact of the stage with this label."""
    stages = (project.home / "store" / "artifacts").glob("*/*/stage.json")
    found = [file.parent for file in stages if json.loads(file.read_text("utf-8")).get("label") == label]
    assert len(found) == 1, label
    return found[0]


def kinds(stages: Sequence[str]) -> list[str]:
    """Return the kinds of stages, as the lines about them begin, in order and each once."""
    return list(dict.fromkeys(stage.split(" ", 1)[0] for stage in stages))
