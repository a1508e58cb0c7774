"""Whole experiments in tasks of a fake Slurm, with kills of every kind."""

import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import fake_slurm
import psutil
import pytest
from served_llms import CONCURRENCY, Served, attempts, check_against_the_servers_count, serving
from shared_stores import on_machine
from small_experiment import Project, finished, new_project, tables

from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, shared_store

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.experiments

NUM_KILLS, MOST_IN_A_HOME, NUM_NODES = 200, 25, 2
KILLED = {"array task": 4, "signalled task": 2, "node": 2, "worker": 3, "driver": 1}
"""Targets of kills, and how often each is drawn. A worker is there only while an LLM is asked."""
COMMAND = ("--executor", "slurm", "--set", "runtime.slurm.tasks=2", "--set", "runtime.retries=50")
OF_KILLS = ("its process was killed", "Slurm's tasks end before they take a stage")
"""How runs end after some kills: the same command goes on."""
PRICE = (1.0, 2.0)
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


def asking_project(folder: Path, bert: Path, empty_database: Path, server: Served) -> Project:
    """Return the small experiment with one more row, whose data an LLM makes."""
    project = new_project(folder, bert)
    project.change("sources:\n", LLM.format(base_url=server.base_url, concurrency=CONCURRENCY))
    project.change("variants:\n", ASKING)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def contents(store: Store) -> dict[str, dict[str, str]]:
    """Return the hashes of all artifacts' files."""
    found = {identity: store.record(identity)["files"] for identity in store.find()}
    return {key: {name: file["sha256"] for name, file in files.items()} for key, files in found.items()}


@dataclass
class Killer:
    """Kills what computes at random times; a node loses its disk, too."""

    states: Path
    most: int
    draw: random.Random
    killed: Counter[str] = field(default_factory=Counter)

    def work(self, process: "subprocess.Popen[str]") -> None:
        """Kill until the driver has ended; what former drivers left is let alone."""
        former = {each["name"] for each in fake_slurm.tasks(self.states).values()}
        while process.poll() is None and self.killed.total() < self.most:
            time.sleep(self.draw.uniform(0.2, 2.5))
            (kind,) = self.draw.choices(list(KILLED), list(KILLED.values()))
            # What was to be killed may have just ended.
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                self.killed[kind] += process.poll() is None and self._kills(kind, process, former)

    def _kills(self, kind: str, process: "subprocess.Popen[str]", former: set[object]) -> bool:
        found = fake_slurm.running(self.states)
        running = {task: each for task, each in found.items() if each["name"] not in former}
        workers = list(workers_of(process))
        if kind == "driver" and (running or workers):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
        if kind == "worker" and workers:
            self.draw.choice(workers).kill()
            return True
        if kind in ("driver", "worker") or not running:
            return False
        task = self.draw.choice(list(running))
        if kind != "node":
            number = signal.SIGUSR1 if kind == "signalled task" else signal.SIGKILL
            fake_slurm.signal_task(self.states, task, number)
            return True
        node = fake_slurm.node(task, NUM_NODES)
        lost = {each: state for each, state in found.items() if fake_slurm.node(each, NUM_NODES) == node}
        for each in lost:
            fake_slurm.signal_task(self.states, each, signal.SIGKILL)
        while any(fake_slurm.tasks(self.states)[each] == state for each, state in lost.items()):
            time.sleep(0.02)
        shutil.rmtree(self.states / node, ignore_errors=True)
        return True


def workers_of(driver: "subprocess.Popen[str]") -> Iterator[psutil.Process]:
    """Yield the processes in which a driver computes stages."""
    for child in psutil.Process(driver.pid).children():
        for each in child.children():
            if "multiprocessing.forkserver" in " ".join(each.cmdline()):
                yield each


@pytest.fixture
def local(tmp_path: Path, bert: Path, empty_database: Path) -> Project:
    """The experiment after an undisturbed run by one process."""
    (tmp_path / "local").mkdir()
    with serving(tmp_path / "local") as server:
        project = asking_project(tmp_path / "local", bert, empty_database, server)
        called = finished(project.start("run", project.file))
    assert (called.code, called.errors) == (0, []), called.err[-3000:]
    return project


def test_kills_of_every_kind_change_no_byte_and_the_ledger_lists_every_payment(
    local: Project, tmp_path: Path, bert: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = contents(Store(local.home / "store"))
    killed, num_homes, num_asked_again = Counter[str](), 0, 0
    while killed.total() < NUM_KILLS:
        num_homes += 1
        folder = tmp_path / str(num_homes)
        (folder / "shared").mkdir(parents=True)
        with serving(folder, "--latency", "0.3") as server, monkeypatch.context() as patch:
            project = asking_project(folder, bert, empty_database, server)
            killer = Killer(
                fake_slurm.install(folder / "fake", patch),
                min(MOST_IN_A_HOME, NUM_KILLS - killed.total()),
                random.Random(num_homes),
            )
            for name, value in {
                VARIABLE: str(folder / "shared"),
                CACHE_VARIABLE: str(folder / "driver"),
                LEASE_VARIABLE: "3",
                fake_slurm.NODES: str(NUM_NODES),
            }.items():
                patch.setenv(name, value)
            while True:
                process = project.start("run", project.file, *COMMAND)
                killer.work(process)
                called = finished(process)
                if called.code == 0:
                    break
                was_hit = called.code == -signal.SIGKILL or any(line in called.err for line in OF_KILLS)
                assert was_hit, called.err[-3000:]
            end_of_tasks(killer.states)
            assert contents(shared_store(str(folder / "shared"))) == expected
            assert tables(project)["table.csv"] == tables(local)["table.csv"]
            num_asked_again += check_ledger(folder, server, killer.killed)
        killed += killer.killed
        shutil.rmtree(folder)
        print(
            f"{killed.total()} kills in {num_homes} homes: {dict(killed)}; bytes and ledgers equal;"
            f" {num_asked_again} texts asked again, at most {in_flight(killed)} in flight at the kills",
            flush=True,
        )


def check_ledger(folder: Path, server: Served, killed: Counter[str]) -> int:
    """Compare the ledger, as a new machine sees it, with the server's count; return the texts asked again."""
    seen = Project(folder, folder / "new")
    on_machine(str(folder / "shared"), seen.home / "store").ledger.receive()
    check_against_the_servers_count(seen, server, PRICE)
    num_again = len(server.outcomes()) - len({each.key for each in attempts(seen)})
    assert num_again <= in_flight(killed)
    return num_again


def in_flight(killed: Counter[str]) -> int:
    """Return how many requests were in flight at the kills, at most."""
    return CONCURRENCY * (killed["driver"] + killed["worker"])


def end_of_tasks(states: Path) -> None:
    """End the tasks of killed drivers, whose queues are still open."""
    end = time.monotonic() + 60
    while any(each["state"] in fake_slurm.LIVE for each in fake_slurm.tasks(states).values()):
        assert time.monotonic() < end, fake_slurm.tasks(states)
        for task in fake_slurm.running(states):
            with suppress(ProcessLookupError):
                fake_slurm.signal_task(states, task, signal.SIGTERM)
        time.sleep(0.1)
