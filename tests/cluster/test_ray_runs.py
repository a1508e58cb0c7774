"""Runs on a Ray cluster of three fake nodes: the bytes of a local run, whatever is lost on the way."""

import os
import random
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ray_nodes import busy_workers, fake_cluster
from small_experiment import Project, finished, new_project, tables

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.experiments

KILLS = 12


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes of one core."""
    with fake_cluster(3) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def gpu_cluster() -> Iterator[Any]:
    """Three nodes that claim to have a GPU."""
    with fake_cluster(3, 2, num_gpus=1) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, bert: Path) -> Project:
    """The same experiment after a run by one process."""
    project = new_project(tmp_path_factory.mktemp("local"), bert)
    assert finished(project.start("run", "small.yaml")).code == 0
    return project


def on(cluster: Any) -> tuple[str, ...]:
    return ("run", "small.yaml", "--executor", "ray", "--address", cluster.address)


def content(project: Project) -> dict[str, str]:
    """Return the hash of each file of each artifact, by the stage's identity and the file's name."""
    from synthbench.engine.store import Store

    store = Store(project.home / "store")
    return {
        f"{identity}/{name}": file["sha256"]
        for identity in [folder.name for folder in (store.root / "artifacts").glob("*/*")]
        for name, file in store.record(identity)["files"].items()
    }


def test_a_cluster_run_has_the_same_bytes_as_a_local_run(
    cluster: Any, project: Project, local: Project
) -> None:
    called = finished(project.start(*on(cluster)))
    assert (called.code, called.errors) == (0, [])
    workers = set(re.findall(r"pid=(\d+)", called.err))
    assert len(workers) > 1
    assert content(project) == content(local)
    assert tables(project) == tables(local)


@pytest.mark.parametrize(
    ("nodes", "options"), [("cluster", ()), ("gpu_cluster", ("--set", "runtime.shards=6"))]
)
def test_runs_with_killed_workers_and_drivers_have_the_same_bytes(
    nodes: str, options: tuple[str, ...], project: Project, local: Project, request: pytest.FixtureRequest
) -> None:
    cluster = request.getfixturevalue(nodes)
    draw = random.Random(0)
    kills = [draw.choice(["worker", "driver"]) for _ in range(KILLS)]
    num_runs = 0
    while True:
        process = project.start(*on(cluster), *options, "--set", "runtime.retries=20")
        num_runs += 1
        done = threading.Event()
        killer = threading.Thread(target=_kill, args=(process, kills, draw, done))
        killer.start()
        called = finished(process)
        done.set()
        killer.join()
        if called.code != -signal.SIGKILL:
            break
    assert (called.code, called.errors) == (0, [])
    print(f"{KILLS - len(kills)} kills, {num_runs} runs")
    assert len(kills) < KILLS / 2, "too few kills came before the end"
    shards = {name.partition("/")[0] for name in content(project).keys() - content(local).keys()}
    assert bool(shards) == bool(options)
    assert content(local).items() <= content(project).items()
    assert tables(project) == tables(local)


def _kill(
    process: "subprocess.Popen[str]", kills: list[str], draw: random.Random, done: threading.Event
) -> None:
    """Kill a worker that computes, or in the end the driver, after random times."""
    while kills and not done.wait(draw.uniform(0.5, 6.0)):
        if kills[-1] == "driver":
            kills.pop()
            os.killpg(process.pid, signal.SIGKILL)
            return
        busy = busy_workers()
        if busy:
            kills.pop()
            draw.choice(busy).kill()


def test_a_lost_node_loses_only_its_stages(project: Project, local: Project) -> None:
    with fake_cluster(3) as cluster:
        process = project.start(*on(cluster))
        _lose_a_node(cluster, process)
        called = finished(process)
    assert (called.code, called.errors) == (0, [])
    assert content(project) == content(local)


def _lose_a_node(cluster: Any, process: "subprocess.Popen[str]") -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if "(train" in line or "(generate" in line:
            break
    for node in list(cluster.worker_nodes):
        cluster.remove_node(node, allow_graceful=False)


def test_a_worker_that_keeps_dying_is_reported_and_the_others_continue(
    cluster: Any, project: Project
) -> None:
    (project.folder / "own.py").write_text(DYING, encoding="utf-8")
    project.change(
        "  augsbert:\n", '  dying:\n    data.gold.prepare: [{step: "own.py:Dying"}]\n  augsbert:\n'
    )
    called = finished(project.start(*on(cluster), "--allow-code", "--set", "runtime.retries=1"))
    assert called.code == 2
    (line,) = called.errors
    assert "dying" in line
    assert "its worker was lost twice" in line
    assert "augsbert" in called.out


DYING = """
import os
from synthbench.api import Step

class Dying(Step):
    version = 1
    def apply(self, records, context):
        os._exit(1)
"""


def test_stages_too_large_for_every_node_are_refused_first(cluster: Any, project: Project) -> None:
    too_much = ("--set", "runtime.resources={train: {gpus: 2}, evaluate: {memory_gb: 500}}")
    called = finished(project.start(*on(cluster), *too_much))
    assert called.code == 2
    assert called.executed == []
    assert len(called.errors) == 2
    assert all("and no node has that much (" in line for line in called.errors)
    assert any(
        "less in runtime.resources.train, or wait" in line and "2 GPUs" in line for line in called.errors
    )
