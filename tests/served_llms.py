"""An LLM that outlives the runs which ask it, and the ledger held against its own count."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from small_experiment import Project, finished, new_project

from synthbench.engine.stores import open_store
from synthbench.llm.cache import FILE
from synthbench.llm.ledger import AttemptTotals, StageAttempts, entries

KILLED = "ended before the answer"
CONCURRENCY = 16
"""Requests that a project which is killed has under way at most."""
PRICE = (1.0, 2.0)
"""US dollars for a million tokens of prompts and of answers, as `asking_project` says."""
LLM = """\
llm:
  name: served
  base_url: {base_url}
  model: sandbox/llm
  concurrency: {concurrency}
  price: {{input: 1, output: 2, date: "2026-11-24"}}
sources:
  sentences: {{sandbox: sentences, split: train, size: 60}}
"""
ASKING = "variants:\n  claif:\n    data.silver: {method: claif, sources: {sentences: sentences}}\n"


@dataclass(frozen=True)
class Served:
    """A server: where it is, and the log that it writes."""

    base_url: str
    log: Path

    def usage(self) -> dict[str, Any]:
        """Return the server's own count."""
        with urllib.request.urlopen(self.base_url + "/usage") as response:
            return dict(json.load(response))

    def billed(self) -> tuple[int, int]:
        """Return the tokens of prompts and of answers that the server would bill."""
        counts = self.usage()
        prompt, completion = (
            sum(counts[outcome][kind] for outcome in ("answered", "dropped"))
            for kind in ("prompt_tokens", "completion_tokens")
        )
        return prompt, completion

    def outcomes(self) -> dict[str, str]:
        """Return what became of each attempt that came, by its id: 200, 429, 500, "-" if it was dropped."""
        lines = re.findall(
            r"^POST /v1/chat/completions (\S+) .* (\w+-\d+)$", self.log.read_text("utf-8"), re.MULTILINE
        )
        assert len({name for _, name in lines}) == len(lines)
        return {name: status for status, name in lines}


@dataclass(frozen=True)
class Attempt:
    """A row of the ledger; `name` is the id under which it left."""

    number: int
    name: str
    key: str
    state: str
    reason: str
    prompt_tokens: int
    completion_tokens: int


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    """Run `synthbench sandbox serve` until the end of the block."""
    log = folder / "log"
    command = [str(Path(sys.executable).with_name("synthbench")), "sandbox", "serve", "--port", "0", *options]
    with log.open("w") as written:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=written, text=True)
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().split()[0], log)
        finally:
            process.kill()
            process.communicate()


def asking_project(folder: Path, bert: Path, empty_database: Path, server: Served) -> Project:
    """Return the small experiment with one more row, whose data an LLM makes."""
    project = new_project(folder, bert)
    project.change("sources:\n", LLM.format(base_url=server.base_url, concurrency=CONCURRENCY))
    project.change("variants:\n", ASKING)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def answers(project: Project) -> Path:
    """Return the folder of answers and ledger; of a shared store, this machine's copy, brought up to date."""
    variables = {"SYNTHBENCH_HOME": str(project.home), **project.environment}
    with mock.patch.dict(os.environ, variables):
        store = open_store()
        store.ledger.receive()
        return store.answers


def attempts(project: Project, endpoint: str = "%") -> list[Attempt]:
    """Return the ledger's rows, in the order in which they left; of one LLM if it is named."""
    query = (
        "SELECT id, session || '-' || id, key, state, reason, prompt_tokens, completion_tokens FROM attempts"
        f" WHERE endpoint LIKE '{endpoint}' ORDER BY id"
    )
    return [Attempt(*row) for row in rows(project, query)]


def num_answers(project: Project) -> int:
    """Return the number of cached answers."""
    return sum(number for (number,) in rows(project, "SELECT count(*) FROM answers"))


def rows(project: Project, query: str) -> list[Any]:
    """Return what the file of answers holds; nothing before it is there."""
    file = answers(project) / FILE
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        # The tables come a moment after the file.
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return database.execute(query).fetchall() if ("attempts",) in tables else []


def told(
    entry_of: Callable[[StageAttempts], AttemptTotals], project: Project, endpoint: str = ""
) -> AttemptTotals:
    """Return the sum of the ledger's entries; of one LLM if it is named."""
    found = [entry for entry in entries(answers(project)) if endpoint in ("", entry.endpoint)]
    amounts = [entry_of(entry) for entry in found]
    return AttemptTotals(
        sum(each.num_attempts for each in amounts),
        sum(each.prompt_tokens for each in amounts),
        sum(each.completion_tokens for each in amounts),
        sum(each.usd for each in amounts),
    )


def check_against_the_servers_count(
    project: Project, server: Served, price: tuple[float, float], endpoint: str = ""
) -> None:
    """Hold each attempt against the server's log, and the ledger's sums against its count of tokens.

    `price` is in US dollars for a million tokens of prompts and of answers; `endpoint` is the LLM's name,
    where the project asks several.

    What was in flight at a kill, and only that, may be in doubt without a bill: it had not left, or was
    turned away and nobody was there to hear it. The client can't know; the server's log says which.
    """
    noted, outcomes = attempts(project, endpoint or "%"), server.outcomes()
    assert outcomes.keys() <= {each.name for each in noted}
    unbilled = []
    for each in noted:
        outcome = outcomes.get(each.name, "never came")
        if each.state in ("answered", "unfinished"):
            assert outcome == "200"
        elif each.state == "refused":
            assert outcome in ("429", "500")
        elif each.reason != KILLED:
            assert outcome == "-"
        elif outcome not in ("200", "-"):
            unbilled.append(each)
    tokens = {
        each.key: (each.prompt_tokens, each.completion_tokens) for each in noted if each.state == "answered"
    }
    answered, in_doubt = (
        told(lambda entry: entry.paid, project, endpoint),
        told(lambda entry: entry.in_doubt, project, endpoint),
    )
    assert server.billed() == (
        answered.prompt_tokens + in_doubt.prompt_tokens - sum(tokens[each.key][0] for each in unbilled),
        answered.completion_tokens
        + in_doubt.completion_tokens
        - sum(tokens[each.key][1] for each in unbilled),
    )
    paid = price[0] * answered.prompt_tokens + price[1] * answered.completion_tokens
    assert answered.usd == pytest.approx(paid / 1e6)
    print(f"ledger: answered {answered}; in doubt {in_doubt}")
    print(f"in doubt and not billed: {Counter(outcomes.get(each.name, 'never came') for each in unbilled)}")
    print(f"the server's count: {server.usage()}, billed {server.billed()}")


def kill_when(project: Project, is_time: Callable[[], bool], and_then: float) -> None:
    """Run, and kill so many seconds after it is time."""
    process = project.start("run", project.file.name, "--jobs", "1")
    while process.poll() is None and not is_time():
        time.sleep(0.002)
    time.sleep(and_then)
    assert process.poll() is None, finished(process).err
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)


def check_what_is_asked_again(project: Project, kills: list[list[Attempt]]) -> None:
    """No answer is asked for again; but for refused attempts, only what a kill or the server cut off is."""
    noted = attempts(project)
    under_way: set[str] = set()
    for before in kills:
        answered = {each.key for each in before if each.state == "answered"}
        last = max((each.number for each in before), default=0)
        assert not answered & {each.key for each in noted if each.number > last}
        cut_off = {each.name for each in before if each.state == "sent"}
        assert len(cut_off) <= CONCURRENCY
        under_way |= cut_off
    assert {each.name for each in noted if each.reason == KILLED} == under_way
    assert {each.state for each in noted} - {"unfinished"} == {"answered", "refused", "in doubt"}
    last_of = {each.key: each for each in noted}
    assert all(each.state == "answered" for each in last_of.values())
    assert len(last_of) == sum(each.state == "answered" for each in noted)
