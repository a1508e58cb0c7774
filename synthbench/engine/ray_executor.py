"""Runs jobs on a Ray cluster. Only jobs are sent; artifacts go through the shared store."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.engine.elsewhere import Beside, lost, stays
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.engine.ray_nodes import (
    INSTALL,
    Needs,
    Node,
    check_nodes,
    connect,
    first_sentence,
    nodes_alive,
)
from synthbench.engine.ray_workers import Loss, RayWorkers, Sent
from synthbench.engine.stage import Stage

JOBS_PER_CORE = 2
"""Jobs submitted to Ray per core of the cluster, so that no core idles between jobs."""
NeedsOf = Callable[[Stage, float], Needs]
"""Returns a stage's resources, from the stage and the most GPUs that a node has."""


class RayCluster:
    """Runs jobs on a cluster's nodes, but stages that ask an LLM or read sources on this machine.

    So one machine writes answers and ledger, and only this machine needs the data. If a job's worker is lost,
    the job restarts, up to `retries` times.
    """

    def __init__(
        self, nodes: Sequence[Node], needs: Callable[[Stage], Needs], retries: int, beside: LocalProcesses
    ) -> None:
        self._most = max(1, int(sum(node.cpus for node in nodes))) * JOBS_PER_CORE
        self._nodes = nodes
        self._needs = needs
        self._retries = retries
        self._beside = Beside(beside)
        self._workers = RayWorkers()

    def check_fit(self, stages: Iterable[Stage]) -> None:
        """Raise UserError with a line for each sort of stage that fits no node and would wait forever."""
        wrong: dict[Needs, Stage] = {}
        for stage in stages:
            if not stage.operation.comes_first:
                need = self._needs(stage)
                if not any(need.fit(node) for node in self._nodes):
                    wrong.setdefault(need, stage)
        have = "; ".join(sorted({str(node) for node in self._nodes}))
        if wrong:
            raise UserError(
                *(
                    f"{stage} needs {need}, and no node has that much ({have}); add a node, or state less in"
                    f" {_where_stated(stage, need)}"
                    for need, stage in wrong.items()
                )
            )

    @property
    def capacity(self) -> int:
        """The number of further jobs that Ray accepts."""
        return max(0, self._most - len(self._workers) - len(self._beside))

    def fits(self, stage: Stage) -> bool:
        """Return True: Ray queues a stage until a node is free."""
        return True

    def submit(self, job: StageJob) -> None:
        """Send a job to the cluster, or to a process on this machine."""
        if stays(job):
            self._beside.submit(job)
        else:
            self._workers.send(Sent(job, self._needs(job.stages[0])))

    def wait(self) -> list[tuple[StageJob, JobOutcome]]:
        """Return finished jobs, at least one if any is running."""
        while self._workers or self._beside:
            here = self._beside.finished(0.0 if self._workers else None)
            finished = [*here, *self._finished_there()]
            if finished:
                return finished
        return []

    def _finished_there(self) -> list[tuple[StageJob, JobOutcome]]:
        outcomes = [(sent.job, self._outcome(sent, how)) for sent, how in self._workers.ended()]
        return [(job, outcome) for job, outcome in outcomes if outcome is not None]

    def _outcome(self, sent: Sent, how: JobOutcome | Loss) -> JobOutcome | None:
        """Return a job's outcome, None if it restarts because its worker was lost."""
        if isinstance(how, JobOutcome):
            return how
        sent.losses += 1
        what = first_sentence(how.error)
        if sent.losses <= self._retries:
            sent.job.progress.say(f"starting {sent.name} again: {what}")
            self._workers.send(sent)
            return None
        return lost(sent.job, sent.losses, what, str(sent.needs))


def _where_stated(stage: Stage, need: Needs) -> str:
    resources = f"runtime.resources.{stage.kind}"
    return f"train.devices, or in {resources}" if need.gpus and stage.operation.num_devices > 1 else resources


@contextmanager
def ray_cluster(
    runtime: Runtime, stages: Iterable[Stage], needs: "NeedsOf", folder: Path | None, num_here: int
) -> Iterator[RayCluster]:
    """Connect to the cluster and yield its executor, with `num_here` processes of this machine beside it.

    `needs` returns a stage's resources. `folder`, if there is one, must be visible to all nodes.

    Raises UserError if there is no cluster, if a node has other code or can't see the folder, or if a stage
    fits no node.
    """
    try:
        import ray
    except ImportError:
        raise UserError(f"runtime.executor ray needs Ray: {INSTALL}") from None
    connect(runtime.address)
    beside = LocalProcesses(num_here)
    try:
        nodes = nodes_alive()
        check_nodes(nodes, folder)
        num_gpus = max(node.gpus for node in nodes)
        cluster = RayCluster(nodes, lambda stage: needs(stage, num_gpus), runtime.retries, beside)
        cluster.check_fit(stages)
        yield cluster
    finally:
        beside.close()
        ray.shutdown()
