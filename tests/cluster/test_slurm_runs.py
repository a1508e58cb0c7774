"""A whole experiment in tasks of a fake Slurm: killed, signalled, and with drivers that die."""

import random
import signal
import time
from collections import Counter
from pathlib import Path

import fake_slurm
import pytest
from small_experiment import Called, Project, finished, tables

from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, shared_store

pytestmark = pytest.mark.experiments

NUM_KILLS = 20
KILLED = ("task", "task", "task", "signalled task", "signalled task", "signalled task", "driver")
"""Targets of kills, each listed as often as it is killed."""
COMMAND = ("--executor", "slurm", "--set", "runtime.slurm.tasks=3", "--set", "runtime.retries=50")


def contents(store: Store) -> dict[str, dict[str, str]]:
    """Return the hashes of all artifacts' files."""
    found = {identity: store.record(identity)["files"] for identity in store.find()}
    return {key: {name: file["sha256"] for name, file in files.items()} for key, files in found.items()}


def test_runs_with_kills_have_the_bytes_of_a_local_run(
    project: Project,
    finished_run: tuple[Project, Called],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = fake_slurm.install(tmp_path / "fake", monkeypatch)
    (tmp_path / "shared").mkdir()
    for name, value in {
        VARIABLE: str(tmp_path / "shared"),
        CACHE_VARIABLE: str(tmp_path / "driver"),
        LEASE_VARIABLE: "5",
        fake_slurm.NODES: "2",
    }.items():
        monkeypatch.setenv(name, value)
    draw, killed = random.Random(0), Counter[str]()
    process = project.start("run", project.file, *COMMAND)
    while process.poll() is None and killed.total() < NUM_KILLS:
        time.sleep(draw.uniform(0.5, 4.0))
        running = [task for task, each in fake_slurm.tasks(states).items() if each["state"] == "RUNNING"]
        if not running:
            continue
        target = draw.choice(KILLED)
        if target == "driver":
            process.kill()
            process.communicate()
            process = project.start("run", project.file, *COMMAND)
        else:
            number = signal.SIGKILL if target == "task" else signal.SIGUSR1
            fake_slurm.signal_task(states, draw.choice(running), number)
        killed[target] += 1
    called = finished(process)
    print(f"killed: {dict(killed)}")
    assert (called.code, called.errors) == (0, []), called.err[-3000:]
    local, _ = finished_run
    assert contents(shared_store(str(tmp_path / "shared"))) == contents(Store(local.home / "store"))
    assert tables(project)["table.csv"] == tables(local)["table.csv"]
    assert killed.total() > NUM_KILLS / 2, "too few kills came before the end"
    end_of_tasks(states)


def end_of_tasks(states: Path) -> None:
    """Wait for the tasks of killed drivers, whose queues are still open: they end when idle, or now."""
    for task, each in fake_slurm.tasks(states).items():
        if each["state"] == "RUNNING":
            fake_slurm.signal_task(states, task, signal.SIGTERM)
    fake_slurm.wait_for_state(states, len(fake_slurm.tasks(states)), "FAILED", "COMPLETED", "CANCELLED")
