"""Real runs of methods that ask an LLM, killed twice: same bytes, and the LLM's own count in the ledger."""

import os
import shutil
import signal
import time
from dataclasses import replace
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
from shared_stores import on_machine
from small_experiment import Project, finished

from synthbench.engine.stores import CACHE_VARIABLE, VARIABLE
from synthbench.llm.ledger import entries

CONTENT = ("--refusals", "0.1", "--malformed", "0.1", "--latency", "0.02")
FAULTS = ("--rate-limited", "0.07", "--retry-after", "0", "--server-errors", "0.07", "--drops", "0.06")
KILLED_AT = (0.25, 0.75)
"""Shares of all answers: among the first questions, and among the grades."""
PRICE = (1, 2)
EXPERIMENT = """\
experiment: killed
llm:
  name: faulty
  base_url: {base_url}
  model: sandbox/llm
  concurrency: {concurrency}
  price: {{input: 1, output: 2, date: "2026-11-24"}}
sources:
  sentences: {{sandbox: sentences, split: train, size: {size}}}
defaults:
  data:
    written: {{method: {method}, sources: {{sentences: sentences}}}}
  audit:
    labels: {{part: written, oracle: sandbox, per_label: 20, seed: 0}}
baseline: all
runtime: {{device: cpu, threads: 1}}
"""


def new_project(folder: Path, empty_database: Path, server: Served, method: str, size: int) -> Project:
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    text = EXPERIMENT.format(base_url=server.base_url, concurrency=CONCURRENCY, method=method, size=size)
    project.file.write_text(text, encoding="utf-8")
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def written(project: Project) -> dict[str, bytes]:
    """Return the files of all data sets, by their stages."""
    files = (project.home / "store" / "artifacts").glob("*/*/dataset/*")
    return {"/".join(file.parts[-3:]): file.read_bytes() for file in files}


@pytest.mark.experiments
@pytest.mark.parametrize(("method", "size"), [("claif", 60), ("multicsr", 250)])
def test_two_kills_change_no_byte_and_the_ledger_lists_every_payment(
    method: str, size: int, tmp_path: Path, empty_database: Path
) -> None:
    for folder in ("undisturbed", "killed"):
        (tmp_path / folder).mkdir()
    with serving(tmp_path / "undisturbed", *CONTENT) as server:
        undisturbed = new_project(tmp_path / "undisturbed", empty_database, server, method, size)
        called = undisturbed.call("run", "small.yaml", "--jobs", "1")
        assert called.code == 0, called.err
        check_against_the_servers_count(undisturbed, server, PRICE)
    in_all = num_answers(undisturbed)
    with serving(tmp_path / "killed", *CONTENT, *FAULTS) as server:
        killed = new_project(tmp_path / "killed", empty_database, server, method, size)
        kills = []
        for share in KILLED_AT:
            kill_when(killed, lambda share=share: num_answers(killed) >= share * in_all, and_then=0.01)
            kills.append(attempts(killed))
            assert share * in_all <= num_answers(killed) < in_all
        called = killed.call("run", "small.yaml", "--jobs", "1")
        assert called.code == 0, called.err
        check_what_is_asked_again(killed, kills)
        check_against_the_servers_count(killed, server, PRICE)
    assert written(killed) == written(undisturbed) != {}


@pytest.mark.experiments
def test_other_machines_get_the_answers_that_workers_await_at_ctrl_c(
    tmp_path: Path, empty_database: Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    with serving(tmp_path, "--latency", "1") as server:
        project = replace(
            new_project(tmp_path / "one", empty_database, server, "claif", 60),
            environment={VARIABLE: str(shared), CACHE_VARIABLE: str(tmp_path / "cache")},
        )
        process = project.start("run", "small.yaml", "--jobs", "2")
        while process.poll() is None and not server.usage()["answered"]["requests"]:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        called = finished(process)
        num_answered = server.usage()["answered"]["requests"]
    assert called.code == 130, called.err
    other = on_machine(str(shared), tmp_path / "other")
    other.ledger.receive()
    (entry,) = entries(other.answers)
    print(f"{num_answered} answered, {entry}")
    assert (entry.answered.num_attempts, entry.in_doubt.num_attempts) == (num_answered, 0)
