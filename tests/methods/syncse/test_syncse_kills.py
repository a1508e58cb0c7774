"""2,000 sentences from an LLM that fails in every way, killed ten times: nothing is lost or paid unnoted.

The LLM is a server of its own, which outlives the runs. It keeps its own count and logs each attempt by its
id, so that the ledger can be held against it attempt by attempt.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from served_llms import (
    CONCURRENCY,
    Served,
    attempts,
    check_against_the_servers_count,
    check_what_is_asked_again,
    kill_when,
    num_answers,
    serving,
)
from small_experiment import Project, artifact

NUM_KILLS = 10
CONTENT = ("--refusals", "0.1", "--malformed", "0.1", "--latency", "0.01")
FAULTS = ("--rate-limited", "0.07", "--retry-after", "0", "--server-errors", "0.07", "--drops", "0.06")
EXPERIMENT = """\
experiment: faulty
llm:
  name: faulty
  base_url: {base_url}
  model: sandbox/llm
  concurrency: {concurrency}
  price: {{input: 1, output: 2, date: "2026-11-21"}}
defaults:
  data:
    triplets: {{method: syncse-scratch, size: 2000}}
  audit:
    labels: {{part: triplets, oracle: sandbox, per_label: 20, seed: 0}}
baseline: all
runtime: {{device: cpu, threads: 1}}
"""
SENTENCES = "generate syncse-sentences for sentences of syncse-scratch for all seed 0"
TRIPLETS = "generate syncse-scratch for all seed 0"
PRICE = (1, 2)
"""Prices per million prompt and completion tokens, as in the experiment."""


def new_project(folder: Path, empty_database: Path, server: Served) -> Project:
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    project.file.write_text(
        EXPERIMENT.format(base_url=server.base_url, concurrency=CONCURRENCY), encoding="utf-8"
    )
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


def has_sentences(project: Project) -> bool:
    stages = (project.home / "store" / "artifacts").glob("*/*/stage.json")
    return any(json.loads(file.read_text("utf-8"))["label"] == SENTENCES for file in stages)


def moments(project: Project, num_answers_in_all: int) -> Iterator[tuple[str, Callable[[], bool], float]]:
    """Yield ten moments: their names, how to tell that they have come, and seconds to wait from then on."""
    draw = random.Random(5)

    def after_more(number: int) -> Callable[[], bool]:
        enough = num_answers(project) + number
        return lambda: num_answers(project) >= enough

    yield "within the first second", lambda: True, draw.uniform(0.1, 0.9)
    for _ in range(2):
        yield "among sentences", after_more(draw.randint(5, 35)), draw.uniform(0, 0.05)
    yield "between the stages", lambda: has_sentences(project), draw.uniform(0, 0.02)
    for _ in range(5):
        yield "among labels", after_more(draw.randint(100, 650)), draw.uniform(0, 0.05)
    yield "when all is answered", lambda: num_answers(project) == num_answers_in_all, 0.0


@pytest.mark.experiments
def test_ten_kills_and_every_fault_change_no_byte_and_the_ledger_lists_every_cost(
    tmp_path: Path, empty_database: Path
) -> None:
    for folder in ("undisturbed", "killed"):
        (tmp_path / folder).mkdir()
    with serving(tmp_path / "undisturbed", *CONTENT) as server:
        undisturbed = new_project(tmp_path / "undisturbed", empty_database, server)
        called = undisturbed.call("run", "small.yaml", "--jobs", "1")
        assert called.code == 0, called.err
        check_against_the_servers_count(undisturbed, server, PRICE)
    with serving(tmp_path / "killed", *CONTENT, *FAULTS) as server:
        killed = new_project(tmp_path / "killed", empty_database, server)
        kills = []
        for name, is_time, and_then in moments(killed, num_answers(undisturbed)):
            kill_when(killed, is_time, and_then)
            kills.append(attempts(killed))
            under_way = sum(each.state == "sent" for each in kills[-1])
            print(f"killed {name}: {num_answers(killed)} answers, {under_way} under way")
        assert len(kills) == NUM_KILLS
        called = killed.call("run", "small.yaml", "--jobs", "1")
        assert called.code == 0, called.err
        check_what_is_asked_again(killed, kills)
        check_against_the_servers_count(killed, server, PRICE)
    print(killed.call("ledger", "faulty").out)
    assert written(killed) == written(undisturbed)
