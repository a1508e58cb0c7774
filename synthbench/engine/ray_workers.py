"""Processes of a Ray cluster that run jobs: tasks, and actors that keep their models on a GPU."""

import pickle
import socket
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from synthbench.engine.devices import with_leased
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.ray_nodes import GB, Needs, remote

SECONDS_BETWEEN_LOOKS = 0.1


@dataclass
class Sent:
    """A job submitted to Ray, and how often its worker was lost."""

    job: StageJob
    needs: Needs
    losses: int = 0

    @property
    def name(self) -> str:
        """The first stage's name, for Ray's displays."""
        return str(self.job.stages[0])

    @property
    def purpose(self) -> str:
        """The stage whose shard this is, if it takes a GPU: an actor keeps the models of one such stage."""
        return self.job.stages[0].paid_by if self.needs.gpus else ""

    @property
    def resources(self) -> dict[str, Any]:
        """The resources that Ray reserves for the job's process."""
        return {
            "num_cpus": self.needs.cpus,
            "num_gpus": self.needs.gpus,
            "memory": int(self.needs.memory_gb * GB),
        }

    def packed(self) -> bytes:
        """Return the pickled job, with the worker's runtime."""
        # Ray hides other processes' GPUs, but shows all GPUs to a process that requests none.
        runtime = with_leased(self.job.runtime, self.needs.gpus)
        runtime = runtime.model_copy(update={"threads": self.needs.cpus})
        return pickle.dumps(self.job.for_worker(runtime))


@dataclass(frozen=True)
class Loss:
    """A lost worker, with Ray's error."""

    error: Exception


class RayWorkers:
    """Sends jobs to processes of the cluster, and returns their outcomes.

    Ray ends a process with a GPU after its task, since it could not use another GPU later. So shards that
    take a GPU go to actors, which keep GPU and model between shards of a stage. Each waiting shard requests
    an actor. The first actor with a GPU runs the waiting shards one after another, and ends when none waits.
    So no actor holds a GPU idle.
    """

    def __init__(self) -> None:
        self._running: dict[Any, tuple[Sent, Any]] = {}  # by Ray's reference, with the actor if it has one
        self._waiting: dict[str, deque[Sent]] = defaultdict(deque)
        self._asked_for: dict[Any, tuple[str, Any]] = {}  # requested actors, one per waiting shard of a stage

    def __len__(self) -> int:
        """The number of unfinished jobs."""
        return len(self._running) + len(self._asked_for)

    def send(self, sent: Sent) -> None:
        """Queue a job until a node has room."""
        if sent.purpose:
            actor = remote(Keeper, **sent.resources)()
            self._waiting[sent.purpose].append(sent)
            self._asked_for[actor.begin.remote()] = (sent.purpose, actor)
        else:
            task = remote(run_job, **sent.resources, max_retries=0, name=sent.name)
            self._running[task(sent.packed())] = (sent, None)

    def ended(self) -> Iterator[tuple[Sent, JobOutcome | Loss]]:
        """Yield finished jobs, after a short wait at most."""
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
        """Give an actor the next shard, and cancel the last actor request; without a shard, end the actor."""
        if is_lost or not self._waiting[purpose]:
            _end(actor)
            return
        last = [reference for reference, (whose, _) in self._asked_for.items() if whose == purpose][-1]
        _end(self._asked_for.pop(last)[1])
        self._give(self._waiting[purpose].popleft(), actor)


class Keeper:
    """An actor that runs shards of one stage; its process keeps their models."""

    def begin(self) -> None:
        """Do nothing: returning proves that the actor has its resources."""

    def run_job(self, sent: bytes) -> JobOutcome:
        """Run a job."""
        return run_job(sent)

    def __repr__(self) -> str:
        """Return Ray's prefix for the actor's log lines."""
        return "shards"


def run_job(sent: bytes) -> JobOutcome:
    """Run a job on a node, unless its stages have other identities there."""
    try:
        job: StageJob = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001 - a plug-in's module may raise anything
        return JobOutcome(error=(f"can't be read on {socket.gethostname()}: {error}",), is_user_error=True)
    return job.run_as_planned()


def _found(reference: Any) -> Any:  # noqa: ANN401 - Ray's
    """Return a call's result, or the Loss of its worker."""
    import ray
    from ray.exceptions import RayError, RayTaskError

    try:
        return ray.get(reference)
    except RayTaskError as error:
        return JobOutcome(error=(str(error),))
    except RayError as loss:
        return Loss(loss)


def _end(actor: Any) -> None:  # noqa: ANN401 - Ray's
    """Kill an actor, running or queued; its work is no longer wanted."""
    import ray

    ray.kill(actor)
