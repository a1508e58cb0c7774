"""2,000 sentences from an LLM that fails in every way, killed ten times: nothing is lost or paid unnoted.

The LLM is a server of its own, which outlives the runs. It keeps its own count and logs each attempt by its
id, so that the ledger can be held against it attempt by attempt.
"""

import json
import os
import random
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

import pytest
from small_experiment import Project, artifact, finished

from synthbench.llm.cache import FILE
from synthbench.llm.ledger import Amount, entries

CONCURRENCY = 16
NUM_KILLS = 10
CONTENT = ("--refusals", "0.1", "--malformed", "0.1", "--latency", "0.01")
FAULTS = ("--rate-limited", "0.07", "--retry-after", "0", "--server-errors", "0.07", "--drops", "0.06")
EXPERIMENT = """\
experiment: faulty
llm:
  name: faulty
  base_url: {base_url}
  model: sandbox/llm
  concurrency: 16
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
KILLED = "ended before the answer"


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


def new_project(folder: Path, empty_database: Path, server: Served) -> Project:
    project = Project(folder / "experiment", folder / "home")
    project.folder.mkdir(parents=True)
    project.file.write_text(EXPERIMENT.format(base_url=server.base_url), encoding="utf-8")
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def answers(project: Project) -> Path:
    return project.home / "store" / "llm"


def attempts(project: Project) -> list[Attempt]:
    query = (
        "SELECT id, session || '-' || id, key, state, reason, prompt_tokens, completion_tokens FROM attempts"
        " ORDER BY id"
    )
    return [Attempt(*row) for row in rows(project, query)]


def num_answers(project: Project) -> int:
    return sum(number for (number,) in rows(project, "SELECT count(*) FROM answers"))


def rows(project: Project, query: str) -> list[Any]:
    file = answers(project) / FILE
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
        # The tables come a moment after the file.
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return database.execute(query).fetchall() if ("attempts",) in tables else []


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


def kill_when(project: Project, is_time: Callable[[], bool], and_then: float) -> None:
    """Run, and kill so many seconds after it is time."""
    process = project.start("run", "small.yaml", "--jobs", "1")
    while process.poll() is None and not is_time():
        time.sleep(0.002)
    time.sleep(and_then)
    assert process.poll() is None, finished(process).err
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)


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


def told(entry_of: Callable[[Any], Amount], project: Project) -> Amount:
    """Return the sum of the ledger's entries."""
    amounts = [entry_of(entry) for entry in entries(answers(project))]
    return Amount(
        sum(each.num_attempts for each in amounts),
        sum(each.prompt_tokens for each in amounts),
        sum(each.completion_tokens for each in amounts),
        sum(each.usd for each in amounts),
    )


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
    assert {each.state for each in noted} == {"answered", "refused", "in doubt"}
    last_of = {each.key: each for each in noted}
    assert all(each.state == "answered" for each in last_of.values())
    assert len(last_of) == sum(each.state == "answered" for each in noted)


def check_against_the_servers_count(project: Project, server: Served) -> None:
    """Hold each attempt against the server's log, and the ledger's sums against its count of tokens.

    What was in flight at a kill, and only that, may be in doubt without a bill: it had not left, or was
    turned away and nobody was there to hear it. The client can't know; the server's log says which.
    """
    noted, outcomes = attempts(project), server.outcomes()
    assert outcomes.keys() <= {each.name for each in noted}
    unbilled = []
    for each in noted:
        outcome = outcomes.get(each.name, "never came")
        if each.state == "answered":
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
        told(lambda entry: entry.answered, project),
        told(lambda entry: entry.in_doubt, project),
    )
    assert server.billed() == (
        answered.prompt_tokens + in_doubt.prompt_tokens - sum(tokens[each.key][0] for each in unbilled),
        answered.completion_tokens
        + in_doubt.completion_tokens
        - sum(tokens[each.key][1] for each in unbilled),
    )
    assert answered.usd == pytest.approx((answered.prompt_tokens + 2 * answered.completion_tokens) / 1e6)
    print(f"ledger: answered {answered}; in doubt {in_doubt}")
    print(f"in doubt and not billed: {Counter(outcomes.get(each.name, 'never came') for each in unbilled)}")
    print(f"the server's count: {server.usage()}, billed {server.billed()}")


@pytest.mark.experiments
def test_ten_kills_and_every_fault_change_no_byte_and_all_that_is_paid_is_in_the_ledger(
    tmp_path: Path, empty_database: Path
) -> None:
    for folder in ("undisturbed", "killed"):
        (tmp_path / folder).mkdir()
    with serving(tmp_path / "undisturbed", *CONTENT) as server:
        undisturbed = new_project(tmp_path / "undisturbed", empty_database, server)
        called = undisturbed.call("run", "small.yaml", "--jobs", "1")
        assert called.code == 0, called.err
        check_against_the_servers_count(undisturbed, server)
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
        check_against_the_servers_count(killed, server)
    print(killed.call("ledger", "faulty").out)
    assert written(killed) == written(undisturbed)
