"""Whole experiments in tasks of a fake Slurm, with kills of every kind."""

import json
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import fake_slurm
import psutil
import pytest
from served_llms import (
    CONCURRENCY,
    PRICE,
    Served,
    asking_project,
    attempts,
    check_against_the_servers_count,
    serving,
)
from shared_stores import hashes, on_machine
from small_experiment import Project, finished, tables

from synthbench.base.durability import unseal
from synthbench.engine.elsewhere import own_code
from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, shared_store
from synthbench.engine.workers import PRELOADED

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.experiments

NUM_KILLS, NUM_NODES = 200, 2
KILLED = Counter({"array task": 15, "signalled task": 8, "node": 8, "worker": 7, "driver": 2})
"""Targets of kills, and how often each is killed in a home. A worker is there only while an LLM is asked."""
COMMAND = ("--executor", "slurm", "--set", "runtime.slurm.tasks=2", "--set", "runtime.retries=50")
OF_KILLS = ("its process was killed", "Slurm's tasks end before they take a stage")
"""How runs end after some kills: the same command goes on."""
STEPS, INTERVAL, LABELLER_STEPS = 160, 20, 8
CHECKPOINT = re.compile(r"checkpoints/checkpoint-(\d+)/complete")
RESUMED = re.compile(r"(train .+): training goes on after step (\d+) of")


def slow_project(folder: Path, bert: Path, empty_database: Path, server: Served) -> Project:
    """Return an experiment whose trainings take long enough to be killed between two checkpoints."""
    project = asking_project(folder, bert, empty_database, server)
    project.change(
        "max_steps: 8\n    evaluations: 2\n", f"max_steps: {STEPS}\n    evaluations: {STEPS // INTERVAL}\n"
    )
    project.change("static: true, static_dimension: 16", "num_layers: 1")
    return project


@dataclass(frozen=True)
class Hit:
    """A training whose process was killed: the newest step on its node's disk, and in the store."""

    label: str
    made: int
    saved: int
    keeps_disk: bool = False


@dataclass
class Killer:
    """Kills what computes at random times; a node loses its disk, too."""

    states: Path
    shared: Path
    most: int
    draw: random.Random
    killed: Counter[str] = field(default_factory=Counter)
    hits: list[Hit] = field(default_factory=list)

    def work(self, process: "subprocess.Popen[str]") -> None:
        """Kill until the driver has ended; what former drivers left is let alone."""
        former = {each["name"] for each in fake_slurm.tasks(self.states).values()}
        while process.poll() is None and self.killed.total() < self.most:
            time.sleep(self.draw.uniform(0.2, 4.0))
            left = KILLED - self.killed
            (kind,) = self.draw.choices(list(left), list(left.values()))
            # What was to be killed may have just ended.
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                self.killed[kind] += process.poll() is None and self._kills(kind, process, former)

    def _kills(self, kind: str, process: "subprocess.Popen[str]", former: set[object]) -> bool:
        found, computing = fake_slurm.running(self.states), self._computing()
        running = {task: each for task, each in found.items() if each["name"] not in former}
        workers = list(workers_of(process))
        if kind == "driver" and (running or workers):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return True
        if kind == "worker" and workers:
            self.draw.choice(workers).kill()
            return True
        targets = [task for task, each in running.items() if each["pid"] in computing]
        if kind in ("driver", "worker") or not targets:
            return False
        task = self.draw.choice(targets)
        node = fake_slurm.node(task, NUM_NODES)
        if kind == "signalled task":
            fake_slurm.signal_task(self.states, task, signal.SIGUSR1)
        elif kind == "array task":
            self._end({task: found[task]}, node, keeps_disk=True)
        else:
            on_node = {each: found[each] for each in found if fake_slurm.node(each, NUM_NODES) == node}
            self._end(on_node, node, keeps_disk=False)
            shutil.rmtree(self.states / node, ignore_errors=True)
        return True

    def _computing(self) -> dict[int, tuple[str, str]]:
        """Return identity and label of each stage that is computed, by its process."""
        found = {}
        for file in (self.shared / "leases").glob(f"{'?' * 64}/[0-9]*"):
            with suppress(FileNotFoundError):  # released meanwhile
                lease = json.loads(file.read_bytes())
                found[lease["pid"]] = (file.parent.name, lease["stage"])
        return found

    def _end(self, tasks: dict[str, dict[str, object]], node: str, *, keeps_disk: bool) -> None:
        """Kill tasks of a node, and note which trainings this hit."""
        for each in tasks:
            fake_slurm.signal_task(self.states, each, signal.SIGKILL)
        while any(fake_slurm.tasks(self.states)[each] == state for each, state in tasks.items()):
            time.sleep(0.02)
        dead, computing = {each["pid"] for each in tasks.values()}, self._computing()
        for identity, label in (stage for pid, stage in computing.items() if pid in dead):
            is_done = any((self.shared / "artifacts").glob(f"*/{identity}/stage.json"))
            if label.startswith("train ") and not is_done:
                disk = (self.states / node).glob(f"**/{identity}/checkpoints/*/complete")
                saves = (self.shared / "unfinished" / identity).glob("*/stage.json")
                saved = "\n".join(name for file in saves for name in unseal(file.read_bytes())["files"])
                self.hits.append(Hit(label, newest("\n".join(map(str, disk))), newest(saved), keeps_disk))


def newest(names: str) -> int:
    """Return the step of the newest checkpoint among files' names, 0 if there is none."""
    return max(map(int, CHECKPOINT.findall(names)), default=0)


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
        project = slow_project(tmp_path / "local", bert, empty_database, server)
        called = finished(project.start("run", project.file))
    assert (called.code, called.errors) == (0, []), called.err[-3000:]
    return project


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tasks that start at once."""
    with fake_slurm.preloaded(PRELOADED, monkeypatch):
        yield


def test_kills_of_every_kind_change_no_byte_and_the_ledger_lists_every_payment(
    local: Project,
    forks: None,
    tmp_path: Path,
    bert: Path,
    empty_database: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """An interrupted test goes on after its last home, if the code is the same."""
    expected = hashes(Store(local.home / "store"))
    cache, key = request.config.cache, f"kills/{own_code()}"
    assert cache is not None
    former, former_hits, num_homes, num_asked_again = cache.get(key, ({}, [], 0, 0))
    killed, hits = Counter[str](former), [Hit(*each) for each in former_hits]
    while killed.total() < NUM_KILLS:
        num_homes += 1
        folder = tmp_path / str(num_homes)
        (folder / "shared").mkdir(parents=True)
        with serving(folder, "--latency", "0.3") as server, monkeypatch.context() as patch:
            project = slow_project(folder, bert, empty_database, server)
            killer = Killer(
                fake_slurm.install(folder / "fake", patch),
                folder / "shared",
                min(KILLED.total(), NUM_KILLS - killed.total()),
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
            assert hashes(shared_store(str(folder / "shared"))) == expected
            assert tables(project)["table.csv"] == tables(local)["table.csv"]
            num_asked_again += check_ledger(folder, server, killer.killed)
            check_resumed(project, killer.hits)
        killed += killer.killed
        hits += killer.hits
        shutil.rmtree(folder)
        print(
            f"{killed.total()} kills in {num_homes} homes: {dict(killed)}; bytes and ledgers equal;"
            f" {num_asked_again} texts asked again, at most {in_flight(killed)} in flight at the kills;"
            f" {len(hits)} trainings hit, {sum(each.made > 0 for each in hits)} after a checkpoint,"
            f" {sum(each.made > each.saved for each in hits)} while it was copied",
            flush=True,
        )
        cache.set(key, (killed, [astuple(each) for each in hits], num_homes, num_asked_again))
    cache.set(key, ({}, [], 0, 0))


def check_resumed(project: Project, hits: list[Hit]) -> None:
    """At most one interval is lost, and trainings go on from what was saved."""
    logs = "\n".join(file.read_text("utf-8") for file in (project.home / "slurm").glob("*/*.log"))
    resumed: dict[str, int] = {}
    for label, step in RESUMED.findall(logs):
        resumed[label] = max(int(step), resumed.get(label, 0))
    for hit in hits:
        assert hit.made - hit.saved <= INTERVAL, hit
        # After its last step a training does not go on: the next task only writes or commits the model.
        last = LABELLER_STEPS if hit.label.startswith("train cross_encoder") else STEPS
        is_over = last in (hit.saved, hit.made if hit.keeps_disk else 0)
        assert is_over or resumed.get(hit.label, 0) >= hit.saved, (hit, resumed)


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
