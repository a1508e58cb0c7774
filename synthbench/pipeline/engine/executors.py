"""Where jobs run: in this process, or in several local ones."""

import concurrent.futures
import io
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from synthbench.pipeline.engine.jobs import Job, Outcome
from synthbench.pipeline.engine.progress import PlainProgress
from synthbench.processes import follow_parent

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class InProcess:
    """Runs each job at once, in this process."""

    def __init__(self) -> None:
        self._finished: list[tuple[Job, Outcome]] = []

    @property
    def capacity(self) -> int:
        """One job at a time."""
        return 1

    def submit(self, job: Job) -> None:
        """Run the job to its end."""
        self._finished.append((job, job.run()))

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Return the job that ran."""
        finished, self._finished = self._finished, []
        return finished


class LocalProcesses:
    """Runs up to `num_processes` jobs at a time in processes of their own.

    Each process is a pool of its own: the death of a process ends all the work of its pool. What processes
    write on standard error goes to `say`, line by line, if that is given: bars may stand below.
    """

    def __init__(self, num_processes: int, say: Callable[[str], None] | None = None) -> None:
        self._say = say
        self._idle = [self._new_pool() for _ in range(num_processes)]
        self._running: dict[Future[Outcome], tuple[Job, ProcessPoolExecutor]] = {}

    @property
    def capacity(self) -> int:
        """Processes without a job."""
        return len(self._idle)

    def submit(self, job: Job) -> None:
        """Hand the job to a process; its progress comes as plain lines."""
        pool = self._idle.pop()
        job_there = replace(job, progress=PlainProgress())
        try:
            future = pool.submit(_run, job_there)
        except BrokenProcessPool:
            pool = self._new_pool()
            future = pool.submit(_run, job_there)
        self._running[future] = (job, pool)

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Return what has finished, at least one job."""
        if not self._running:
            return []
        done, _ = concurrent.futures.wait(self._running, return_when=concurrent.futures.FIRST_COMPLETED)
        return [self._finished(future) for future in done]

    def _new_pool(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        sender = None
        if self._say is not None:
            receiver, sender = context.Pipe(duplex=False)
            threading.Thread(target=_relay, args=(receiver, self._say), daemon=True).start()
        return ProcessPoolExecutor(1, context, _start_worker, (os.getpid(), sender))

    def _finished(self, future: "Future[Outcome]") -> tuple[Job, Outcome]:
        job, pool = self._running.pop(future)
        self._idle.append(pool)
        return job, _outcome(future)

    def close(self) -> None:
        """End all processes, those at work at once: unfinished stages keep their journals and checkpoints."""
        if self._running:
            for process in multiprocessing.active_children():
                process.terminate()
        for pool in (*self._idle, *(pool for _, pool in self._running.values())):
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def executor(num_jobs: int, say: Callable[[str], None] | None = None) -> Iterator[InProcess | LocalProcesses]:
    """Open the executor for `--jobs`; `say` takes the lines of several processes, if it is given."""
    if num_jobs == 1:
        yield InProcess()
        return
    processes = LocalProcesses(num_jobs, say)
    try:
        yield processes
    finally:
        processes.close()


class _Lines(io.TextIOBase):
    """A worker's standard error: whole lines, sent to the process that shows them."""

    def __init__(self, sender: "Connection[str, str]") -> None:
        self._sender = sender
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._sender.send(line)
        return len(text)


def _relay(receiver: "Connection[str, str]", say: Callable[[str], None]) -> None:
    """Hand on the lines of a worker until it is gone."""
    while True:
        try:
            say(receiver.recv())
        except (EOFError, OSError):
            return


def _run(job: Job) -> Outcome:
    return job.run()


def _outcome(future: "Future[Outcome]") -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        message = "its process was killed (out of memory?); run the same command again, with fewer --jobs"
        return Outcome(error=(message,), is_user_error=True)


def _start_worker(parent: int, sender: "Connection[str, str] | None") -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    from tqdm import tqdm

    from synthbench.processes import disable_telemetry
    from synthbench.terminal import show_control_characters

    follow_parent(parent)
    disable_telemetry()
    if sender is not None:
        sys.stderr = _Lines(sender)
    show_control_characters()
    # Its own lock is a semaphore of the system, about which Python complains where a worker is ended at once.
    tqdm.set_lock(threading.RLock())
