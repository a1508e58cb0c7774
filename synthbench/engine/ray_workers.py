"""Processes of a Ray cluster that run jobs: tasks, and actors that keep their models on a GPU."""

import pickle
import socket
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from synthbench.engine.devices import with_leased
from synthbench.engine.elsewhere import own_code
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.ray_nodes import GB, Needs, remote

SECONDS_BETWEEN_LOOKS = 0.1


@dataclass
class Sent:
    """A job submitted to Ray, and how often its worker, or the worker's node, was lost."""

    job: StageJob
    needs: Needs
    losses: int = 0
    nodes_lost: int = 0

    @property
    def name(self) -> str:
        """The first stage's name, for Ray's displays."""
        return str(self.job.stages[0])

    @property
    def purpose(self) -> str:
        """For a shard that takes a GPU, the identity of the stage that it belongs to; else "".

        Shards with the same `purpose` can share an actor, which keeps the stage's models.
        """
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

    @property
    def is_the_nodes(self) -> bool:
        """Whether the whole node was lost: preempted, or its machine failed."""
        from ray.exceptions import ActorUnavailableError, NodeDiedError

        went = isinstance(self.error, NodeDiedError | ActorUnavailableError)
        return went or bool(getattr(self.error, "preempted", False))


@dataclass(frozen=True)
class Refusal:
    """A node that refused a job, since its code differs from the driver's; `problem` names both versions."""

    node: str
    problem: str


class Reports:
    """An actor that collects the progress of stages from all workers for the driver."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, int]] = {}

    def tell(self, identity: str, done: int, total: int) -> None:
        """Record a stage's progress: the units done, and their total."""
        self._latest[identity] = (done, total)

    def taken(self) -> Mapping[str, tuple[int, int]]:
        """Return and clear the latest progress of each stage reported since the last call: (done, total)."""
        latest, self._latest = self._latest, {}
        return latest


class RayWorkers:
    """Sends jobs to processes of the cluster, and returns their outcomes.

    Ray ends a process with a GPU after its task, since it could not use another GPU later. So shards that
    take a GPU go to actors, which keep GPU and model between shards of a stage. Each waiting shard requests
    an actor. An actor that gets a GPU runs waiting shards one after another, and ends when none waits. So no
    actor holds a GPU idle.

    `reports` returns the actor that collects progress. `avoided` are the ids of nodes that get no job.
    """

    def __init__(self, reports: Callable[[], Any] = lambda: None, avoided: Collection[str] = ()) -> None:
        self._reports = reports
        self._avoided = avoided
        self._running: dict[Any, tuple[Sent, Any]] = {}  # by Ray's reference, with the actor if it has one
        self._waiting: dict[str, deque[Sent]] = defaultdict(deque)
        self._asked_for: dict[Any, tuple[str, Any]] = {}  # requested actors, one per waiting shard of a stage

    def __len__(self) -> int:
        """The number of unfinished jobs."""
        return len(self._running) + len(self._asked_for)

    @property
    def sent(self) -> list[Sent]:
        """The jobs that wait for a node or run there."""
        return [
            *(sent for sent, _ in self._running.values()),
            *(s for all in self._waiting.values() for s in all),
        ]

    def elsewhere(self) -> dict[str, Any]:
        """Return Ray's options that keep a process from the avoided nodes."""
        nodes = ",".join(sorted(self._avoided))
        return {"label_selector": {"ray.io/node-id": f"!in({nodes})"}} if nodes else {}

    def send(self, sent: Sent) -> None:
        """Queue a job until a node has room."""
        options = {**sent.resources, **self.elsewhere()}
        if sent.purpose:
            actor = remote(Keeper, **options)()
            self._waiting[sent.purpose].append(sent)
            self._asked_for[actor.begin.remote()] = (sent.purpose, actor)
        else:
            task = remote(run_job, **options, max_retries=0, name=sent.name)
            self._running[task(sent.packed(), own_code(), self._reports())] = (sent, None)

    def give_up(self, sent: Sent) -> None:
        """Cancel a job that waits for a node or runs."""
        import ray

        for reference, (each, actor) in list(self._running.items()):
            if each is sent:
                del self._running[reference]
                end(actor) if actor is not None else ray.cancel(reference, force=True)
                return
        self._waiting[sent.purpose].remove(sent)
        end(self._asked_for.pop(self._last_asked(sent.purpose))[1])

    def ended(self) -> Iterator[tuple[Sent, JobOutcome | Refusal | Loss]]:
        """Yield jobs that finished, were refused or lost their worker; wait SECONDS_BETWEEN_LOOKS at most."""
        import ray

        if not self:
            return
        done, _ = ray.wait([*self._running, *self._asked_for], num_returns=1, timeout=SECONDS_BETWEEN_LOOKS)
        for reference in done:
            found = _found(reference)
            if reference in self._running:
                sent, actor = self._running.pop(reference)
                if actor is not None:
                    self._go_on(sent.purpose, actor, is_lost=not isinstance(found, JobOutcome))
                yield sent, found
            else:
                purpose, actor = self._asked_for.pop(reference)
                first = self._waiting[purpose].popleft()
                if isinstance(found, Loss):
                    yield first, found
                else:
                    self._give(first, actor)

    def _give(self, sent: Sent, actor: Any) -> None:  # noqa: ANN401 - Ray's
        call = actor.run_job.options(name=sent.name).remote
        self._running[call(sent.packed(), own_code(), self._reports())] = (sent, actor)

    def _go_on(self, purpose: str, actor: Any, *, is_lost: bool) -> None:  # noqa: ANN401 - Ray's
        """Give an actor its stage's next waiting shard; end the actor if none waits or if it `is_lost`.

        Each waiting shard has requested an actor, so when a shard starts, the latest request is cancelled.
        """
        if is_lost or not self._waiting[purpose]:
            end(actor)
            return
        end(self._asked_for.pop(self._last_asked(purpose))[1])
        self._give(self._waiting[purpose].popleft(), actor)

    def _last_asked(self, purpose: str) -> Any:  # noqa: ANN401 - Ray's
        return [reference for reference, (whose, _) in self._asked_for.items() if whose == purpose][-1]


class Keeper:
    """An actor that runs shards of one stage; its process keeps their models."""

    def begin(self) -> None:
        """Do nothing: returning proves that the actor has its resources."""

    def run_job(self, sent: bytes, code: str, reports: Any) -> JobOutcome | Refusal:  # noqa: ANN401 - Ray's
        """Run a job as the function `run_job` does."""
        return run_job(sent, code, reports)

    def __repr__(self) -> str:
        """Return Ray's prefix for the actor's log lines."""
        return "shards"


def run_job(sent: bytes, code: str, reports: Any = None) -> JobOutcome | Refusal:  # noqa: ANN401 - Ray's
    """Run a job on this node; return a Refusal if the node's code differs from the driver's `code`."""
    if own_code() != code:
        import ray

        what = f"node {socket.gethostname()}: has synthbench {own_code()}, the run {code}; install the same"
        return Refusal(ray.get_runtime_context().get_node_id(), what)
    try:
        job: StageJob = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001 - a plug-in's module may raise anything
        return JobOutcome(error=(f"can't be read on {socket.gethostname()}: {error}",), is_user_error=True)
    if reports is not None:
        job = replace(job, tell=reports.tell.remote)
    return job.run_as_planned()


def _found(reference: Any) -> Any:  # noqa: ANN401 - Ray's
    """Return a call's result, or a Loss for any error of Ray's."""
    import ray
    from ray.exceptions import RayError

    try:
        return ray.get(reference)
    except RayError as loss:  # also if a node can't import `run_job`, which raises nothing itself
        return Loss(loss)


def end(actor: Any) -> None:  # noqa: ANN401 - Ray's
    """Kill an actor, running or queued; its work is no longer wanted."""
    import ray

    ray.kill(actor)
