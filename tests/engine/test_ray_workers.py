"""Shards on GPUs of a fake Ray cluster, whose events come in any order.

tests/cluster has the same on a real cluster.
"""

import pickle
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from fake_stages import Work
from hypothesis import given
from hypothesis import strategies as st
from ray.exceptions import RayError

from synthbench.base.runtime import Runtime
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.progress import PlainProgress
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.ray_workers import Loss, RayWorkers, Sent
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store


@dataclass(eq=False)
class Call:
    """A call to a process; `result` is set once it has ended."""

    sent: bytes = b""
    result: Any = None
    has_ended: bool = False

    def end(self, result: Any) -> None:
        self.result, self.has_ended = result, True


@dataclass(eq=False)
class Actor:
    """A process that waits for a GPU, has one, or has ended."""

    state: str = "waits"
    calls: list[Call] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin = SimpleNamespace(remote=self._call)
        self.run_job = SimpleNamespace(options=lambda name: SimpleNamespace(remote=self._call))

    def _call(self, sent: bytes = b"", *_: object) -> Call:
        self.calls.append(Call(sent))
        return self.calls[-1]

    @property
    def under_way(self) -> list[Call]:
        return [call for call in self.calls if not call.has_ended]

    def die(self, error: Exception) -> None:
        self.state = "ended"
        for call in self.under_way:
            call.end(error)


class FakeRay:
    """The part of Ray that RayWorkers uses, with some GPUs."""

    def __init__(self, draw: random.Random, num_gpus: int, num_losses: int) -> None:
        self._draw, self._num_gpus, self._losses_left = draw, num_gpus, num_losses
        self.actors: list[Actor] = []

    def remote(self, _: type) -> Any:
        def create() -> Actor:
            self.actors.append(Actor())
            return self.actors[-1]

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=create))

    def kill(self, actor: Actor) -> None:
        assert not any(call.sent for call in actor.under_way), "what an actor runs is not thrown away"
        actor.die(RayError("killed"))

    def get(self, call: Call) -> Any:
        if isinstance(call.result, Exception):
            raise call.result
        return call.result

    def wait(self, calls: list[Call], *, num_returns: int, timeout: float) -> tuple[list[Call], list[Call]]:
        having = [actor for actor in self.actors if actor.state == "has one"]
        assert len(having) <= self._num_gpus
        assert all(set(actor.calls) & set(calls) for actor in having), "no actor holds a GPU idle"
        self._draw.choice(self._possible(having))()
        ended = [call for call in calls if call.has_ended]
        self._draw.shuffle(ended)
        return ended[:num_returns], []

    def _possible(self, having: list[Actor]) -> list[Callable[[], None]]:
        events = [lambda actor=actor: self._go_on(actor) for actor in having if actor.under_way]
        waiting = [actor for actor in self.actors if actor.state == "waits"]
        if len(having) < self._num_gpus:
            events += [lambda actor=actor: setattr(actor, "state", "has one") for actor in waiting]
        if self._losses_left:
            events += [lambda actor=actor: self._lose(actor) for actor in [*having, *waiting]]
        return events or [lambda: None]

    def _lose(self, actor: Actor) -> None:
        self._losses_left -= 1
        actor.die(RayError("The worker died"))

    def _go_on(self, actor: Actor) -> None:
        call = actor.under_way[0]
        if not call.sent:
            call.end(None)
            return
        stage = pickle.loads(call.sent).stages[0]
        actor.ran.append(stage.paid_by)
        call.end(JobOutcome(executed=(stage.identity,)))


@given(
    seed=st.integers(0, 10_000),
    num_gpus=st.integers(1, 3),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    num_losses=st.integers(0, 5),
)
def test_every_shard_ends_once_and_no_actor_survives(
    seed: int, num_gpus: int, sizes: list[int], num_losses: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = Store(tmp_path_factory.getbasetemp() / "store")
    ray, workers, executed = FakeRay(random.Random(seed), num_gpus, num_losses), RayWorkers(), []
    shards = [shard(f"{of}-{number}", f"{of}") for of, size in enumerate(sizes) for number in range(size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", ray)  # type: ignore[arg-type] # as much of it as is used
        for each in shards:
            workers.send(Sent(StageJob(store, [each], Runtime(), PlainProgress()), Needs(1, 1.0, 1.0)))
        while workers:
            for sent, how in workers.ended():
                if isinstance(how, Loss):
                    workers.send(sent)
                else:
                    assert isinstance(how, JobOutcome)
                    executed += how.executed
    assert sorted(executed) == sorted(each.identity for each in shards)
    assert all(actor.state == "ended" for actor in ray.actors)
    assert all(len(set(actor.ran)) <= 1 for actor in ray.actors), "an actor runs shards of one stage"
    having_run = [actor for actor in ray.actors if actor.ran]
    if num_gpus == 1 and not num_losses:
        assert len(having_run) == len(sizes), "one load for each stage"


def shard(name: str, of: str) -> Stage:
    return Stage(Work(name, {"name": name}), {}, name, paid_by=of)
