"""Jobs, which compute the stages of a group, and the executors that run them: in this process or several."""

import concurrent.futures
import contextlib
import gc
import io
import multiprocessing
import os
import platform
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar

from synthbench.base.errors import PendingError, UserError
from synthbench.base.processes import follow_parent
from synthbench.base.runtime import Progress, Runtime
from synthbench.engine.artifacts import fetch_checked
from synthbench.engine.devices import VISIBLE, Devices, GPULease, with_leased
from synthbench.engine.local_locks import StageBusyError
from synthbench.engine.progress import PlainProgress, StageProgress, about
from synthbench.engine.stage import GroupMember, Stage
from synthbench.engine.store import ArtifactDamagedError, Store, disk_errors
from synthbench.engine.workspace import ChatAccess, Workspace
from synthbench.llm.endpoint import Account, ChatModel
from synthbench.models.warm import keep_models

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


SECONDS_FOR_LAST_LINES = 5.0
PRELOADED = "synthbench.pipeline.preloaded"
"""The module that imports what stages import."""


@dataclass(frozen=True)
class JobOutcome:
    """How a job ended: `executed` and `shared` are the identities of the stages that now have artifacts.

    `busy` names the process that holds a lock; nothing was done then. For the other stages, `pending` says
    which batches of an LLM they wait for, `error` what went wrong.
    """

    executed: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    busy: str = ""
    pending: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    is_user_error: bool = False
    seconds: float = 0.0


Report = tuple[str, int, int]
"""A stage's identity, and the units of its task that are done, and all."""


def tell_parent(identity: str, done: int, total: int) -> None:
    """Send a stage's report to the process that this one works for, if there is one."""
    if _Lines.parent is not None:
        _Lines.parent.send((identity, done, total))


@dataclass(frozen=True)
class StageJob:
    """Stages that run together; those in `again` are computed even if they are cached.

    `position`: the number of the first among all stages to run, and their total. `llm`: the address of the
    LLM that a stage uses. `experiment` pays for it. `tell` gets each stage's `Report`s.
    """

    store: Store
    stages: Sequence[Stage]
    runtime: Runtime
    progress: Progress
    again: frozenset[str] = field(default_factory=frozenset)
    position: tuple[int, int] = (1, 1)
    llm: ChatModel | None = None
    experiment: str = ""
    tell: Callable[[str, int, int], None] = tell_parent

    def run(self) -> JobOutcome:
        """Compute the stages whose artifacts are missing; never raises but for interruption."""
        started = time.perf_counter()
        executed: list[str] = []
        self.store.say = self.progress.say
        try:
            with contextlib.ExitStack() as locks, disk_errors(self.store.root):
                for stage in sorted(self.stages, key=lambda stage: stage.identity):
                    note = locks.enter_context(self.store.lock(stage.identity, str(stage)))
                    if note:
                        self.progress.say(f"taking over {stage}: {note} left it unfinished")
                shared = {
                    s.identity for s in self.stages if s.identity not in self.again and self._is_there(s)
                }
                missing = [stage for stage in self.stages if stage.identity not in shared]
                try:
                    for identity, is_ours in self._commits(missing):
                        if is_ours:
                            executed.append(identity)
                        else:
                            shared.add(identity)
                finally:
                    for stage in missing:
                        self.store.clear_output(stage.identity)
                return JobOutcome(tuple(executed), tuple(shared), seconds=time.perf_counter() - started)
        except StageBusyError as busy:
            return JobOutcome(busy=str(busy))
        except PendingError as pending:
            return JobOutcome(tuple(executed), pending=pending.messages)
        except UserError as error:
            return JobOutcome(tuple(executed), error=error.messages, is_user_error=True)
        except ArtifactDamagedError as damage:
            message = f"an input is damaged ({damage}); run the same command again, which computes it anew"
            return JobOutcome(tuple(executed), error=(message,), is_user_error=True)
        except SystemExit as end:
            message = f"its code ended the process (sys.exit({end.code!r})) instead of returning"
            return JobOutcome(tuple(executed), error=(message,), is_user_error=True)
        except Exception:  # noqa: BLE001 - one stage's bug must not take the others' work along
            return JobOutcome(tuple(executed), error=(traceback.format_exc(),))

    def _is_there(self, stage: Stage) -> bool:
        if not self.store.has(stage.identity):
            return False
        try:
            self.store.check(stage.identity)
        except ArtifactDamagedError:
            return False
        return True

    def _commits(self, stages: Sequence[Stage]) -> Iterator[tuple[str, bool]]:
        """Commit each stage; yield its identity, and whether its artifact is ours, not another machine's."""
        unfinished = []
        for stage in stages:
            is_new = stage.identity not in self.again
            is_ours = self.store.commit_finished(stage.identity) if is_new else None
            if is_ours is None:
                unfinished.append(stage)
            else:
                self.progress.say(f"committed {stage}, which a former run had finished")
                yield stage.identity, is_ours
        if unfinished:
            yield from self._compute(unfinished)

    def _compute(self, stages: Sequence[Stage]) -> Iterator[tuple[str, bool]]:
        """Compute and commit each stage, as `_commits`."""
        for stage in stages:
            stage.check_code()
        keep_models(stages[0].paid_by)
        first, total = self.position
        for number, stage in enumerate(stages, first):
            if stage.identity in self.again:
                self.store.forget_partial(stage.identity)
            self.progress.say(f"running {stage} [{number}/{total}]")
        started = time.perf_counter()
        members = [
            GroupMember(
                stage.operation,
                {name: fetch_checked(self.store, source) for name, source in stage.reads.items()},
                self._workspace(stage),
            )
            for stage in stages
        ]
        finished = members[0].operation.run_together(members)
        for stage, _ in zip(stages, finished, strict=True):
            seconds = time.perf_counter() - started
            record = {
                "label": str(stage),
                "spec": stage.stored_spec,
                "seconds": round(seconds + self._seconds_of_shards(stage), 3),
                "threads": self.runtime.threads,
                "by": environment(),
            }
            is_ours = self.store.commit(stage.identity, record)
            started += seconds
            yield stage.identity, is_ours

    def _seconds_of_shards(self, stage: Stage) -> float:
        infos = (self.store.info(shard.identity) or {} for shard in stage.shards)
        return sum(float(info.get("seconds", 0.0)) for info in infos)

    def _workspace(self, stage: Stage) -> Workspace:
        chat = None
        if self.llm is not None:
            account = Account(self.experiment, stage.paid_by or stage.identity)
            chat = ChatAccess(self.llm, self.store.answers, account)
        progress = StageProgress(about(self.progress, str(stage)), partial(self.tell, stage.identity))
        work = Workspace(self.store.workspace(stage.identity), self.runtime, progress, chat, stage.trusted)
        num_damaged = work.journal.repair()
        if num_damaged:
            self.progress.say(
                f"{stage}: dropped {num_damaged:,} journal line{'s' * (num_damaged != 1)}, damaged or of an "
                "earlier version; their records are made again"
            )
        return work


@cache
def environment() -> Mapping[str, str]:
    """Return the versions of Python and packages, and the machine, that results depend on."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    for package in ("synthbench", "torch", "transformers", "sentence-transformers", "numpy", "scipy"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


class InProcess:
    """Runs each job at once, in this process."""

    def __init__(self) -> None:
        self._finished: list[tuple[StageJob, JobOutcome]] = []

    @property
    def capacity(self) -> int:
        """One job at a time."""
        return 0 if self._finished else 1

    def fits(self, stage: Stage) -> bool:
        """Any stage: it has all of this machine."""
        return True

    def submit(self, job: StageJob) -> None:
        """Run the job to its end."""
        self._finished.append((job, job.run()))

    def wait(self) -> list[tuple[StageJob, JobOutcome]]:
        """Return the job that ran."""
        finished, self._finished = self._finished, []
        return finished


@dataclass(frozen=True)
class _Worker:
    """A process, and the GPUs that it sees for as long as it lives; None: those that this process sees.

    It is a pool of its own, since the death of a process breaks its pool.
    """

    pool: ProcessPoolExecutor
    sees: tuple[str, ...] | None = None


class LocalProcesses:
    """Runs up to `num_processes` jobs at a time, each in a process of its own.

    With `devices`, a job gets the GPUs that it needs, in a process that sees no others. CUDA settles what a
    process sees when it is first used, and torch takes seconds to import. So a process keeps its GPUs, and
    jobs go to an idle process with theirs; only if there is none, a new process replaces an idle one.

    Lines that processes write to standard error go to `say`, by default to this process's standard error.
    """

    def __init__(
        self, num_processes: int, say: Callable[[str], None] | None = None, devices: Devices | None = None
    ) -> None:
        self._num_processes = num_processes
        self._say = say or _to_standard_error
        self._tell: Callable[[str, int, int], None] = tell_parent
        self._relays: list[tuple[threading.Thread, Connection[str | Report, str | Report]]] = []
        self._devices = devices
        self._idle: list[_Worker] = []
        self._running: dict[Future[JobOutcome], tuple[StageJob, _Worker, GPULease]] = {}

    @property
    def capacity(self) -> int:
        """How many more jobs there are processes for."""
        return self._num_processes - len(self._running)

    def fits(self, stage: Stage) -> bool:
        """Tell whether the GPUs that a stage needs are free."""
        return self._devices is None or self._devices.fits(stage)

    def submit(self, job: StageJob) -> None:
        """Send the job to a process, which reports progress as plain lines."""
        lease, sees, runtime = GPULease(), None, job.runtime
        if self._devices is not None:
            first = job.stages[0]
            lease = self._devices.lease(first, [each.sees for each in reversed(self._idle) if each.sees])
            sees, runtime = lease.names, with_leased(runtime, self._devices.gpus(first))
        worker = self._take(sees)
        job_there = replace(job, progress=PlainProgress(), runtime=runtime, tell=tell_parent)
        self._tell = job.tell
        try:
            future = worker.pool.submit(_run, job_there)
        except BrokenProcessPool:
            worker = _Worker(self._new_pool(sees), sees)
            future = worker.pool.submit(_run, job_there)
        self._running[future] = (job, worker, lease)

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        """Return what has finished, at least one job unless so many seconds have passed."""
        if not self._running:
            return []
        first = concurrent.futures.FIRST_COMPLETED
        done, _ = concurrent.futures.wait(self._running, seconds, return_when=first)
        return [self._finished(future) for future in done]

    def _take(self, sees: tuple[str, ...] | None) -> _Worker:
        """Return the process that became idle last among those that see these GPUs, else a new one."""
        for index in reversed(range(len(self._idle))):
            if self._idle[index].sees == sees:
                return self._idle.pop(index)
        if len(self._idle) + len(self._running) >= self._num_processes:
            self._idle.pop(0).pool.shutdown(wait=True)
        return _Worker(self._new_pool(sees), sees)

    def _new_pool(self, sees: tuple[str, ...] | None) -> ProcessPoolExecutor:
        context = worker_context()
        receiver, sender = context.Pipe(duplex=False)
        relay = threading.Thread(target=self._relay, args=(receiver,), daemon=True)
        relay.start()
        self._relays.append((relay, sender))
        start = _Start(os.getpid(), sender, sees, dict(os.environ))
        return ProcessPoolExecutor(1, context, _start_worker, (start,))

    def _relay(self, receiver: "Connection[str | Report, str | Report]") -> None:
        """Pass on the lines and reports of a worker until it ends."""
        with contextlib.suppress(EOFError, OSError):
            while True:
                message = receiver.recv()
                if isinstance(message, str):
                    self._say(message)
                else:
                    self._tell(*message)

    def _finished(self, future: "Future[JobOutcome]") -> tuple[StageJob, JobOutcome]:
        job, worker, lease = self._running.pop(future)
        if self._devices is not None:
            self._devices.give_back(lease)
        self._idle.append(worker)
        return job, _outcome(future)

    def close(self) -> None:
        """End all processes, busy ones too: unfinished stages keep journals and checkpoints."""
        if self._running:
            for process in multiprocessing.active_children():
                process.terminate()
        for worker in (*self._idle, *(worker for _, worker, _ in self._running.values())):
            worker.pool.shutdown(wait=True, cancel_futures=True)
        for relay, sender in self._relays:
            # A relay ends once nobody can write to it.
            sender.close()
            relay.join(SECONDS_FOR_LAST_LINES)


def _to_standard_error(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


@contextmanager
def executor(
    num_jobs: int, say: Callable[[str], None] | None = None, devices: Devices | None = None
) -> Iterator[InProcess | LocalProcesses]:
    """Yield the executor for `--jobs`; `say` gets the lines of several processes, which share `devices`."""
    if num_jobs == 1:
        yield InProcess()
        return
    processes = LocalProcesses(num_jobs, say, devices)
    try:
        yield processes
    finally:
        processes.close()


def worker_context() -> "multiprocessing.context.BaseContext":
    """Return how processes that run stages are started: as copies of one that has imported what they need.

    Importing torch and its companions takes each process seconds otherwise. The copied process has imported
    and computed nothing, so it has no threads and no GPU.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


class _Lines(io.TextIOBase):
    """A worker's standard error, sent as whole lines to the process that shows them."""

    parent: ClassVar["Connection[str | Report, str | Report] | None"] = None

    def __init__(self, sender: "Connection[str | Report, str | Report]") -> None:
        _Lines.parent = self._sender = sender
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._sender.send(line)
        return len(text)


def _run(job: StageJob) -> JobOutcome:
    outcome = job.run()
    _free_gpu_memory()
    return outcome


def _free_gpu_memory() -> None:
    """Give back the memory that torch keeps for later: the next job on this GPU may be another process's."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def _outcome(future: "Future[JobOutcome]") -> JobOutcome:
    try:
        return future.result()
    except BrokenProcessPool:
        message = "its process was killed (out of memory?); run the same command again, with fewer --jobs"
        return JobOutcome(error=(message,), is_user_error=True)


@dataclass(frozen=True)
class _Start:
    """What a worker starts with: the process that it works for, whom it tells lines, its GPUs, variables.

    Without variables of its own it would have those of the time when the copied process started.
    """

    parent: int
    sender: "Connection[str | Report, str | Report]"
    sees: tuple[str, ...] | None
    variables: Mapping[str, str]


def _start_worker(start: _Start) -> None:
    """Leave Ctrl-C to the parent, and end when it is gone."""
    os.environ.clear()
    os.environ.update(start.variables)
    if start.sees is not None:
        os.environ[VISIBLE] = ",".join(start.sees)
    from tqdm import tqdm

    from synthbench.base.processes import disable_telemetry
    from synthbench.base.terminal import show_control_characters

    follow_parent(start.parent)
    disable_telemetry()
    sys.stderr = _Lines(start.sender)
    show_control_characters()
    # tqdm's own lock is a system semaphore; Python warns about it when a worker is terminated.
    tqdm.set_lock(threading.RLock())
