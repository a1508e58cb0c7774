"""The Ray executor against a fake cluster; tests/cluster has runs on real ones."""

import pickle
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from experiment_files import ExperimentFile
from fake_stages import Work, stage
from wording import refused, worded

from synthbench.base.runtime import SEQUENCES, Runtime
from synthbench.engine.elsewhere import own_code
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.engine.progress import PlainProgress
from synthbench.engine.ray_executor import JOBS_PER_CORE, LEAST_JOBS, RayCluster, ray_cluster
from synthbench.engine.ray_live import LiveNodes, look, marker_in
from synthbench.engine.ray_nodes import Needs, Node
from synthbench.engine.ray_workers import Sent, run_job
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.estimates.facts import StageFacts
from synthbench.estimates.needs import LIGHT_GB, needs_of
from synthbench.models import work as models_work
from synthbench.models.pretrained import Pretrained
from synthbench.pipeline.planning import make_plan

SMALL = Node("a", "alpha (10.0.0.1)", cpus=4, gpus=0, memory_gb=16)
LARGE = Node("b", "beta (10.0.0.2)", cpus=32, gpus=2, memory_gb=256)


def connect(store: Store, address: str) -> None:
    runtime = Runtime(executor="ray", address=address)
    with ray_cluster(runtime, [], lambda *_: Needs(1, 0, 1), store.root, 1):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:port"])
def test_no_cluster_at_the_address_is_reported_in_one_line(store: Store, address: str) -> None:
    with refused(address, "no Ray cluster at", "ray start --head"):
        connect(store, address)


def test_the_protocol_of_rays_client_is_refused(store: Store) -> None:
    with refused("ray://head:10001", "--address auto"):
        connect(store, "ray://head:10001")


def test_the_missing_extra_is_named_with_its_command(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused("pip install 'synthbench[ray]'"):
        connect(store, "")


def cluster(needs: dict[str, Needs], *nodes: Node, wait_s: float = 0.0) -> RayCluster:
    live = LiveNodes(None, lambda _: None)
    live.alive = list(nodes)
    runtime = Runtime(executor="ray", wait_for_nodes_s=wait_s)
    return RayCluster(live, lambda one, _: needs[one.operation.component], runtime, LocalProcesses(1))


def test_stages_too_large_for_every_node_are_refused_once_per_kind() -> None:
    needs = {
        "light": Needs(1, 0, 1),
        "wide": Needs(64, 0, 1),
        "gpus": Needs(1, 3, 1),
        "large": Needs(1, 1, 300),
    }
    stages = [stage(name, behaviour=turn) for turn in ("a", "b") for name in needs]
    with refused("work wide", "work gpus", "work large", "beta (10.0.0.2)") as caught:
        cluster(needs, SMALL, LARGE).check_fit(stages, print)
    assert len(caught.value.messages) == 3  # type: ignore[attr-defined]
    cluster(needs, SMALL, LARGE).check_fit([stage("light"), stage("gpus", first=True)], print)


@pytest.mark.parametrize("nodes", [(), (SMALL,)])
def test_a_stage_that_fits_no_node_yet_is_refused_or_waited_for(nodes: tuple[Node, ...]) -> None:
    needs, stages, said = {"gpus": Needs(1, 1, 1)}, [stage("gpus")], list[str]()
    with refused("work gpus", "wait for one to join: runtime.wait_for_nodes_s"):
        cluster(needs, *nodes).check_fit(stages, said.append)
    assert not said
    waiting = cluster(needs, *nodes, wait_s=600)
    waiting.check_fit(stages, said.append)
    worded(said, "waiting up to 10 minutes for a node for work gpus")
    assert waiting.capacity == LEAST_JOBS, "Ray hears what to grow for"


def test_jobs_and_servers_that_no_node_could_hold_for_too_long_are_given_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that comes and goes in between begins the wait anew."""
    need, now, ended = Needs(1, 1, 1), 0.0, list[object]()
    executor = cluster({}, SMALL, wait_s=600)
    sent = Sent(StageJob(store, [stage("gpus")], Runtime(device="cpu"), PlainProgress()), need)
    executor._clock = lambda: now
    executor._workers = SimpleNamespace(sent=[sent], give_up=ended.append)  # type: ignore[assignment]
    executor._servers = SimpleNamespace(  # type: ignore[assignment]
        needs={need}, give_up=lambda *why: ended.append(why)
    )

    def given_up(at: float, *nodes: Node) -> list[tuple[StageJob, JobOutcome]]:
        nonlocal now
        now, executor._nodes.alive = at, list(nodes)
        return executor._given_up()

    assert [given_up(at, *nodes) for at, nodes in ((0, ()), (590, (LARGE,)), (610, ()), (1210, ()))] == [
        []
    ] * 4
    ((job, outcome),) = given_up(1211, SMALL)
    assert job is sent.job
    worded(outcome.error, "1 GPU", "for 10 minutes", "runtime.wait_for_nodes_s")
    assert ended == [(need, outcome.error[0]), sent]


def test_more_cores_take_more_jobs() -> None:
    assert cluster({}, LARGE, SMALL).capacity == JOBS_PER_CORE * 36


def test_a_node_with_other_code_or_without_the_folder_is_named(tmp_path: Path) -> None:
    ours = own_code()
    assert look(None, ours) == []
    assert look(None, "1.0 (content abcdefgh, Python 3.11.7)") == [
        f"has synthbench {ours}, this machine 1.0 (content abcdefgh, Python 3.11.7); install the same"
    ]
    (unseen,) = look(tmp_path / "marker", ours)
    assert f"does not see {tmp_path}; set SYNTHBENCH_HOME" in unseen


def test_a_file_system_that_gives_a_lock_to_two_machines_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system without locks claims success for each lock."""
    ours = own_code()
    with marker_in(tmp_path) as marker:
        assert look(marker, ours) == []
        monkeypatch.setattr("filelock.FileLock", lambda *_, **__: nullcontext())
        (line,) = look(marker, ours)
    assert f"got a lock in {tmp_path} that this machine holds" in line
    assert "SYNTHBENCH_STORE" in line
    assert list(tmp_path.iterdir()) == []


class Elsewhere(Work):
    """Work that reads something that differs from machine to machine."""

    content: ClassVar[str] = "here"

    def config(self) -> dict[str, Any]:
        return {"content": self.content}


def test_a_worker_refuses_a_stage_whose_identity_differs_there(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = Stage(Elsewhere("read"))
    assert planned.identity
    sent = pickle.dumps(StageJob(store, [planned], Runtime(device="cpu"), PlainProgress()))
    first = run_job(sent, own_code())
    assert isinstance(first, JobOutcome)
    assert first.executed == (planned.identity,)
    store.discard(planned.identity)
    monkeypatch.setattr(Elsewhere, "content", "there")
    outcome = run_job(sent, own_code())
    assert isinstance(outcome, JobOutcome)
    assert outcome.is_user_error
    (line,) = outcome.error
    assert 'content "here" -> "there"' in line
    assert not store.has(planned.identity)


def test_an_unreadable_job_is_reported() -> None:
    outcome = run_job(b"no pickle", own_code())
    assert isinstance(outcome, JobOutcome)
    assert outcome.is_user_error
    assert "can't be read on" in outcome.error[0]


GPT2_GB = (12 * (4 * 768**2 + 2 * 768 * 3072) + 50257 * 768) / 1e9


@pytest.mark.parametrize(
    ("runtime", "num_gpus", "expected"),
    [
        ({}, 0, Needs(1, 0.0, 4.0)),
        ({}, 2, Needs(2, 1.0, 4.0)),
        ({"device": "cpu"}, 2, Needs(1, 0.0, 4.0)),
        ({"threads": 4}, 0, Needs(4, 0.0, 4.0)),
        ({"resources": {"train": {"gpus": 0.5, "memory_gb": 7.0}}}, 2, Needs(2, 0.5, 7.0)),
        ({"resources": {"train": {"cpus": 3}}}, 0, Needs(3, 0.0, 4.0)),
    ],
)
def test_a_stages_resources_follow_from_its_models_unless_the_user_states_them(
    experiment: ExperimentFile, store: Store, runtime: dict[str, Any], num_gpus: float, expected: Needs
) -> None:
    """Training GPT-2 takes 16 bytes for each of its 123.5 million parameters, and 2 GB besides."""
    plan = make_plan(experiment.load())
    training = next(one for one in plan.stages.values() if one.kind == "train")
    base = Pretrained(model="gpt2")
    plugin = training.operation.plugin.model_copy(update={"base": base})  # type: ignore[attr-defined]
    training = Stage(replace(training.operation, plugin=plugin), training.inputs)  # type: ignore[type-var]
    found = needs_of(training, num_gpus, known=StageFacts(store), runtime=Runtime.model_validate(runtime))
    assert pytest.approx(3.97, abs=0.01) == 2 + 16 * GPT2_GB
    assert found == expected


def test_a_language_model_keeps_keys_and_values_in_main_memory_without_a_gpu(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = models_work.Work("lm", 0.0, 1, weights=1e9, kept=SEQUENCES["cuda"] * 1e7)
    monkeypatch.setattr("synthbench.estimates.needs.work_of", lambda _: writing)
    need = needs_of(stage("light"), 0, known=StageFacts(store), runtime=Runtime(sequences=100))
    assert need.memory_gb == LIGHT_GB + 1.0


def test_a_stage_without_a_model_is_light(store: Store) -> None:
    found = needs_of(stage("light"), 1, known=StageFacts(store), runtime=Runtime())
    assert found == Needs(1, 0.0, 0.5)
    assert str(Needs(2, 0.5, 3.0)) == "2 CPU cores, 0.5 GPU, 3 GB of memory"
