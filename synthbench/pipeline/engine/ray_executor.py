"""The executor that runs jobs on a Ray cluster: jobs travel, artifacts do not, the store has them."""

import logging
import os
import pickle
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from synthbench.errors import UserError
from synthbench.pipeline.engine.devices import with_leased
from synthbench.pipeline.engine.jobs import Job, LocalProcesses, Outcome
from synthbench.pipeline.engine.progress import PlainProgress
from synthbench.pipeline.engine.stage import Stage
from synthbench.plugin_code import content_of_synthbench
from synthbench.processes import OPT_OUTS
from synthbench.runtime import Runtime

INSTALL = "pip install 'synthbench[ray]'"
SECONDS_TO_CONNECT = 10.0
SECONDS_TO_ANSWER = 120.0
"""A node that has never run synthbench starts a Python process and imports it."""
SECONDS_BETWEEN_LOOKS = 0.1
RETRIES_TO_LOOK = 3
JOBS_PER_CORE = 2
"""Jobs that are with Ray for each core of the cluster, so that none is idle between two."""
GB = 1e9
PASSED_ON = ("SYNTHBENCH_", "HF_HUB_OFFLINE", "HF_HOME", "OMP_", "GOMP_", "MKL_", "TOKENIZERS_")
"""Beginnings of the variables that workers get. None holds a secret: nodes have credentials of their own."""


@dataclass(frozen=True)
class Needs:
    """What a stage takes of a node: CPU cores, GPUs or a share of one, gigabytes of main memory."""

    cpus: int
    gpus: float
    memory_gb: float

    def __str__(self) -> str:
        gpus = f", {self.gpus:g} GPU{'s' * (self.gpus > 1)}" if self.gpus else ""
        return f"{self.cpus} CPU core{'s' * (self.cpus > 1)}{gpus}, {self.memory_gb:g} GB of memory"

    def fit(self, node: "Node") -> bool:
        """Tell whether a node with nothing else to do can hold it."""
        return self.cpus <= node.cpus and self.gpus <= node.gpus and self.memory_gb <= node.memory_gb


NeedsOf = Callable[[Stage, float], Needs]
"""What a stage needs on a cluster with a node that has so many GPUs."""


@dataclass(frozen=True)
class Node:
    """A node of the cluster, with all that it has."""

    identity: str
    name: str
    cpus: float
    gpus: float
    memory_gb: float

    def __str__(self) -> str:
        return f"{self.name}: {Needs(int(self.cpus), self.gpus, round(self.memory_gb, 1))}"


@dataclass(frozen=True)
class _Code:
    """What must be the same on all nodes."""

    synthbench: str
    content: str
    python: str

    def __str__(self) -> str:
        return f"{self.synthbench} (content {self.content[:8]}, Python {self.python})"


@dataclass(frozen=True)
class _Found:
    """What a node has: its code, and whether it sees the store's folder and gets a lock that is held."""

    code: _Code
    sees: bool = True
    locks_too: bool = False


@dataclass
class _Sent:
    """A job that is with Ray, and how often its worker was lost."""

    job: Job
    needs: Needs
    losses: int = 0


class RayCluster:
    """Runs jobs on a cluster's nodes. What asks an LLM or reads given data runs on this machine.

    So there is one writer of answers and ledger, and data need to be on this machine alone. A job whose
    worker is lost starts again, up to `retries` times.
    """

    def __init__(
        self, nodes: Sequence[Node], needs: Callable[[Stage], Needs], retries: int, beside: LocalProcesses
    ) -> None:
        self._most = max(1, int(sum(node.cpus for node in nodes))) * JOBS_PER_CORE
        self._nodes = nodes
        self._needs = needs
        self._retries = retries
        self._beside = beside
        self._waiting_here: deque[Job] = deque()
        self._num_here = 0
        self._sent: dict[Any, _Sent] = {}

    def check_fit(self, stages: Iterable[Stage]) -> None:
        """Raise UserError with a line for each sort of stage that no node can hold: it would only wait."""
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
        """Jobs that may still be given to Ray."""
        return max(0, self._most - len(self._sent) - len(self._waiting_here) - self._num_here)

    def fits(self, stage: Stage) -> bool:
        """Any stage: Ray lets it wait for a node."""
        return True

    def submit(self, job: Job) -> None:
        """Send a job to the cluster, or to a process of this machine."""
        if _stays(job):
            self._waiting_here.append(job)
            self._feed()
        else:
            self._send(_Sent(job, self._needs(job.stages[0])))

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Return finished jobs, at least one if any is running."""
        while self._sent or self._num_here:
            finished = [*self._finished_here(), *self._finished_there()]
            if finished:
                return finished
        return []

    def _feed(self) -> None:
        while self._waiting_here and self._beside.capacity:
            self._beside.submit(self._waiting_here.popleft())
            self._num_here += 1

    def _finished_here(self) -> list[tuple[Job, Outcome]]:
        seconds = 0.0 if self._sent else None
        finished = self._beside.wait(seconds) if self._num_here else []
        self._num_here -= len(finished)
        self._feed()
        return finished

    def _send(self, sent: _Sent) -> None:
        # Ray shows all GPUs to a task that asks for none, and to others only their own.
        runtime = with_leased(sent.job.runtime, sent.needs.gpus)
        runtime = runtime.model_copy(update={"threads": sent.needs.cpus})
        job = replace(sent.job, progress=PlainProgress(), runtime=runtime)
        options = {
            "num_cpus": sent.needs.cpus,
            "num_gpus": sent.needs.gpus,
            "memory": int(sent.needs.memory_gb * GB),
            "max_retries": 0,
            "name": str(job.stages[0]),
        }
        self._sent[_remote(_carry_out, **options)(pickle.dumps(job))] = sent

    def _finished_there(self) -> list[tuple[Job, Outcome]]:
        import ray

        if not self._sent:
            return []
        done, _ = ray.wait(list(self._sent), num_returns=1, timeout=SECONDS_BETWEEN_LOOKS)
        found = ((self._sent.pop(reference), reference) for reference in done)
        outcomes = [(sent.job, self._outcome(sent, reference)) for sent, reference in found]
        return [(job, outcome) for job, outcome in outcomes if outcome is not None]

    def _outcome(self, sent: _Sent, reference: Any) -> Outcome | None:  # noqa: ANN401 - Ray's
        """Return how a job ended, None if it starts again because its worker was lost."""
        import ray
        from ray.exceptions import RayError, RayTaskError

        try:
            outcome: Outcome = ray.get(reference)
        except RayTaskError as error:
            return Outcome(error=(str(error),))
        except RayError as loss:
            sent.losses += 1
            what = _first_sentence(loss)
            if sent.losses <= self._retries:
                sent.job.progress.say(f"starting {sent.job.stages[0]} again: {what}")
                self._send(sent)
                return None
            message = (
                f"its worker was lost {_times(sent.losses)} ({what}); it had {sent.needs}. Run the same"
                f" command again, or state more in runtime.resources.{sent.job.stages[0].kind}"
            )
            return Outcome(error=(message,), is_user_error=True)
        return outcome


def _where_stated(stage: Stage, need: Needs) -> str:
    resources = f"runtime.resources.{stage.kind}"
    return f"train.devices, or in {resources}" if need.gpus and stage.operation.num_devices > 1 else resources


@contextmanager
def ray_cluster(
    runtime: Runtime, stages: Iterable[Stage], needs: "NeedsOf", folder: Path | None, num_here: int
) -> Iterator[RayCluster]:
    """Connect to the cluster and yield its executor, with `num_here` processes of this machine beside it.

    `needs` is told of a stage, and of the most GPUs that a node has. `folder`, if there is one, must be seen
    by all nodes.

    Raises UserError if there is no cluster, if a node has other code or does not see the folder, or if no
    node can hold one of the stages.
    """
    try:
        import ray
    except ImportError:
        raise UserError(f"runtime.executor ray needs Ray: {INSTALL}") from None
    _connect(runtime.address)
    beside = LocalProcesses(num_here)
    try:
        nodes = _nodes()
        _check_nodes(nodes, folder)
        num_gpus = max(node.gpus for node in nodes)
        cluster = RayCluster(nodes, lambda stage: needs(stage, num_gpus), runtime.retries, beside)
        cluster.check_fit(stages)
        yield cluster
    finally:
        beside.close()
        ray.shutdown()


def _stays(job: Job) -> bool:
    return job.llm is not None or any(stage.operation.comes_first for stage in job.stages)


def _connect(address: str) -> None:
    import ray

    if address.startswith("ray://"):
        raise UserError(
            f"runtime.address {address}: Ray's client protocol carries no workers' output; run the command on"
            " a machine of the cluster, with `--address auto`"
        )
    if ":" in address:
        _check_reachable(address)
    # Workers of a cluster that is started here inherit these; a running one passes them on, below.
    for name, value in {
        "RAY_DEDUP_LOGS": "0",
        "RAY_COLOR_PREFIX": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    }.items():
        os.environ.setdefault(name, value)
    variables = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
    try:
        ray.init(
            address=address or "local",
            runtime_env={"env_vars": {**OPT_OUTS, **variables}},
            logging_level=logging.ERROR,
            include_dashboard=None if address else False,
            log_to_driver=True,
        )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"no Ray cluster at '{address}': {_first_sentence(error)}. {_HOW_TO_START}") from None


_HOW_TO_START = "Start one by `ray start --head`, or leave out the address to use this machine alone"


def _check_reachable(address: str) -> None:
    """Look whether anything listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), SECONDS_TO_CONNECT):
            return
    except (OSError, ValueError) as error:
        raise UserError(f"no Ray cluster at '{address}': {error}. {_HOW_TO_START}") from None


def _nodes() -> list[Node]:
    import ray

    found = []
    for node in ray.nodes():  # type: ignore[no-untyped-call]
        if node["Alive"]:
            has: Mapping[str, float] = node["Resources"]
            found.append(
                Node(
                    node["NodeID"],
                    f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})",
                    has.get("CPU", 0.0),
                    has.get("GPU", 0.0),
                    has.get("memory", 0.0) / GB,
                )
            )
    return found


def _check_nodes(nodes: Sequence[Node], folder: Path | None) -> None:
    """Raise UserError with a line for each node that has other code, or does not see the folder."""
    import ray
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    with _marker(folder) as marker:
        asked = {}
        for node in nodes:
            there = NodeAffinitySchedulingStrategy(node.identity, soft=False)
            asked[node] = _remote(_look, num_cpus=0, max_retries=RETRIES_TO_LOOK, scheduling_strategy=there)(
                marker
            )
        problems, ours = [], _own_code()
        for node, reference in asked.items():
            try:
                found = ray.get(reference, timeout=SECONDS_TO_ANSWER)
            except GetTimeoutError:
                problems.append(f"node {node.name}: no answer within {SECONDS_TO_ANSWER:g} s")
                continue
            except RayTaskError as error:
                problems.append(
                    f"node {node.name}: synthbench can't be used there ({_first_sentence(error.cause)});"
                    f" install synthbench {ours.synthbench} there: {INSTALL}"
                )
                continue
            except RayError as error:
                # A node that was lost meanwhile holds up nobody.
                if node.identity in {other.identity for other in _nodes()}:
                    problems.append(f"node {node.name}: no answer ({_first_sentence(error)})")
                continue
            problems += _faults(node, found, ours, folder)
    if problems:
        raise UserError(*problems)


@contextmanager
def _marker(folder: Path | None) -> Iterator[Path | None]:
    """Yield a file in the folder that this process has locked, None without a folder."""
    if folder is None:
        yield None
        return
    from filelock import FileLock

    marker = folder / f".seen-{socket.gethostname()}-{os.getpid()}"
    try:
        with FileLock(marker):
            yield marker
    finally:
        marker.unlink(missing_ok=True)


def _faults(node: Node, found: "_Found", ours: _Code, folder: Path | None) -> Iterator[str]:
    """Yield what is wrong with a node's code, and with the folder as it sees it."""
    if found.code != ours:
        yield f"node {node.name}: has synthbench {found.code}, this machine {ours}; install the same"
    if not found.sees:
        yield f"node {node.name}: does not see {folder}; set SYNTHBENCH_HOME to a folder that all nodes share"
    elif found.locks_too:
        yield (
            f"node {node.name}: got a lock in {folder} that this machine holds, so two runs could compute one"
            " stage at once; set SYNTHBENCH_STORE to a folder or bucket, which needs no locks"
        )


def _remote(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:  # noqa: ANN401 - Ray's
    """Return the function to be called on the cluster; it travels by its name."""
    import ray

    called: Callable[..., Any] = ray.remote(function).options(**options).remote
    return called


def _own_code() -> _Code:
    return _Code(version("synthbench"), content_of_synthbench(), sys.version.split()[0])


def _look(marker: Path | None) -> "_Found":
    """Tell what the node that this runs on has; `marker` is a file that the driver has locked."""
    if marker is None or not marker.is_file():
        return _Found(_own_code(), sees=marker is None)
    from filelock import FileLock, Timeout

    try:
        with FileLock(marker, timeout=0):
            return _Found(_own_code(), locks_too=True)
    except Timeout:
        return _Found(_own_code())


def _carry_out(sent: bytes) -> Outcome:
    """Run a job on a node, unless its stages are other ones there."""
    try:
        job: Job = pickle.loads(sent)
    except Exception as error:  # noqa: BLE001 - whatever a plug-in's module raises
        return Outcome(error=(f"can't be read on {socket.gethostname()}: {error}",), is_user_error=True)
    try:
        for stage in job.stages:
            stage.check_identity()
    except UserError as error:
        return Outcome(error=error.messages, is_user_error=True)
    return job.run()


def _first_sentence(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = type(error).__name__
    return f"{kind}: {lines[0].partition('. ')[0].rstrip('.')}" if lines else kind


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")
