"""Real processes: interrupted, killed, and several at once in one store."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest
from small_experiment import Called, Project, finished, new_project, tables

SECONDS_OF_PATIENCE = 120


@pytest.fixture
def shared(tmp_path: Path, bert: Path, empty_database: Path) -> Project:
    """A project where nothing has run yet, its tracking database set up."""
    project = new_project(tmp_path, bert)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    return project


def read_until(process: "subprocess.Popen[str]", text: str) -> str:
    """Read a process's output until it contains `text`."""
    stream: IO[str] | None = process.stderr
    assert stream is not None
    said = ""
    for line in stream:
        said += line
        if text in line:
            return said
    raise AssertionError(f"it ended without saying '{text}':\n{said}")


def end_of(process: "subprocess.Popen[str]", said: str = "") -> Called:
    """Wait for the end; `said` is the output read so far."""
    called = finished(process)
    return Called(called.code, called.out, said + called.err)


@contextlib.contextmanager
def no_process_left(process: "subprocess.Popen[str]") -> Iterator[None]:
    """Check in the end that all processes of the session that `process` leads are gone."""
    yield
    left = [
        other
        for other in psutil.process_iter()
        if other.pid != os.getpid() and _session(other.pid) == process.pid and other.status() != "zombie"
    ]
    _, alive = psutil.wait_procs(left, timeout=5)
    assert alive == []


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


@pytest.mark.parametrize(
    ("sign", "code", "jobs"),
    [
        (signal.SIGINT, 130, "2"),
        (signal.SIGTERM, 143, "1"),
        pytest.param(signal.SIGINT, 130, "1", marks=pytest.mark.experiments),
        pytest.param(signal.SIGTERM, 143, "2", marks=pytest.mark.experiments),
    ],
)
def test_an_interrupted_run_says_so_and_can_be_resumed(
    shared: Project, sign: signal.Signals, code: int, jobs: str
) -> None:
    arguments = ("run", "small.yaml", "--variant", "gold-only", "--seeds", "0", "--jobs", jobs)
    process = shared.start(*arguments)
    with no_process_left(process):
        said = read_until(process, "running train gold-only seed 0")
        # Ctrl-C reaches the workers, too; other signals go to the main process only.
        (os.killpg if sign == signal.SIGINT else os.kill)(process.pid, sign)
        called = end_of(process, said)
    assert (called.code, called.out) == (code, "")
    assert not [word for word in ("Traceback", "resource_tracker") if word in called.err]
    last = called.err.splitlines()[-1]
    assert last == f"interrupted; finished work is kept. To resume: synthbench {' '.join(arguments)}"
    resumed = shared.call("run", "small.yaml", "--variant", "gold-only", "--seeds", "0")
    assert resumed.code == 0
    assert "waiting for" not in resumed.err
    assert not {"source gold", "source dev", "source test"} & set(resumed.executed)


@pytest.mark.experiments
def test_killed_workers_leave_no_semaphores(shared: Project) -> None:
    """The cross-encoder's training counts with tqdm, whose lock would be one."""
    shared.change("max_steps: 8\n        batch_size", "max_steps: 4000\n        batch_size")
    process = shared.start("run", "small.yaml", "--variant", "augsbert", "--seeds", "0", "--jobs", "2")
    with no_process_left(process):
        said = read_until(process, "running train cross_encoder")
        while not any((shared.home / "store" / "partial").glob("*/checkpoints/*")):
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGTERM)
        called = end_of(process, said)
    assert called.code == 143
    assert "resource_tracker" not in called.err


@pytest.mark.experiments
def test_two_runs_at_once_share_the_work_and_both_finish(shared: Project) -> None:
    arguments = ("run", "small.yaml", "--variant", "gold-only", "--output")
    both = [shared.start(*arguments, f"reports{number}") for number in (1, 2)]
    first, second = _all_finished(both)
    assert (first.code, second.code) == (0, 0)
    assert first.errors == second.errors == []
    executed = [*first.executed, *second.executed]
    assert len(executed) == len(set(executed)) == 8
    first_tables, second_tables = (tables(shared, f"reports{n}", "variant-gold-only") for n in (1, 2))
    assert first_tables == second_tables


@pytest.mark.experiments
def test_several_processes_give_the_same_table_as_one(
    shared: Project, finished_run: tuple[Project, Called]
) -> None:
    process = shared.start("run", "small.yaml", "--jobs", "2")
    with no_process_left(process):
        called = finished(process)
    assert (called.code, called.errors) == (0, [])
    assert len(called.executed) == len(set(called.executed)) == 19
    assert tables(shared) == tables(finished_run[0])


def test_a_killed_run_is_resumed(shared: Project) -> None:
    process = shared.start("run", "small.yaml", "--variant", "gold-only", "--seeds", "0")
    read_until(process, "running train gold-only seed 0")
    while not any((shared.home / "store" / "partial").glob("*/checkpoints")):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    finished(process)
    assert "resumable" in shared.call("plan", "small.yaml", "--variant", "gold-only").out
    called = shared.call("run", "small.yaml", "--variant", "gold-only", "--seeds", "0")
    assert called.code == 0
    assert f"taking over train gold-only seed 0: process {process.pid}" in called.err
    assert called.executed == ["train gold-only seed 0", "evaluate gold-only seed 0 on test"]


@pytest.mark.experiments
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_five_kills_at_random_moments_change_nothing(
    shared: Project, finished_run: tuple[Project, Called], jobs: str
) -> None:
    draw = random.Random(int(jobs))
    kills = 0
    deadline = time.monotonic() + SECONDS_OF_PATIENCE
    while kills < 5:
        assert time.monotonic() < deadline
        process = shared.start("run", "small.yaml", "--jobs", jobs)
        with no_process_left(process):
            try:
                process.wait(timeout=draw.uniform(1.0, 9.0))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            called = finished(process)
        if called.code == 0:
            break
    assert shared.call("run", "small.yaml").code == 0
    assert tables(shared) == tables(finished_run[0])
    assert shared.call("run", "small.yaml").executed == []


def _all_finished(processes: "list[subprocess.Popen[str]]") -> list[Called]:
    found: dict[int, Called] = {}

    def wait(process: "subprocess.Popen[str]") -> None:
        found[process.pid] = finished(process)

    threads = [threading.Thread(target=wait, args=(process,)) for process in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[process.pid] for process in processes]
