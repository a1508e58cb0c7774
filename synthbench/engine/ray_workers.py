"""The processes of a Ray cluster that jobs are sent to: tasks, and actors that keep their models on a GPU."""

import pickle
import socket
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from synthbench.base.errors import UserError
from synthbench.engine.devices import with_leased
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.progress import PlainProgress
from synthbench.engine.ray_nodes import GB, Needs, remote
from synthbench.engine.workers import tell_parent

SECONDS_BETWEEN_LOOKS = 0.1


@dataclass
class Sent:
    """A job that is with Ray, and how often its worker was lost."""

    job: StageJob
    needs: Needs
    losses: int = 0

    @property
    def name(self) -> str:
        """The name of its first stage, which Ray shows."""
        return str(self.job.stages[0])

    @property
    def purpose(self) -> str:
        """What an actor keeps models for: the stage whose shard this is, if it takes a GPU."""
        return self.job.stages[0].paid_by if self.needs.gpus else ""

    @property
    def resources(self) -> dict[str, Any]:
        """What Ray sets aside for its process."""
        return {
            "num_cpus": self.needs.cpus,
            "num_gpus": self.needs.gpus,
            "memory": int(self.needs.memory_gb * GB),
        }

    def packed(self) -> bytes:
        """Return the job as it travels."""
        # Ray shows all GPUs to a process that asks for none, and to others only their own.
        runtime = with_leased(self.job.runtime, self.needs.gpus)
        runtime = runtime.model_copy(update={"threads": self.needs.cpus})
        return pickle.dumps(replace(self.job, progress=PlainProgress(), runtime=runtime, tell=tell_parent))


@dataclass(frozen=True)
class Loss:
    """How a worker was lost, as Ray says it."""

    error: Exception


class RayWorkers:
    """Sends jobs to processes of the cluster, and tells how they ended.

    Ray ends a process that had a GPU with its task, since the process could not use another one later. So
    shards that take a GPU go to actors, which keep GPU and model from one shard of a stage to the next. Each
    waiting shard asks Ray for an actor. The first actor with a GPU takes the first shard, goes on with those
    that wait, and ends when none does. So an actor never holds a GPU idle.
    """

    def __init__(self) -> None:
        self._running: dict[Any, tuple[Sent, Any]] = {}  # by Ray's reference, with the actor if it has one
        self._waiting: dict[str, deque[Sent]] = defaultdict(deque)
        self._asked_for: dict[Any, tuple[str, Any]] = {}  # actors, as many as shards that wait for this stage

    def __len__(self) -> int:
        """How many jobs have not ended."""
        return len(self._running) + len(self._asked_for)

    def send(self, sent: Sent) -> None:
        """Start a job as soon as a node has room."""
        if sent.purpose:
            actor = remote(Keeper, **sent.resources)()
            self._waiting[sent.purpose].append(sent)
            self._asked_for[actor.begin.remote()] = (sent.purpose, actor)
        else:
            task = remote(run_job, **sent.resources, max_retries=0, name=sent.name)
            self._running[task(sent.packed())] = (sent, None)

    def ended(self) -> Iterator[tuple[Sent, JobOutcome | Loss]]:
        """Yield jobs that have ended, after a short while at most."""
        import ray

        if not self:
            return
        done, _ = ray.wait([*self._running, *self._asked_for], num_returns=1, timeout=SECONDS_BETWEEN_LOOKS)
        for reference in done:
            found = _found(reference)
            if reference in self._running:
                sent, actor = self._running.pop(reference)
                if actor is not None:
                    self._go_on(sent.purpose, actor, is_lost=isinstance(found, Loss))
                yield sent, found
            else:
                purpose, actor = self._asked_for.pop(reference)
                first = self._waiting[purpose].popleft()
                if isinstance(found, Loss):
                    yield first, found
                else:
                    self._give(first, actor)

    def _give(self, sent: Sent, actor: Any) -> None:  # noqa: ANN401 - Ray's
        self._running[actor.run_job.options(name=sent.name).remote(sent.packed())] = (sent, actor)

    def _go_on(self, purpose: str, actor: Any, *, is_lost: bool) -> None:  # noqa: ANN401 - Ray's
        """Let an actor take the next shard, in the place of the one asked for last, else end it."""
        if is_lost or not self._waiting[purpose]:
            _end(actor)
            return
        last = [reference for reference, (whose, _) in self._asked_for.items() if whose == purpose][-1]
        _end(self._asked_for.pop(last)[1])
        self._give(self._waiting[purpose].popleft(), actor)


class Keeper:
    """An actor that runs shards of one stage; its process keeps their models."""

    def begin(self) -> None:
        """Do nothing: that this returns says that the actor has what it takes."""

    def run_job(self, sent: bytes) -> JobOutcome:
        """Run a job."""
        return run_job(sent)

    def __repr__(self) -> str:
        """Return what Ray puts before its lines."""
        return "shards"


def run_job(sent: bytes) -> JobOutcome:
    """Run a job on a node, unless its stages are other ones there."""
    try:
        job: StageJob = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in's module raises
        return JobOutcome(error=(f"can't be read on {socket.gethostname()}: {error}",), is_user_error=True)
    try:
        for stage in job.stages:
            stage.check_identity()
    except UserError as error:
        return JobOutcome(error=error.messages, is_user_error=True)
    return job.run()


def _found(reference: Any) -> Any:  # noqa: ANN401 - Ray's
    """Return what a call returned, or the Loss of its worker."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as error:
        return JobOutcome(error=(str(error),))
    except RayError as loss:
        return Loss(loss)


def _end(actor: Any) -> None:  # noqa: ANN401 - Ray's
    """End an actor that has or waits for its resources; nothing that it runs is still wanted."""
    import ray

    ray.kill(actor)
