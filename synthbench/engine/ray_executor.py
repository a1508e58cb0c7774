"""Runs jobs on a Ray cluster, whose nodes come and go. Only jobs are sent; artifacts go through the store."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.engine.elsewhere import lost, stays
from synthbench.engine.jobs import Executor, JobOutcome, StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.engine.monitor import duration
from synthbench.engine.ray_live import LiveNodes, marker_in
from synthbench.engine.ray_nodes import INSTALL, Needs, connect, first_sentence, remote
from synthbench.engine.ray_servers import RayServers
from synthbench.engine.ray_workers import Loss, RayWorkers, Refusal, Reports, Sent
from synthbench.engine.stage import Stage
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.server import SECONDS_BETWEEN_LOOKS

JOBS_PER_CORE, LEAST_JOBS = 2, 32
"""Most jobs submitted to Ray: `JOBS_PER_CORE` per live core, so that no core idles between jobs, but at
least `LEAST_JOBS`, so that a cluster without nodes sees demand and grows."""
SECONDS_TO_REPLACE = 300.0
"""Minimum time that a stage of a running run waits for a fitting node: a lost node may be replaced."""
MOST_NODES_LOST = 20
"""Node losses that a job survives without using retries; more may be the job's own fault."""
SECONDS_BETWEEN_REPORTS = 2.0
NeedsOf = Callable[[Stage, float], Needs]
"""Returns a stage's resources, from the stage and the most GPUs that a node has."""


class RayCluster(Executor):
    """Runs jobs on a cluster's nodes; stages that ask an LLM or read sources run on this machine.

    So one machine writes LLM answers and the ledger, and only this machine needs the data. If a job's worker
    is lost, the job restarts, up to `runtime.retries` times. A job's first `MOST_NODES_LOST` losses of a
    whole node don't count.
    """

    def __init__(
        self,
        nodes: LiveNodes,
        needs: "NeedsOf",
        runtime: Runtime,
        beside: LocalProcesses,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._nodes = nodes
        self._needs_of = needs
        self._runtime = runtime
        self._beside = beside
        self._clock = time.monotonic
        self._unfit_since: dict[Needs, float] = {}
        self._reports = _ProgressReports()
        self._workers = RayWorkers(self._reports.actor, nodes.refused)
        self._servers = RayServers(self._gpus_of_server, self._why_no_server, self._workers.elsewhere, say)

    def check_fit(self, stages: Iterable[Stage], say: Callable[[str], None]) -> None:
        """Raise UserError with a line for each set of resources that fits no node, naming a stage.

        If `runtime.wait_for_nodes_s` is set, only report to `say` which nodes the run waits for.
        """
        wrong: dict[Needs, Stage] = {}
        for stage in stages:
            if not stage.operation.comes_first:
                need = self._needs(stage)
                if not self._fits_a_node(need):
                    wrong.setdefault(need, stage)
        if not wrong:
            return
        have = self._have()
        patience = self._runtime.wait_for_nodes_s
        if patience:
            for need, stage in wrong.items():
                say(f"waiting up to {duration(patience)} for a node for {stage}: {need} ({have})")
            return
        raise UserError(
            *(
                f"{stage} needs {need}, and no node has that much ({have}); add a node, state less in"
                f" {_where_stated(stage, need)}, or wait for one to join: runtime.wait_for_nodes_s"
                for need, stage in wrong.items()
            )
        )

    @property
    def capacity(self) -> int:
        """The number of further jobs accepted now, by the cores of the usable nodes."""
        cores = int(sum(node.cpus for node in self._nodes.usable))
        most = max(LEAST_JOBS, JOBS_PER_CORE * cores)
        return max(0, most - len(self._workers) - len(self._beside))

    def submit(self, job: StageJob) -> None:
        """Send a job to the cluster, or to a process on this machine."""
        if stays(job):
            if (endpoint := _served(job)) is not None:
                self._servers.begin(endpoint)
            self._beside.submit(job)
        else:
            self._reports.tell = job.tell
            self._workers.send(Sent(job, self._needs(job.stages[0])))

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        """Return finished jobs: at least one if any is unfinished; with `seconds`, perhaps none."""
        while self._workers or self._beside:
            finished = self._given_up() if self._nodes.look() else []
            self._servers.tend()
            self._reports.pass_on()
            finished += [*self._finished_here(seconds), *self._finished_there()]
            if finished or seconds is not None:
                return finished
        return []

    def _needs(self, stage: Stage) -> Needs:
        return self._needs_of(stage, self._most_gpus)

    @property
    def _most_gpus(self) -> float:
        """The most GPUs of a usable node; if no node has any, 1 for a run on `cuda`, else 0."""
        promised = 1.0 if self._runtime.device.startswith("cuda") else 0.0
        return max((node.gpus for node in self._nodes.usable), default=0.0) or promised

    def _have(self) -> str:
        found = {str(node) for node in self._nodes.usable if node.cpus}
        return "; ".join(sorted(found)) or "there is none yet"

    def _fits_a_node(self, need: Needs) -> bool:
        return any(need.fit(node) for node in self._nodes.usable)

    def _finished_here(self, seconds: float | None) -> list[tuple[StageJob, JobOutcome]]:
        # Without jobs there, nothing else waits between two looks after the servers.
        finished = self._beside.wait(
            0.0 if self._workers else SECONDS_BETWEEN_LOOKS if self._servers else seconds
        )
        for job, _ in finished:
            if (endpoint := _served(job)) is not None:
                self._servers.end(endpoint)
        return finished

    def close(self) -> None:
        """End the servers of local models."""
        self._servers.close()

    def _gpus_of_server(self, endpoint: Endpoint) -> float:
        stated = endpoint.served.gpus if endpoint.served is not None else 0.0
        return stated if stated is not None else float(self._most_gpus > 0)

    def _why_no_server(self, need: Needs) -> str:
        if self._runtime.wait_for_nodes_s or self._fits_a_node(need):
            return ""
        return f"needs {need}, and no node has that much ({self._have()}); state fewer `gpus`, or add a node"

    def _finished_there(self) -> list[tuple[StageJob, JobOutcome]]:
        outcomes = [(sent.job, self._outcome(sent, how)) for sent, how in self._workers.ended()]
        return [(job, outcome) for job, outcome in outcomes if outcome is not None]

    def _outcome(self, sent: Sent, how: JobOutcome | Refusal | Loss) -> JobOutcome | None:
        """Return a job's outcome, None if the job restarts: a node refused it, or its worker was lost."""
        if isinstance(how, JobOutcome):
            return how
        if isinstance(how, Refusal):
            self._nodes.refuse(how.node, how.problem)
            self._workers.send(sent)
            return None
        what = first_sentence(how.error)
        is_free = how.is_the_nodes and sent.nodes_lost < MOST_NODES_LOST
        sent.nodes_lost += is_free
        sent.losses += not is_free
        if sent.losses <= self._runtime.retries:
            sent.job.progress.say(f"starting {sent.name} again: {what}")
            self._workers.send(sent)
            return None
        return lost(sent.job, sent.losses, what, str(sent.needs))

    def _given_up(self) -> list[tuple[StageJob, JobOutcome]]:
        """Give up jobs and servers that fitted no node for too long; return the jobs with their errors."""
        now, given_up = self._clock(), []
        wanted = {sent.needs for sent in self._workers.sent} | self._servers.needs
        self._unfit_since = {
            need: self._unfit_since.get(need, now) for need in wanted if not self._fits_a_node(need)
        }
        patience = max(self._runtime.wait_for_nodes_s, SECONDS_TO_REPLACE)
        for need, since in self._unfit_since.items():
            if now - since <= patience:
                continue
            why = (
                f"needs {need}, and no node with that much was there for {duration(patience)}; run the same"
                " command again, or wait longer: runtime.wait_for_nodes_s"
            )
            self._servers.give_up(need, why)
            for sent in self._workers.sent:
                if sent.needs == need:
                    self._workers.give_up(sent)
                    given_up.append((sent.job, JobOutcome(error=(why,), is_user_error=True)))
        return given_up


class _ProgressReports:
    """Passes the workers' progress reports on to `tell`."""

    def __init__(self) -> None:
        self.tell: Callable[[str, int, int], None] = lambda *_: None
        self._asked_at = time.monotonic()
        self._actor: Any = None
        self._asked: Any = None

    def actor(self) -> Any:  # noqa: ANN401 - Ray's
        """Return the actor that collects the reports, on the driver's node, which is not removed."""
        if self._actor is None:
            import ray
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
            self._actor = remote(Reports, num_cpus=0, scheduling_strategy=here)()
        return self._actor

    def pass_on(self) -> None:
        """Pass on reports that have arrived, or request new ones every few seconds; never wait."""
        if self._asked is None:
            if self._actor is not None and time.monotonic() - self._asked_at > SECONDS_BETWEEN_REPORTS:
                self._asked, self._asked_at = self._actor.taken.remote(), time.monotonic()
            return
        import ray
        from ray.exceptions import RayError

        if ray.wait([self._asked], timeout=0)[0]:
            reference, self._asked = self._asked, None
            try:
                for identity, (done, total) in ray.get(reference).items():
                    self.tell(identity, done, total)
            except RayError:  # the next job gets another
                self._actor = None


def _where_stated(stage: Stage, need: Needs) -> str:
    resources = f"runtime.resources.{stage.kind}"
    return f"train.devices, or in {resources}" if need.gpus and stage.operation.num_devices > 1 else resources


@contextmanager
def ray_cluster(
    runtime: Runtime,
    stages: Iterable[Stage],
    needs: "NeedsOf",
    folder: Path | None,
    num_here: int,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[RayCluster]:
    """Connect to the cluster and yield an executor for it and for `num_here` processes of this machine.

    `needs` returns a stage's resources. `folder`, if there is one, must be visible to all nodes. `say`
    reports nodes that join, go or are refused. Disconnects from Ray at the end.

    Raises UserError if Ray is not installed, if there is no cluster, if a node has other code or can't see
    the folder, or if a stage fits no node and the run does not wait for one.
    """
    try:
        import ray
    except ImportError:
        raise UserError(f"runtime.executor ray needs Ray: {INSTALL}") from None
    connect(runtime.address)
    try:
        with closing(LocalProcesses(num_here)) as beside, marker_in(folder) as marker:
            nodes = LiveNodes(marker, say)
            nodes.check()
            with closing(RayCluster(nodes, needs, runtime, beside, say)) as cluster:
                cluster.check_fit(stages, say)
                yield cluster
    finally:
        ray.shutdown()


def _served(job: StageJob) -> Endpoint | None:
    """Return the endpoint that a job's stages ask, if the run serves it on the cluster."""
    llm, model = job.stages[0].operation.asked_llm, job.llm
    if llm is None or model is None or model.door is None or not model.door.is_elsewhere:
        return None
    return llm.endpoint(model)
