"""Where jobs run: in this process, or in several local ones."""

import concurrent.futures
import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace

from synthbench.child_process import follow_parent
from synthbench.pipeline.job import Job, Outcome
from synthbench.pipeline.progress import PlainProgress


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

    Each process is a pool of its own: the death of a process ends all the work of its pool.
    """

    def __init__(self, num_processes: int) -> None:
        self._idle = [_new_pool() for _ in range(num_processes)]
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
            pool = _new_pool()
            future = pool.submit(_run, job_there)
        self._running[future] = (job, pool)

    def wait(self) -> list[tuple[Job, Outcome]]:
        """Return what has finished, at least one job."""
        if not self._running:
            return []
        done, _ = concurrent.futures.wait(self._running, return_when=concurrent.futures.FIRST_COMPLETED)
        return [self._finished(future) for future in done]

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
def executor(num_jobs: int) -> Iterator[InProcess | LocalProcesses]:
    """Open the executor for `--jobs`."""
    if num_jobs == 1:
        yield InProcess()
        return
    processes = LocalProcesses(num_jobs)
    try:
        yield processes
    finally:
        processes.close()


def _new_pool() -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, context, _start_worker, (os.getpid(),))


def _run(job: Job) -> Outcome:
    return job.run()


def _outcome(future: "Future[Outcome]") -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        message = "its process was killed (out of memory?); run the same command again, with fewer --jobs"
        return Outcome(error=(message,), is_user_error=True)


def _start_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone."""
    from tqdm import tqdm

    from synthbench.privacy import disable_telemetry
    from synthbench.terminal import show_control_characters

    follow_parent(parent)
    disable_telemetry()
    show_control_characters()
    # Its own lock is a semaphore of the system, about which Python complains where a worker is ended at once.
    tqdm.set_lock(threading.RLock())
