"""Runs jobs in Slurm tasks. The tasks take the jobs from the shared store.

A task serves many jobs, so that a stage waits neither for Slurm's queue nor for the imports.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.engine.elsewhere import lost, own_code, stays
from synthbench.engine.jobs import Executor, JobOutcome, StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.slurm import WORKING, Script, Slurm
from synthbench.engine.slurm_pool import TaskPool
from synthbench.engine.slurm_queue import KEY_VARIABLE, SECONDS_BETWEEN_LOOKS, Left, Queue
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.engine.stores import VARIABLE

TASK_MODULE = "synthbench.engine.slurm_task"
JOBS_PER_TASK = 2
"""Jobs in the queue per task, so that no task idles between jobs."""
Finished = list[tuple[StageJob, JobOutcome]]


@dataclass
class _Sent:
    """A job in the queue, its number of GPUs, the task that has taken it, and how often it was lost."""

    job: StageJob
    gpus: int
    task: str = ""
    losses: int = 0


class SlurmArrays(Executor):
    """Runs jobs in Slurm's tasks; stages that ask an LLM or read sources run on this machine.

    If a job's task dies, the job restarts, up to `retries` times. A restart after a time limit or a
    preemption does not count.
    """

    def __init__(
        self,
        pool: TaskPool,
        queue: Queue,
        gpus_of: Callable[[Stage], int],
        retries: int,
        beside: LocalProcesses,
    ) -> None:
        self._pool = pool
        self._queue = queue
        self._gpus_of = gpus_of
        self._retries = retries
        self._beside = beside
        self._sent: dict[int, _Sent] = {}
        self._last_number = 0

    @property
    def capacity(self) -> int:
        """The number of further jobs that the queue takes."""
        most = JOBS_PER_TASK * self._pool.slurm.settings.tasks
        return max(0, most - len(self._sent) - len(self._beside))

    def submit(self, job: StageJob) -> None:
        """Queue a job for a task, or start it on this machine if it asks an LLM or reads sources."""
        if stays(job):
            self._beside.submit(job)
        else:
            self._put(_Sent(job, self._gpus_of(job.stages[0])))

    def wait(self, seconds: float | None = None) -> Finished:
        """Return finished jobs; while jobs run, waits until one ends, or at most for `seconds`.

        While Slurm's tasks have jobs, a wait with `seconds` lasts up to about 2 s, whatever `seconds` is.
        Raises UserError if a task can't work, if Slurm refuses tasks, or if they end before they take a job.
        """
        while self._sent or self._beside:
            here = self._beside.wait(SECONDS_BETWEEN_LOOKS if self._sent else seconds)
            finished = [*here, *(self._finished_there() if self._sent else ())]
            if not finished and not self._beside:
                time.sleep(SECONDS_BETWEEN_LOOKS)
            if finished or seconds is not None:
                return finished
        return []

    def _put(self, sent: _Sent) -> None:
        self._last_number += 1
        sent.task = ""
        self._sent[self._last_number] = sent
        self._queue.put(self._last_number, sent.gpus, sent.job.for_worker(sent.job.runtime))

    def _finished_there(self) -> Finished:
        # Slurm is asked first: an outcome that comes meanwhile counts.
        dead = self._dead()
        entries = self._queue.look()
        if entries.refused:
            raise UserError(*(self._queue.refusal(task) for task in entries.refused))
        for number in entries.claims & self._sent.keys():
            if not self._sent[number].task:
                self._sent[number].task = self._queue.taker(number)
                self._pool.took()
        ended = {number: self._queue.outcome(number) for number in sorted(entries.ended & self._sent.keys())}
        finished = []
        for number, how in {**dead, **ended}.items():
            sent = self._sent.pop(number)
            self._queue.remove(number, sent.gpus)
            outcome = self._again(sent, how) if isinstance(how, Left) else how
            if outcome is not None:
                finished.append((sent.job, outcome))
        return finished

    def _dead(self) -> dict[int, Left]:
        """Submit missing tasks; return job number -> why the job was left, for jobs whose tasks have ended.

        Returns {} if it is too early to ask Slurm again, or if Slurm does not answer.
        """
        tasks = self._pool.look(Counter(sent.gpus for sent in self._sent.values()))
        dead = {}
        for number, sent in self._sent.items():
            if tasks is not None and sent.task:
                state = tasks[sent.task].state if sent.task in tasks else "gone"
                if state not in WORKING:
                    dead[number] = Left(f"task {sent.task}: {state}", is_loss=True)
        return dead

    def _again(self, sent: _Sent, left: Left) -> JobOutcome | None:
        """Queue an unfinished job again; if it was lost too often, return its failure instead."""
        sent.losses += left.is_loss
        if sent.losses > self._retries:
            return lost(sent.job, sent.losses, left.reason, str(self._pool.kinds[sent.gpus]))
        sent.job.progress.say(f"starting {sent.job.stages[0]} again: {left.reason}")
        self._put(sent)
        return None


def kinds_of_tasks(needs: Iterable[Needs]) -> dict[int, Needs]:
    """Return number of GPUs -> the resources of a task that can run every stage with this number."""
    kinds: dict[int, Needs] = {}
    for need in needs:
        gpus = math.ceil(need.gpus)
        known = kinds.get(gpus, need)
        kinds[gpus] = Needs(max(known.cpus, need.cpus), gpus, max(known.memory_gb, need.memory_gb))
    return kinds


@contextmanager
def slurm_arrays(
    runtime: Runtime,
    stages: Iterable[Stage],
    needs: Callable[[Stage, float], Needs],
    store: Store,
    logs: Path,
    num_here: int,
) -> Iterator[SlurmArrays]:
    """Yield an executor over Slurm's tasks and `num_here` processes here; at the end, cancel the tasks.

    `needs` gets a stage and a node's number of GPUs. `logs`: the folder for the tasks' logs; all nodes must
    see it. Raises UserError if the store is not shared, or if Slurm is not here or would refuse the tasks.
    """
    if store.shared is None:
        raise UserError(
            "runtime.executor slurm: tasks share the work by a store that all nodes see; set"
            f" {VARIABLE} to a folder or bucket"
        )
    queue = Queue(store.shared.objects)
    logs = logs.absolute() / queue.run[:8]
    variables = {VARIABLE: str(queue.objects), KEY_VARIABLE: queue.key.hex()}
    there = (each for each in stages if not each.operation.comes_first and each.operation.asked_llm is None)
    pool = TaskPool(
        Slurm(f"synthbench-{queue.run[:8]}", runtime.slurm, logs),
        kinds_of_tasks(needs(each, runtime.slurm.gpus) for each in there),
        lambda gpus: Script(TASK_MODULE, (queue.run, str(gpus)), variables),
        store.say,
    )
    pool.check()
    logs.mkdir(parents=True, exist_ok=True)
    store.say(f"logs of Slurm's tasks: {logs}")
    with closing(queue), closing(LocalProcesses(num_here)) as beside, closing(pool):
        queue.open(own_code())
        gpus_of = lambda stage: math.ceil(needs(stage, runtime.slurm.gpus).gpus)  # noqa: E731
        yield SlurmArrays(pool, queue, gpus_of, runtime.retries, beside)
