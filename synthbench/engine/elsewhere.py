"""What executors on other machines share: stages that stay here, equal code, lost workers."""

import sys
from collections import deque
from functools import cache
from importlib.metadata import version

from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.engine.local_executors import LocalProcesses
from synthbench.plugins.code import content_of_synthbench


@cache
def own_code() -> str:
    """Return the versions and code of this machine, which must be equal on all machines of a run."""
    content, python = content_of_synthbench()[:8], sys.version.split()[0]
    return f"{version('synthbench')} (content {content}, Python {python})"


def stays(job: StageJob) -> bool:
    """Return whether a job runs on the run's own machine: it reads given data or asks an LLM."""
    return job.llm is not None or any(stage.operation.comes_first for stage in job.stages)


class Beside:
    """Jobs that stay on this machine, in `processes`; more than these wait."""

    def __init__(self, processes: LocalProcesses) -> None:
        self._processes = processes
        self._waiting: deque[StageJob] = deque()
        self._num_running = 0

    def __len__(self) -> int:
        """The number of unfinished jobs."""
        return len(self._waiting) + self._num_running

    def submit(self, job: StageJob) -> None:
        """Start a job, or let it wait for a free process."""
        self._waiting.append(job)
        self._feed()

    def finished(self, seconds: float | None) -> list[tuple[StageJob, JobOutcome]]:
        """Return finished jobs: at least one if any runs, or [] after `seconds`."""
        finished = self._processes.wait(seconds) if self._num_running else []
        self._num_running -= len(finished)
        self._feed()
        return finished

    def _feed(self) -> None:
        while self._waiting and self._processes.capacity:
            self._processes.submit(self._waiting.popleft())
            self._num_running += 1


def lost(job: StageJob, num_losses: int, why: str, had: str) -> JobOutcome:
    """Return the outcome of a job whose worker was lost too often; `had` names its resources."""
    times = {1: "once", 2: "twice"}.get(num_losses, f"{num_losses} times")
    message = (
        f"its worker was lost {times} ({why}); it had {had}. Run the same command again, or state more in"
        f" runtime.resources.{job.stages[0].kind}"
    )
    return JobOutcome(error=(message,), is_user_error=True)
