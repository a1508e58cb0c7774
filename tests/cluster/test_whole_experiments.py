"""Quickstart and DINO's Table 2 on a cluster whose workers, nodes and drivers are killed: the local bytes."""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ray_nodes import add_node, busy_workers, fake_cluster
from s3 import BUCKET, SECRET, make_bucket, s3_server
from served_llms import Served, check_against_the_servers_count, serving
from small_experiment import Called, Project, finished

from synthbench.pipeline.engine.store import Store
from synthbench.pipeline.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, shared_store

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.experiments

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
QUICKSTART, TABLE_2 = ("quickstart.yaml",), ("table2_ablation.yaml", "--profile", "sandbox")
NUM_NODES = 3
KILLED = ("worker", "worker", "worker", "node", "driver")
"""What is killed, as often as it stands here."""
PRICE = (1.0, 2.0)
PRICED = f"price: {{input: {PRICE[0]:g}, output: {PRICE[1]:g}, date: '2026-11-01'}}"


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """An S3 server with a bucket; the variables that name it."""
    with s3_server() as address:
        make_bucket(address)
        yield {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }


@pytest.mark.parametrize(
    ("experiment", "num_kills", "where"),
    [(QUICKSTART, 40, "folder"), (TABLE_2, 60, "folder"), (QUICKSTART, 20, "s3")],
    ids=["quickstart", "table 2", "quickstart on s3"],
)
def test_kills_end_in_the_bytes_of_a_local_run(
    experiment: tuple[str, ...],
    num_kills: int,
    where: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local, far = (Project(EXPERIMENTS, tmp_path / name) for name in ("local", "far"))
    servers: dict[str, Served] = {}
    with ExitStack() as stack:
        for project in (local, far) if experiment is QUICKSTART else ():
            log = tmp_path / f"llm of {project.home.name}"
            log.mkdir()
            servers[project.home.name] = stack.enter_context(serving(log))
        called = finished(local.start(*command(experiment, servers.get("local"), tmp_path), "--jobs", "2"))
        assert (called.code, called.errors) == (0, [])
        expected = contents(Store(local.home / "store"))
        if where == "s3":
            for name, value in request.getfixturevalue("s3").items():
                monkeypatch.setenv(name, value)
            monkeypatch.setenv(VARIABLE, f"s3://{BUCKET}/quickstart")
            monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
            monkeypatch.setenv(LEASE_VARIABLE, "5")
        killed: Counter[str] = Counter()
        with fake_cluster(NUM_NODES) as cluster:
            address = ("--executor", "ray", "--address", cluster.address, "--set", "runtime.retries=50")
            far_command = (*command(experiment, servers.get("far"), tmp_path), *address)
            called = with_kills(far, far_command, Killer(cluster, num_kills), killed)
        print(f"killed: {dict(killed)}")
        assert (called.code, called.errors) == (0, [])
        assert killed.total() > num_kills / 2, "too few kills came before the end"
        store = shared_store(os.environ[VARIABLE], tmp_path) if where == "s3" else Store(far.home / "store")
        assert contents(store) == expected
        for project in (local, far) if servers else ():
            check_against_the_servers_count(project, servers[project.home.name], PRICE)


def command(experiment: tuple[str, ...], server: Served | None, folder: Path) -> tuple[str, ...]:
    """Return the command; it names an LLM that outlives the run, if the experiment asks one."""
    common = ("run", *experiment, "--output", str(folder / "reports"))
    if server is None:
        return common
    llm = f"{{name: one, base_url: '{server.base_url}', model: sandbox/llm, {PRICED}}}"
    return (*common, "--set", f"llm={llm}")


def contents(store: Store) -> dict[str, str]:
    """Return the hash of each file of each artifact, by the stage's identity and the file's name."""
    return {
        f"{identity}/{name}": file["sha256"]
        for identity in store.identities()
        for name, file in store.record(identity)["files"].items()
    }


def with_kills(project: Project, command: tuple[str, ...], killer: "Killer", killed: Counter[str]) -> Called:
    """Run the command again and again until it ends by itself."""
    while True:
        process = project.start(*command)
        with ThreadPoolExecutor(1) as pool:
            # Ray starts nodes in the main thread only.
            ended = pool.submit(finished, process)
            killer.work(process, ended, killed)
            called = ended.result()
        if called.code != -signal.SIGKILL:
            return called


class Killer:
    """Kills workers that compute, nodes (others take their places) and drivers, after random times."""

    def __init__(self, cluster: Any, num_kills: int) -> None:
        self._cluster = cluster
        self._draw = random.Random(0)
        self._left = [self._draw.choice(KILLED) for _ in range(num_kills)]

    def work(self, process: "subprocess.Popen[str]", ended: "Future[Called]", killed: Counter[str]) -> None:
        """Kill until the driver is among what was killed, or has ended."""
        while self._left and not wait([ended], self._draw.uniform(0.5, 5.0)).done:
            what = self._left[-1]
            if what == "worker" and not self._kill_a_worker():
                continue
            self._left.pop()
            killed[what] += 1
            if what == "node":
                self._cluster.remove_node(
                    self._draw.choice(list(self._cluster.worker_nodes)), allow_graceful=False
                )
                add_node(self._cluster)
            if what == "driver":
                os.killpg(process.pid, signal.SIGKILL)
                return

    def _kill_a_worker(self) -> bool:
        busy = busy_workers()
        if busy:
            self._draw.choice(busy).kill()
        return bool(busy)
