"""Submits a run's tasks to Slurm: one for each job, up to a maximum."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from synthbench.base.errors import UserError
from synthbench.engine.ray_nodes import Needs
from synthbench.engine.slurm import WAITING, WORKING, Script, Slurm, TaskState

SECONDS_BETWEEN_COUNTS = 15.0
"""Seconds between two questions to Slurm's controller, which many users share."""
MOST_FRUITLESS = 3
"""How many times in a row all tasks may end without having taken a job."""


@dataclass
class TaskPool:
    """The tasks of a run. `kinds` and `script` map a number of GPUs to a task's resources and script.

    Each number of GPUs has arrays of its own, since all tasks of an array are equal.
    """

    slurm: Slurm
    kinds: Mapping[int, Needs]
    script: Callable[[int], Script]
    say: Callable[[str], None]
    _gpus_of: dict[str, int] = field(default_factory=dict)
    """Array's id -> number of GPUs of each of its tasks."""
    _counted: float = float("-inf")
    _num_fruitless: int = 0
    _told: str = ""

    def check(self) -> None:
        """Raise UserError if Slurm would refuse tasks of any kind in `kinds`."""
        for gpus, needs in self.kinds.items():
            self.slurm.check(self.script(gpus), needs)

    def look(self, num_jobs: Mapping[int, int]) -> dict[str, TaskState] | None:
        """Submit the tasks that the jobs still need, and return the tasks that Slurm knew before, by id.

        `num_jobs`: number of GPUs -> number of jobs. Returns None if it is too early to ask again, or if
        Slurm does not answer. Raises UserError if Slurm refuses tasks while none is pending or running.
        Also raises UserError if, 3 times in a row, all tasks end before they take a job.
        """
        now = time.monotonic()
        if now - self._counted < SECONDS_BETWEEN_COUNTS:
            return None
        self._counted = now
        # Only this run submits tasks of its name.
        tasks = self.slurm.tasks() if self._gpus_of else {}
        if tasks is None:
            self._tell("waiting for Slurm's controller, which does not answer")
        else:
            self._submit_missing(tasks, num_jobs)
        return tasks

    def took(self) -> None:
        """Note that a task has taken a job."""
        self._num_fruitless = 0

    def close(self) -> None:
        """Cancel all tasks."""
        if self._gpus_of:
            self.slurm.cancel()

    def _submit_missing(self, tasks: Mapping[str, TaskState], num_jobs: Mapping[int, int]) -> None:
        live = {name: task for name, task in tasks.items() if task.state in WORKING | WAITING}
        num_live = Counter(self._gpus_of.get(name.partition("_")[0]) for name in live)
        reasons = sorted({task.reason for task in live.values() if task.state in WAITING})
        if reasons and all(task.state in WAITING for task in live.values()):
            self._tell(f"waiting for Slurm: {len(live)} tasks pending ({', '.join(reasons)})")
        self._num_fruitless += bool(self._gpus_of) and not live
        if self._num_fruitless >= MOST_FRUITLESS:
            raise UserError(f"Slurm's tasks end before they take a stage; their logs: {self.slurm.logs}")
        for gpus, jobs in num_jobs.items():
            room = self.slurm.settings.tasks - num_live.total()
            number = min(jobs - num_live[gpus], room)
            if number > 0:
                try:
                    self._submit(gpus, number)
                except UserError as refusal:
                    if not live:
                        raise
                    self._tell(f"going on with {len(live)} tasks: {refusal}")
                else:
                    num_live[gpus] += number

    def _submit(self, gpus: int, number: int) -> None:
        array = self.slurm.submit(self.script(gpus), self.kinds[gpus], number)
        self._gpus_of[array] = gpus
        tasks = f"{number} task{'s' * (number > 1)}"
        self._tell(f"submitted {tasks} to Slurm (job {array}), each with {self.kinds[gpus]}")

    def _tell(self, line: str) -> None:
        if line != self._told:
            self._told = line
            self.say(line)
