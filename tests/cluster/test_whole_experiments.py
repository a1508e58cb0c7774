"""Quickstart and DINO's Table 2 give the local bytes, on a cluster with kills and by two drivers at once."""

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ray_nodes import add_node, busy_workers, fake_cluster
from s3 import BUCKET, SECRET, make_bucket, s3_server
from served_llms import Served, check_against_the_servers_count, serving
from small_experiment import Called, Project, finished

from synthbench.engine.store import Store
from synthbench.engine.stores import CACHE_VARIABLE, LEASE_VARIABLE, VARIABLE, shared_store

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.experiments

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
QUICKSTART, TABLE_2 = ("quickstart.yaml",), ("table2_ablation.yaml", "--profile", "sandbox")
NUM_NODES = 3
KILLED = ("worker", "worker", "worker", "node", "driver")
"""Targets of kills, each listed as often as it is killed."""
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


@dataclass
class LocalRuns:
    """Experiments as one machine runs them, each once."""

    folder: Path
    servers: ExitStack
    ran: dict[tuple[str, ...], "LocalRun"] = field(default_factory=dict)

    def of(self, experiment: tuple[str, ...]) -> "LocalRun":
        if experiment not in self.ran:
            folder = self.folder / str(len(self.ran))
            server = self.serve(folder) if experiment is QUICKSTART else None
            project = Project(EXPERIMENTS, folder / "home", {VARIABLE: ""})
            called = finished(project.start(*command(experiment, server, folder), "--jobs", "2"))
            assert (called.code, called.errors) == (0, [])
            if server is not None:
                check_against_the_servers_count(project, server, PRICE)
            self.ran[experiment] = LocalRun(called, contents(Store(project.home / "store")), folder, server)
        return self.ran[experiment]

    def serve(self, folder: Path) -> Served:
        """Start an LLM that writes its log there."""
        (folder / "llm").mkdir(parents=True)
        return self.servers.enter_context(serving(folder / "llm"))


@dataclass(frozen=True)
class LocalRun:
    """A run's output and results, its reports' folder, and its LLM."""

    called: Called
    contents: dict[str, str]
    folder: Path
    server: Served | None

    def num_requests(self) -> int:
        assert self.server is not None
        return len(self.server.outcomes())


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalRuns]:
    with ExitStack() as servers:
        yield LocalRuns(tmp_path_factory.mktemp("local"), servers)


@pytest.fixture
def bucket(s3: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty store on the S3 server, which commands that are started now use."""
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    url = f"s3://{BUCKET}/{tmp_path.name}"
    monkeypatch.setenv(VARIABLE, url)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(LEASE_VARIABLE, "5")
    return url


@pytest.mark.parametrize(
    ("experiment", "num_kills", "where"),
    [(QUICKSTART, 40, "folder"), (TABLE_2, 60, "folder"), (QUICKSTART, 20, "s3"), (TABLE_2, 10, "s3")],
    ids=["quickstart", "table 2", "quickstart on s3", "table 2 on s3"],
)
def test_runs_with_kills_have_the_same_bytes_as_a_local_run(
    experiment: tuple[str, ...],
    num_kills: int,
    where: str,
    local: LocalRuns,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    expected = local.of(experiment)
    server = local.serve(tmp_path) if expected.server else None
    url = request.getfixturevalue("bucket") if where == "s3" else ""
    far, killed = Project(EXPERIMENTS, tmp_path / "far"), Counter[str]()
    with fake_cluster(NUM_NODES) as cluster:
        address = ("--executor", "ray", "--address", cluster.address, "--set", "runtime.retries=50")
        far_command = (*command(experiment, server, tmp_path), *address)
        called = with_kills(far, far_command, Killer(cluster, num_kills), killed)
    print(f"killed: {dict(killed)}")
    assert (called.code, called.errors) == (0, [])
    assert killed.total() > num_kills / 2, "too few kills came before the end"
    store = shared_store(url, tmp_path) if url else Store(far.home / "store")
    assert contents(store) == expected.contents
    if server is not None:
        check_against_the_servers_count(far, server, PRICE)


def test_two_drivers_on_one_bucket_compute_no_stage_of_quickstart_twice(
    local: LocalRuns, bucket: str, tmp_path: Path
) -> None:
    """Each has a home, a cache and reports of its own. They share the LLM, and the store's ledger."""
    expected = local.of(QUICKSTART)
    folders = [tmp_path / "one", tmp_path / "other"]
    server = local.serve(tmp_path)
    drivers = [
        Project(EXPERIMENTS, folder / "home", {CACHE_VARIABLE: str(folder / "cache")}) for folder in folders
    ]
    started = [
        driver.start(*command(QUICKSTART, server, folder), "--jobs", "1", "--set", "runtime.threads=1")
        for driver, folder in zip(drivers, folders, strict=True)
    ]
    with ThreadPoolExecutor(len(started)) as pool:
        called = list(pool.map(finished, started))
    assert [(each.code, each.errors) for each in called] == [(0, [])] * 2
    executed = [each.executed for each in called]
    print(f"stages: {[len(each) for each in executed]}, locally {len(expected.called.executed)}")
    assert Counter(executed[0] + executed[1]) == Counter(expected.called.executed)
    assert all(executed), "both had something to do"
    assert contents(shared_store(bucket, tmp_path)) == expected.contents
    for driver in drivers:
        check_against_the_servers_count(driver, server, PRICE)
    assert len(server.outcomes()) == expected.num_requests()
    assert {table(folder) for folder in folders} == {table(expected.folder)}


def table(folder: Path) -> bytes:
    """Return the run's table of scores; other files contain the LLM's address."""
    (file,) = (folder / "reports").rglob("table.csv")
    return file.read_bytes()


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
        for identity in store.find()
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
    """Kills busy workers, nodes (which are replaced) and drivers, after random times."""

    def __init__(self, cluster: Any, num_kills: int) -> None:
        self._cluster = cluster
        self._draw = random.Random(0)
        self._left = [self._draw.choice(KILLED) for _ in range(num_kills)]

    def work(self, process: "subprocess.Popen[str]", ended: "Future[Called]", killed: Counter[str]) -> None:
        """Kill targets until the driver has been killed or has ended."""
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
