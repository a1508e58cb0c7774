"""GPU leases of jobs: visibility, waiting, refusals. Tests use GPU names, not real GPUs."""

import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from experiment_files import ExperimentFile
from fake_stages import Sees, Work, in_process, names, wait_for
from fakes import Lines
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from wording import refused

from synthbench.base.runtime import Resources, Runtime
from synthbench.engine.artifacts import fetch
from synthbench.engine.devices import (
    VISIBLE,
    Devices,
    GPULease,
    local_gpus,
    side_by_side,
    visible,
    with_leased,
)
from synthbench.engine.jobs import StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.runner import Runner, RunReport
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.facts import StageFacts
from synthbench.estimates.needs import needs_of
from synthbench.estimates.side_by_side import Capacity, local_devices, room_for
from synthbench.pipeline.planning import make_plan


@dataclass
class Seen:
    """A stage's observations."""

    name: str
    gpus: str | None
    device: str
    pid: int
    began: float
    ended: float


@dataclass
class Machine:
    """A machine with these GPUs, that runs stages `jobs` at a time."""

    store: Store
    folder: Path
    gpus: Sequence[str] = ("0", "1")
    jobs: int = 2
    seen: dict[str, Seen] = field(default_factory=dict)

    def stage(
        self, name: str, gpus: float = 1.0, *inputs: Stage, behaviour: str = "sleep 0.2", awaits: str = ""
    ) -> Stage:
        work = Sees(name, behaviour=behaviour, log=str(self.folder), gpus=gpus, awaits=awaits)
        return Stage(work, {each.operation.component: each for each in inputs}, name)

    def run(self, *stages: Stage, device: str = "auto") -> RunReport:
        workers = LocalProcesses(self.jobs, devices=Devices(self.gpus, gpus_of))
        try:
            runtime = Runtime(device=device)
            report = Runner(self.store, workers, runtime, Lines()).run(Graph(stages))  # type: ignore[arg-type]
        finally:
            workers.close()
        logs = (Seen(*json.loads(file.read_text())) for file in self.folder.glob("*.json"))
        self.seen = {each.name: each for each in logs}
        return report


@dataclass
class Graph:
    """The part of a plan that a runner uses."""

    targets: Sequence[Stage]

    @property
    def stages(self) -> dict[str, Stage]:
        return {each.identity: each for each in self.targets}


def gpus_of(stage: Stage) -> float:
    return stage.operation.gpus  # type: ignore[attr-defined, no-any-return]


@pytest.fixture
def machine(store: Store, tmp_path: Path, work_log: Path) -> Machine:
    folder = tmp_path / "seen"
    folder.mkdir()
    return Machine(store, folder)


def overlap(one: Seen, other: Seen) -> bool:
    return one.began < other.ended and other.began < one.ended


def test_each_process_sees_only_its_own_gpu_and_keeps_it(machine: Machine) -> None:
    stages = [machine.stage(f"training {n}") for n in range(5)]
    assert len(machine.run(*stages).executed) == 5
    assert {each.gpus for each in machine.seen.values()} == {"0", "1"}
    assert len({(each.gpus, each.pid) for each in machine.seen.values()}) == 2
    for one in machine.seen.values():
        for other in machine.seen.values():
            assert one is other or not overlap(one, other) or one.gpus != other.gpus


def test_stages_share_a_gpu_if_they_request_a_share(machine: Machine) -> None:
    machine.gpus = ("GPU-abc",)
    machine.run(*(machine.stage(f"half {n}", 0.5, awaits=f"half {1 - n}") for n in range(2)))
    first, second = machine.seen.values()
    assert (first.gpus, second.gpus) == ("GPU-abc", "GPU-abc")
    assert first.pid != second.pid


def test_stages_without_gpu_run_while_others_wait_for_one(machine: Machine) -> None:
    machine.gpus = ("0",)
    trainings = [machine.stage(f"training {n}", awaits="reading") for n in range(2)]
    machine.run(*trainings, machine.stage("reading", 0, behaviour=""))
    reading, trained = machine.seen["reading"], [machine.seen[f"training {n}"] for n in range(2)]
    assert not overlap(*trained)
    assert reading.began < trained[1].began
    assert (reading.gpus, reading.device) == ("", "cpu")
    assert {each.gpus for each in trained} == {"0"}


def test_one_stage_may_have_several_gpus(machine: Machine) -> None:
    machine.run(machine.stage("both", 2), machine.stage("one"), device="cuda:1")
    assert machine.seen["both"].gpus == "0,1"
    assert not overlap(machine.seen["both"], machine.seen["one"])
    assert {each.device for each in machine.seen.values()} == {"cuda"}


def test_a_process_that_dies_gives_its_gpu_back(machine: Machine) -> None:
    machine.gpus, machine.jobs = ("0",), 2
    dying = machine.stage("dying", behaviour="exit")
    report = machine.run(dying, *(machine.stage(f"training {n}") for n in range(2)))
    assert list(report.failed) == [dying.identity]
    assert names(report.executed) == ["training 0", "training 1"]
    assert {each.gpus for each in machine.seen.values()} == {"0"}


def test_a_process_killed_while_idle_is_replaced_on_its_gpu(machine: Machine) -> None:
    workers = LocalProcesses(1, devices=Devices(["7"], gpus_of))
    try:
        for turn in range(2):
            job = StageJob(machine.store, [machine.stage(f"training {turn}")], Runtime(), Lines())
            workers.submit(job)
            ((_, outcome),) = workers.wait()
            assert outcome.executed
            name, gpu, _, pid, *_ = json.loads((machine.folder / f"training {turn}.json").read_text())
            assert (name, gpu) == (f"training {turn}", "7")
            os.kill(pid, 9)
            end = time.monotonic() + 30
            while not workers._idle[0].pool._broken:  # type: ignore[attr-defined]
                assert time.monotonic() < end, "the kill was never noticed"
                time.sleep(0.01)
    finally:
        workers.close()


def test_a_replaced_process_leaves_no_thread_and_no_pipe(machine: Machine) -> None:
    workers, counts = LocalProcesses(1, devices=Devices(["0"], gpus_of)), []
    try:
        for turn in range(3):
            work = machine.stage(f"{turn}", turn % 2, behaviour="")
            workers.submit(StageJob(machine.store, [work], Runtime(), Lines()))
            assert workers.wait()[0][1].executed
            counts.append(sum("_relay" in each.name for each in threading.enumerate()))
        assert counts == [1, 1, 1]
    finally:
        workers.close()


def test_closing_ends_only_own_processes(machine: Machine) -> None:
    other, workers = in_process(time.sleep, 600), LocalProcesses(1)
    try:
        work = machine.stage("long", behaviour="sleep 600")
        workers.submit(StageJob(machine.store, [work], Runtime(), Lines()))
        wait_for(machine.folder / "long.began")
        workers.close()
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


def test_there_are_never_more_processes_than_jobs(store: Store, machine: Machine) -> None:
    machine.gpus, machine.jobs = ("0", "1", "2"), 2
    gpus = [1.0, 0.0, 2.0, 0.5, 3.0, 0.0, 1.0]
    stages = [machine.stage(f"stage {n}", each, behaviour="") for n, each in enumerate(gpus)]
    report = machine.run(*stages)
    assert sorted(names(report.executed)) == sorted(names(stages))
    found = [(machine.seen[f"stage {n}"].gpus or "").split(",") for n in range(7)]
    assert [len([name for name in seen if name]) for seen in found] == [
        1, 0, 2, 1, 3, 0, 1,
    ]  # fmt: skip


def test_results_do_not_depend_on_the_gpus(machine: Machine, tmp_path: Path) -> None:
    contents = []
    for turn, gpus in enumerate([("0",), ("1", "0"), ("0", "1", "2", "3")]):
        store = Store(tmp_path / f"store {turn}")
        store.prepare()
        one = replace(machine, store=store, gpus=gpus, jobs=len(gpus))
        stages = [one.stage(f"training {n}", 1 / (n % 3 + 1), behaviour="") for n in range(6)]
        one.run(*stages)
        contents.append([(fetch(store, each.identity) / "name.txt").read_bytes() for each in stages])
    assert contents[0] == contents[1] == contents[2]


@given(st.lists(st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 1.0, 2.0, 3.0]), max_size=30), st.data())
def test_no_gpu_is_leased_beyond_its_capacity(taken: list[float], data: st.DataObject) -> None:
    devices = Devices(["a", "b", "c"], gpus_of)
    held: list[GPULease] = []
    for number, gpus in enumerate(taken):
        stage = Stage(Sees(f"{number}", gpus=gpus, settings={"number": number}))
        if devices.fits(stage):
            held.append(
                devices.lease(stage, data.draw(st.sampled_from([[], [("c",)], [("b", "c"), ("a",)]])))
            )
            assert len(set(held[-1].names)) == -(-gpus // 1)
        for name in "abc":
            assert sum(lease.parts for lease in held if name in lease.names) <= 10_000
        if held and data.draw(st.booleans()):
            devices.give_back(held.pop(data.draw(st.integers(0, len(held) - 1))))
    for lease in held:
        devices.give_back(lease)
    assert devices.fits(Stage(Sees("all", gpus=3.0)))


def test_a_gpu_share_is_leased_to_an_idle_process_of_the_freest_gpu() -> None:
    devices = Devices(["a", "b"], gpus_of)
    stages = [Stage(Sees(f"{n}", gpus=0.5, settings={"n": n})) for n in range(4)]
    assert devices.lease(stages[0], [("b",)]).names == ("b",)
    assert devices.lease(stages[1], [("b",)]).names == ("a",)
    assert devices.lease(stages[2], [("b",)]).names == ("b",)
    assert devices.lease(stages[3]).names == ("a",)
    assert not devices.fits(Stage(Sees("more", gpus=0.01)))


@pytest.mark.parametrize(
    ("number", "gpus", "expected"),
    [(2, 1.0, 2), (8, 0.25, 32), (1, 1 / 3, 3), (1, 0.33, 3), (5, 2.0, 2), (1, 2.0, 0), (2, 0.6, 2)],
)
def test_gpus_and_shares_determine_the_number_of_parallel_stages(
    number: int, gpus: float, expected: int
) -> None:
    assert side_by_side(number, gpus) == expected


def test_more_jobs_or_gpus_than_exist_are_refused() -> None:
    devices = Devices(["0", "1"], gpus_of)
    whole, share = Stage(Sees("whole")), Stage(Sees("share", gpus=0.25, settings={"n": 1}))
    with refused("--jobs 4", "2 GPUs", "train takes 1", "use --jobs 2", "runtime.resources.train.gpus 0.5"):
        devices.check([whole], 4)
    with refused("train takes 3 GPUs", "this machine has 2 GPUs", "runtime.resources.train.gpus"):
        devices.check([whole, Stage(Sees("three", gpus=3.0))], 2)
    devices.check([whole], 2)
    devices.check([whole, share], 8)
    devices.check([Stage(Sees("reading", gpus=0.0))], 64)
    with refused("--jobs 9", "at most 8", "runtime.resources.train.gpus 0.2"):
        devices.check([share], 9)


@pytest.mark.parametrize(
    ("variable", "count", "number", "expected"),
    [
        (None, 3, "", ("0", "1", "2")),
        ("2, 5", 2, "", ("2", "5")),
        ("GPU-ab,GPU-cd", 2, "1", ("GPU-cd",)),
        ("0,9,1", 1, "", ("0",)),
        ("", 0, "", ()),
        ("-1", 0, "", ()),
        (None, 2, "2", ()),
    ],
)
def test_a_run_uses_only_the_gpus_visible_to_its_process(
    variable: str | None, count: int, number: str, expected: tuple[str, ...]
) -> None:
    assert visible(variable, count, number) == expected


def test_a_run_on_the_cpu_leases_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "0,1")
    assert local_gpus("cpu") == ()
    assert local_gpus("mps") == ()


def test_a_leased_gpu_is_the_first_that_a_process_sees() -> None:
    assert with_leased(Runtime(device="cuda:3"), 1).device == "cuda"
    assert with_leased(Runtime(), 0.5).device == "auto"
    assert with_leased(Runtime(device="cuda"), 0).device == "cpu"


def test_a_request_above_one_gpu_must_be_a_whole_number() -> None:
    for gpus in (0.0, 0.5, 1.0, 8.0):
        assert Resources(gpus=gpus).gpus == gpus
    with pytest.raises(ValidationError, match=r"a share of one GPU or whole GPUs, not 1\.5"):
        Resources(gpus=1.5)


def test_without_gpus_or_with_one_job_no_gpu_is_leased(
    experiment: ExperimentFile, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = "synthbench.estimates.side_by_side.local_gpus"
    stages = make_plan(experiment.load()).stages.values()
    monkeypatch.setattr(side, lambda _: ())
    assert local_devices(stages, Runtime(), StageFacts(store), 8) is None
    monkeypatch.setattr(side, lambda _: ("0", "1"))
    assert local_devices(stages, Runtime(), StageFacts(store), 1) is None
    assert local_devices(stages, Runtime(), StageFacts(store), 2) is not None
    with refused("--jobs 3", "2 GPUs"):
        local_devices(stages, Runtime(), StageFacts(store), 3)
    shares: Any = {kind: {"gpus": 0.5} for kind in ("train", "evaluate", "generate", "select")}
    assert (
        local_devices(stages, Runtime.model_validate({"resources": shares}), StageFacts(store), 4) is not None
    )


class Shared(Work):
    """A training that two GPUs share."""

    kind: ClassVar[str] = "train"
    num_devices = 2


def test_a_training_on_several_gpus_leases_all_of_them_even_with_one_job(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(Shared("shared"))
    runtime = Runtime(resources={"train": Resources(gpus=0.5)})
    need = needs_of(stage, 8, known=StageFacts(store), runtime=runtime)
    assert (need.gpus, need.cpus) == (2.0, 4)
    assert need.memory_gb == 2 * 2.0, "of each process"
    side = "synthbench.estimates.side_by_side.local_gpus"
    monkeypatch.setattr(side, lambda _: ("0", "1", "2"))
    assert local_devices([stage], runtime, StageFacts(store), 1) is None
    monkeypatch.setattr(side, lambda _: ("0",))
    with refused("train takes 2 GPUs", "has 1 GPU", "at most 1 in train.devices"):
        local_devices([stage], runtime, StageFacts(store), 1)


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (Needs(2, 1.0, 4.0), (8, "8 GPUs, 1 each")),
        (Needs(2, 0.25, 4.0), (16, "32 cores, 2 each")),
        (Needs(1, 0.0, 40.0), (6, "256 GB, 40 each")),
        (Needs(64, 0.0, 1.0), (1, "32 cores, 64 each")),
    ],
)
def test_the_scarcest_resource_limits_the_parallel_stages(need: Needs, expected: tuple[int, str]) -> None:
    assert Capacity(gpus=8, cpus=32, memory_gb=256).most(need) == expected


def test_the_plan_has_a_line_on_parallel_stages(experiment: ExperimentFile, store: Store) -> None:
    stages = list(make_plan(experiment.load()).stages.values())
    known, runtime = StageFacts(store), Runtime.model_validate({"resources": {"train": {"gpus": 0.5}}})
    (line,) = room_for(stages, runtime, known, Capacity(2, 64, 512))
    assert line.startswith("side by side with --jobs, at most: ")
    assert "4 × train (2 GPUs, 0.5 each)" in line
    training = next(stage for stage in stages if stage.kind == "train")
    assert needs_of(training, 2, known=known, runtime=runtime).gpus == 0.5
    (line,) = room_for(stages, runtime, known, Capacity(0, 2, 512))
    assert "2 × " in line
    assert "GPU" not in line
    assert list(room_for([], runtime, known, Capacity(0, 2, 512))) == []
