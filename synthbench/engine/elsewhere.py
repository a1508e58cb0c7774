"""Helpers of executors that use other machines: jobs that stay here, code versions, lost workers."""

import sys
from functools import cache
from importlib.metadata import version

from synthbench.engine.jobs import JobOutcome, StageJob
from synthbench.plugins.code import content_of_synthbench


@cache
def own_code() -> str:
    """Return synthbench's version and content hash, and Python's version; a run's machines must agree."""
    content, python = content_of_synthbench()[:8], sys.version.split()[0]
    return f"{version('synthbench')} (content {content}, Python {python})"


def stays(job: StageJob) -> bool:
    """Return whether a job must run on the run's own machine: it reads sources or asks an LLM."""
    return job.llm is not None or any(stage.operation.comes_first for stage in job.stages)


def lost(job: StageJob, num_losses: int, why: str, had: str) -> JobOutcome:
    """Return the outcome of a job whose worker was lost too often; `had` names its resources."""
    times = {1: "once", 2: "twice"}.get(num_losses, f"{num_losses} times")
    message = (
        f"its worker was lost {times} ({why}); it had {had}. Run the same command again, or state more in"
        f" runtime.resources.{job.stages[0].kind}"
    )
    return JobOutcome(error=(message,), is_user_error=True)
