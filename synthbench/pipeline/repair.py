"""Results from whole artifacts: what is damaged is computed again before they are collected."""

from synthbench.errors import UserError
from synthbench.pipeline.artifacts import Artifacts
from synthbench.pipeline.collect import collect
from synthbench.pipeline.plan import Plan
from synthbench.pipeline.runner import Report, Runner
from synthbench.pipeline.store import ArtifactDamagedError
from synthbench.reporting.results import ExperimentResult


def collect_whole(
    plan: Plan, runner: Runner, report: Report, overrides: tuple[str, ...] = ()
) -> ExperimentResult:
    """Return the results of a plan that was run; what is computed again on the way is added to the report.

    Raises UserError if an artifact is damaged as soon as it is computed.
    """
    mended: set[str] = set()
    while True:
        artifacts = Artifacts(runner.store, runner.progress.say)
        try:
            return collect(plan, artifacts, report.failure_lines, overrides, report.pending_lines)
        except ArtifactDamagedError as damage:
            stage = plan.stages[damage.identity]
            if damage.identity in mended:
                message = f"{stage}: damaged again as soon as it was computed ({damage})"
                raise UserError(f"{message}; is the disk of {runner.store.root} failing?") from damage
            mended.add(damage.identity)
            report.add(runner.compute_again(stage))
