"""Local executors: run jobs in this process or in several."""

import concurrent.futures
import contextlib
import gc
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from synthbench.engine.devices import Devices, GPULease, with_leased
from synthbench.engine.jobs import Executor, JobOutcome, StageJob
from synthbench.engine.stage import Stage
from synthbench.engine.workers import Report, WorkerStart, start_worker, tell_parent, worker_context

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

SECONDS_FOR_LAST_LINES = 5.0
SECONDS_TO_END = 60.0
"""Time limit of a terminated worker to save its work and await LLM answers that are already paid."""


class InProcess(Executor):
    """Runs each job at once, in this process."""

    def __init__(self) -> None:
        self._finished: list[tuple[StageJob, JobOutcome]] = []

    @property
    def capacity(self) -> int:
        """The number of further jobs accepted now: 1, or 0 until `wait` has returned the finished job."""
        return 0 if self._finished else 1

    def submit(self, job: StageJob) -> None:
        """Run the job to its end."""
        self._finished.append((job, job.run()))

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        """Return the job that ran, [] if there is none; never waits."""
        finished, self._finished = self._finished, []
        return finished


@dataclass(frozen=True)
class _Worker:
    """A process, and the GPUs that it sees for its lifetime; `sees` None: the same GPUs as this process.

    Each worker is a pool of one, since the death of a process breaks its pool.
    """

    pool: ProcessPoolExecutor
    sees: tuple[str, ...] | None
    relay: threading.Thread
    sender: "Connection[str | Report, str | Report]"

    @property
    def processes(self) -> "list[BaseProcess]":
        """The worker's process, [] before its first job."""
        return list((self.pool._processes or {}).values())

    def end(self) -> None:
        """Wait until the process has ended, and until its last lines are passed on."""
        self.pool.shutdown(wait=True, cancel_futures=True)
        self.sender.close()  # the relay ends once its pipe has no writer
        self.relay.join(SECONDS_FOR_LAST_LINES)


class LocalProcesses(Executor):
    """Runs up to `num_processes` jobs at a time, each in a process of its own; further jobs wait.

    With `devices`, a job runs in a process that sees only the job's GPUs. CUDA fixes the visible GPUs at its
    first use, and importing torch takes seconds. So a process keeps its GPUs, and a job goes to an idle
    process that sees the right ones. If there is none, a new process replaces an idle one.

    Lines that workers write to standard error go to `say`, by default this process's standard error.
    """

    def __init__(
        self, num_processes: int, say: Callable[[str], None] | None = None, devices: Devices | None = None
    ) -> None:
        self._num_processes = num_processes
        self._say = say or _to_standard_error
        self._tell: Callable[[str, int, int], None] = tell_parent
        self._devices = devices
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []
        self._waiting: deque[StageJob] = deque()
        self._running: dict[Future[JobOutcome], tuple[StageJob, _Worker, GPULease]] = {}

    def __len__(self) -> int:
        """The number of unfinished jobs."""
        return len(self._waiting) + len(self._running)

    @property
    def capacity(self) -> int:
        """The number of free workers."""
        return self._num_processes - len(self._running)

    def fits(self, stage: Stage) -> bool:
        """Return whether the GPUs that a stage needs are free now."""
        return self._devices is None or self._devices.fits(stage)

    def submit(self, job: StageJob) -> None:
        """Queue the job for the next free process, which reports progress as plain lines."""
        self._waiting.append(job)
        self._start_waiting()

    def _start_waiting(self) -> None:
        while self._waiting and self.capacity:
            self._start(self._waiting.popleft())

    def _start(self, job: StageJob) -> None:
        lease, sees, runtime = GPULease(), None, job.runtime
        if self._devices is not None:
            first = job.stages[0]
            lease = self._devices.lease(first, [each.sees for each in reversed(self._idle) if each.sees])
            sees, runtime = lease.names, with_leased(runtime, self._devices.gpus(first))
        worker = self._take(sees)
        self._tell = job.tell
        try:
            future = worker.pool.submit(_run, job.for_worker(runtime))
        except BrokenProcessPool:
            self._end(worker)
            worker = self._new_worker(sees)
            future = worker.pool.submit(_run, job.for_worker(runtime))
        self._running[future] = (job, worker, lease)

    def wait(self, seconds: float | None = None) -> list[tuple[StageJob, JobOutcome]]:
        """Return finished jobs: at least one if any runs, or [] after `seconds`."""
        if not self._running:
            return []
        first = concurrent.futures.FIRST_COMPLETED
        done, _ = concurrent.futures.wait(self._running, seconds, return_when=first)
        finished = [self._finished(future) for future in done]
        self._start_waiting()
        return finished

    def _take(self, sees: tuple[str, ...] | None) -> _Worker:
        """Return the most recently idle process that sees these GPUs, else start one.

        If no more may start, the longest idle process ends first.
        """
        for index in reversed(range(len(self._idle))):
            if self._idle[index].sees == sees:
                return self._idle.pop(index)
        if len(self._idle) + len(self._running) >= self._num_processes:
            self._end(self._idle.pop(0))
        return self._new_worker(sees)

    def _new_worker(self, sees: tuple[str, ...] | None) -> _Worker:
        context = worker_context()
        receiver, sender = context.Pipe(duplex=False)
        relay = threading.Thread(target=self._relay, args=(receiver,), daemon=True)
        relay.start()
        start = WorkerStart(os.getpid(), sender, sees, dict(os.environ))
        pool = ProcessPoolExecutor(1, context, start_worker, (start,))
        self._workers.append(_Worker(pool, sees, relay, sender))
        return self._workers[-1]

    def _end(self, worker: _Worker) -> None:
        worker.end()
        self._workers.remove(worker)

    def _relay(self, receiver: "Connection[str | Report, str | Report]") -> None:
        """Pass on a worker's lines and reports until the pipe is closed."""
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
        """End all processes, even busy ones: journals and checkpoints of unfinished stages stay.

        Busy processes get SECONDS_TO_END to save their work.
        """
        if self._running:
            processes = [process for worker in self._workers for process in worker.processes]
            for process in processes:
                process.terminate()
            end = time.monotonic() + SECONDS_TO_END
            try:
                for process in processes:
                    process.join(max(0.0, end - time.monotonic()))
            finally:  # also at a second Ctrl-C
                for process in processes:
                    process.kill()
        for worker in self._workers:
            worker.end()


def executor(
    num_jobs: int, say: Callable[[str], None] | None = None, devices: Devices | None = None
) -> AbstractContextManager[InProcess | LocalProcesses]:
    """Open the executor for `--jobs`: this process for one job, else worker processes.

    Workers share `devices`; their output lines go to `say`.
    """
    return nullcontext(InProcess()) if num_jobs == 1 else closing(LocalProcesses(num_jobs, say, devices))


def _to_standard_error(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _run(job: StageJob) -> JobOutcome:
    """Run a job in a worker; at SIGTERM, save the work, release the leases, and end the process."""
    try:
        former = signal.signal(signal.SIGTERM, _interrupt)
        outcome = job.run()
        signal.signal(signal.SIGTERM, former)
    except KeyboardInterrupt:
        os._exit(1)
    free_gpu_memory()
    return outcome


def _interrupt(number: int, frame: FrameType | None) -> None:
    # The system signals all processes of a job, then the parent its workers: only the first one counts.
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def free_gpu_memory() -> None:
    """Empty torch's GPU memory cache: the next job on this GPU may run in another process."""
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
