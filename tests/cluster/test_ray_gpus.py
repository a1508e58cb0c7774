"""Shards on a Ray cluster's GPUs: reuse of models, waiting, lost workers and nodes.

The GPUs are names that nodes claim to have. Stages write down what their process sees.
"""

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fake_stages import Graph, Work, names
from fakes import Lines
from ray_nodes import NODE, busy_workers, fake_cluster

from synthbench.base.runtime import Runtime
from synthbench.engine.devices import VISIBLE
from synthbench.engine.ray_executor import ray_cluster
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.models.warm import loaded

pytestmark = pytest.mark.experiments

TESTS = Path(__file__).parents[1]
RETRIES = 30


@dataclass(frozen=True)
class Seen:
    """A stage's observations: its process, GPUs, number of models loaded in the process, and times."""

    name: str
    pid: int
    gpus: str | None
    num_loads: int
    began: float
    ended: float

    def overlaps(self, other: "Seen") -> bool:
        return self.began < other.ended and other.began < self.ended


_loads: list[str] = []
"""The models that this process has loaded."""


@dataclass(frozen=True)
class Computes(Work):
    """Uses a model for a while, and writes down what its process sees; may kill it."""

    kind: ClassVar[str] = "generate"
    log: str = ""
    gpus: float = 1.0

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        began = time.time()
        loaded("the model", lambda: _loads.append(self.name))
        if self.behaviour == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        super().run(inputs, work)
        seen = Seen(self.name, os.getpid(), os.environ.get(VISIBLE), len(_loads), began, time.time())
        file = Path(self.log) / f"{self.name} {os.getpid()} {began}.json"
        file.write_text(json.dumps(asdict(seen)), encoding="utf-8")


@dataclass
class Laboratory:
    """A cluster, a store, and the stages' observations."""

    cluster: Any
    store: Store
    folder: Path
    retries: int = RETRIES

    def shards(self, of: str, number: int, *, behaviour: str = "sleep 0.2", gpus: float = 1.0) -> list[Stage]:
        return [self._stage(f"{of}-{index}", behaviour, gpus, of) for index in range(number)]

    def stage(self, name: str, *, gpus: float = 1.0) -> Stage:
        return self._stage(name, "sleep 0.2", gpus, "")

    def _stage(self, name: str, behaviour: str, gpus: float, paid_by: str) -> Stage:
        work = Computes(name, {"name": name}, behaviour=behaviour, log=str(self.folder), gpus=gpus)
        return Stage(work, {}, name, paid_by=paid_by)

    def run(self, stages: Sequence[Stage], say: Callable[[str], None] | None = None) -> RunReport:
        runtime = Runtime(executor="ray", address=self.cluster.address, retries=self.retries)
        lines = Lines()
        if say is not None:
            lines.say = say  # type: ignore[method-assign]
        with ray_cluster(runtime, stages, _needs, self.store.root, 1) as executor:
            report = Runner(self.store, executor, runtime, lines).run(Graph(stages))  # type: ignore[arg-type]
            assert not executor._workers, "nothing is with Ray in the end"
        return report

    @property
    def seen(self) -> list[Seen]:
        files = self.folder.glob("*.json")
        return sorted(
            (Seen(**json.loads(file.read_text("utf-8"))) for file in files), key=lambda each: each.began
        )

    def pids(self, of: str) -> Counter[int]:
        """Return how many of the stages with such names each process ran."""
        return Counter(each.pid for each in self.seen if each.name.partition("-")[0] == of)


def _needs(stage: Stage, _: float) -> Needs:
    return Needs(1, stage.operation.gpus, 0.1)  # type: ignore[attr-defined]


def laboratory(cluster: Any, folder: Path) -> Laboratory:
    (folder / "seen").mkdir()
    return Laboratory(cluster, Store(folder / "store"), folder / "seen")


@pytest.fixture(scope="module")
def _tests_on_the_path() -> Iterator[None]:
    """Let workers import this module: they inherit the variables of the nodes, which start later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), str(TESTS / "cluster")]))
        yield


@pytest.fixture(scope="module")
def one_gpu(_tests_on_the_path: None) -> Iterator[Any]:
    with fake_cluster(1, 4, num_gpus=1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def two_gpus(_tests_on_the_path: None) -> Iterator[Any]:
    with fake_cluster(2, 2, num_gpus=1) as cluster:
        yield cluster


def test_shards_of_a_stage_load_their_model_once_then_release_the_gpu(one_gpu: Any, tmp_path: Path) -> None:
    there = laboratory(one_gpu, tmp_path)
    stages = [*there.shards("a", 5), *there.shards("b", 3), there.stage("alone"), there.stage("cpu", gpus=0)]
    report = there.run(stages)
    assert not report.failed
    assert sorted(names(report.executed)) == sorted(names(stages))
    assert list(there.pids("a").values()) == [5]
    assert list(there.pids("b").values()) == [3]
    assert all(each.num_loads == 1 for each in there.seen)
    on_gpu = [each for each in there.seen if each.name != "cpu"]
    assert {each.gpus for each in on_gpu} == {"0"}
    assert len({each.pid for each in on_gpu}) == 3, "a, b and the stage alone have a process each"
    assert not any(one.overlaps(other) for one in on_gpu for other in on_gpu if one is not other)


def test_shards_of_one_stage_take_all_gpus(two_gpus: Any, tmp_path: Path) -> None:
    there = laboratory(two_gpus, tmp_path)
    report = there.run(there.shards("a", 8, behaviour="sleep 2"))
    assert len(report.executed) == 8
    assert len(there.pids("a")) == 2
    assert all(each.num_loads == 1 for each in there.seen)


def test_shards_that_share_a_gpu_have_a_process_each(one_gpu: Any, tmp_path: Path) -> None:
    there = laboratory(one_gpu, tmp_path)
    there.run(there.shards("a", 6, behaviour="sleep 2", gpus=0.5))
    assert len(there.pids("a")) == 2
    assert {each.gpus for each in there.seen} == {"0"}


def test_killed_workers_lose_no_shard(two_gpus: Any, tmp_path: Path) -> None:
    there = laboratory(two_gpus, tmp_path)
    stages = [*there.shards("a", 12, behaviour="sleep 1"), *there.shards("b", 6, behaviour="sleep 1")]
    done, draw, killed = threading.Event(), random.Random(0), [0]

    def kill() -> None:
        while killed[0] < 8 and not done.wait(draw.uniform(0.3, 2.0)):
            busy = busy_workers()
            if busy:
                draw.choice(busy).kill()
                killed[0] += 1

    killer = threading.Thread(target=kill)
    killer.start()
    report = there.run(stages)
    done.set()
    killer.join()
    assert not report.failed
    assert sorted(names(report.executed)) == sorted(names(stages))
    assert killed[0] >= 4, "too few kills came before the end"
    print(f"killed: {killed[0]}, processes: {len(there.pids('a')) + len(there.pids('b'))}")
    assert all(each.num_loads == 1 for each in there.seen)


def test_a_shard_that_kills_its_worker_is_reported_and_the_others_finish(
    one_gpu: Any, tmp_path: Path
) -> None:
    there = laboratory(one_gpu, tmp_path)
    there.retries = 1
    good, bad = there.shards("good", 4), there.shards("bad", 1, behaviour="dies")
    mixed = [
        Stage(each.operation, {}, each.label, paid_by="one stage") for each in (*good[:2], *bad, *good[2:])
    ]
    report = there.run([*mixed, there.stage("alone")])
    ((stage, lines),) = report.failed.values()
    assert stage.operation.component == "bad-0"
    assert "its worker was lost twice" in lines[0]
    assert sorted(names(report.executed)) == ["alone", "good-0", "good-1", "good-2", "good-3"]


def test_a_lost_node_fails_no_stage(_tests_on_the_path: None, tmp_path: Path) -> None:
    with fake_cluster(1, 1, num_gpus=0) as cluster:
        first, _ = (cluster.add_node(**NODE, num_cpus=1, num_gpus=1) for _ in range(2))
        cluster.wait_for_nodes()
        there = laboratory(cluster, tmp_path)
        lost: list[str] = []

        def lose_the_first_node(line: str) -> None:
            if line.startswith("done") and not lost:
                lost.append(line)
                cluster.remove_node(first, allow_graceful=False)

        report = there.run(there.shards("a", 8, behaviour="sleep 1"), lose_the_first_node)
    assert lost
    assert not report.failed
    assert len(report.executed) == 8
