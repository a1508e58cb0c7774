"""A task of Slurm: takes jobs of a run from the shared store until the run is over or no job comes.

Slurm signals a task before its time limit. The task then leaves its job, whose journal and checkpoints stay.
The task reports this to the run and goes back into Slurm's queue.
"""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType

from synthbench.base.errors import UserError
from synthbench.engine.devices import with_leased
from synthbench.engine.elsewhere import own_code
from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import free_gpu_memory
from synthbench.engine.progress import PlainProgress
from synthbench.engine.slurm import requeue
from synthbench.engine.slurm_queue import KEY_VARIABLE, SECONDS_BETWEEN_LOOKS, Left, Queue, numbers
from synthbench.engine.store import Store
from synthbench.engine.stores import open_store

SECONDS_IDLE = 120.0
"""A task that gets no job for so long gives its node back."""


class EndingError(BaseException):
    """Slurm ends the task: soon (its time limit) or now (cancelled or preempted)."""


@dataclass
class SlurmTask:
    """Takes the jobs of a queue that need `gpus` GPUs, and runs them; `name` is the task's id in Slurm."""

    queue: Queue
    store: Store
    name: str
    gpus: int
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def work(self) -> None:
        """Run jobs until the run is over or no job comes for 2 minutes.

        If this node has other code than the run, reports this to the run and raises UserError. If Slurm ends
        the task, its job goes back into the queue, and EndingError is raised.
        """
        ours, code = own_code(), self.queue.code()
        if code not in ("", ours):
            node = f"node {socket.gethostname()}"
            reason = f"{node}: has synthbench {ours}, the run {code}; install the same on all nodes"
            self.queue.refuse(self.name, reason)
            raise UserError(reason)
        self._leave_earlier()
        idle_since = self.clock()
        while self.clock() - idle_since < SECONDS_IDLE:
            entries = self.queue.look()
            if not entries.is_open:
                return
            if any(self._take(number) for number in numbers(entries, self.gpus)):
                idle_since = self.clock()
            else:
                self.sleep(SECONDS_BETWEEN_LOOKS)

    def _leave_earlier(self) -> None:
        """Give back the jobs that this task had taken before it crashed and Slurm restarted it."""
        entries = self.queue.look()
        for number in sorted(entries.claims - entries.ended):
            if self.queue.taker(number) == self.name:
                self.queue.end(number, Left(f"Slurm restarted task {self.name}", is_loss=True))

    def _take(self, number: int) -> bool:
        """Run a job; False if another task has taken it."""
        try:
            if not self.queue.claim(number, self.name):
                return False
            outcome = self._outcome(number)
            if outcome is not None:
                self.queue.end(number, outcome)
        except EndingError as ending:
            if self.queue.taker(number) == self.name:
                self.queue.end(number, Left(f"task {self.name}: {ending}"))
            raise
        return True

    def _outcome(self, number: int) -> JobOutcome | None:
        """Run a job and return its outcome; None if the job has ended meanwhile."""
        try:
            job = self.queue.job(number, self.gpus)
        except Exception as error:  # noqa: BLE001 - a plug-in's module may raise anything
            return JobOutcome(
                error=(f"can't be read on {socket.gethostname()}: {error}",), is_user_error=True
            )
        if job is None:
            return None
        outcome = self._here(job).run_as_planned()
        free_gpu_memory()
        return outcome

    def _here(self, job: StageJob) -> StageJob:
        """Return a job with this machine's copy of the store, its GPUs and cores."""
        cores = os.environ.get("SLURM_CPUS_PER_TASK", "")
        threads = int(cores) if cores.isdecimal() else job.runtime.threads
        runtime = with_leased(job.runtime, self.gpus).model_copy(update={"threads": threads})
        return replace(job, store=self.store, runtime=runtime)


@contextmanager
def heeding_slurm() -> Iterator[None]:
    """Raise EndingError in the block when Slurm ends the task; only the first signal counts."""

    def end(number: int, frame: FrameType | None) -> None:
        for each in (signal.SIGUSR1, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise EndingError("its time is nearly over" if number == signal.SIGUSR1 else "Slurm ended it")

    for each in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(each, end)
    yield


def main() -> None:
    """Work as one task of an array; arguments: the run's id and the task's number of GPUs.

    Exits with code 2 after a UserError.
    """
    from synthbench.base.processes import disable_telemetry
    from synthbench.base.terminal import show_control_characters

    disable_telemetry()
    show_control_characters()
    run, gpus = sys.argv[1:]
    name = f"{os.environ['SLURM_ARRAY_JOB_ID']}_{os.environ['SLURM_ARRAY_TASK_ID']}"
    progress = PlainProgress()
    progress.say(f"task {name} on {socket.gethostname()}")
    try:
        with heeding_slurm():
            # Children, such as a training's other processes, don't get the key.
            key = bytes.fromhex(os.environ.pop(KEY_VARIABLE))
            store = open_store()
            store.say = progress.say
            assert store.shared is not None
            queue = Queue(store.shared.objects, run, key)
            SlurmTask(queue, store, name, int(gpus), progress.say).work()
        progress.say("no more work for this task")
    except EndingError as ending:
        progress.say(f"this task ends: {ending}")
        if str(ending) != "Slurm ended it":
            requeue(name)
    except UserError as error:
        for line in error.messages:
            progress.say(f"error: {line}")
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
