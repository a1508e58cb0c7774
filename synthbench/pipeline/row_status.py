"""What there is of each row of a plan, and what is to be done."""

from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.pipeline.plan import Plan
from synthbench.pipeline.status import StageStatus, needed_by


@dataclass(frozen=True)
class RowStatus:
    """One row: how many runs it has, and of their stages how many are to run and how many are cached.

    A stage that several rows share counts in each; one that is not needed any more, in none.
    """

    label: str
    num_runs: int
    num_to_run: int
    num_cached: int


def row_statuses(plan: Plan, found: Sequence[StageStatus]) -> list[RowStatus]:
    """Sum up the states of a plan's stages by row, in the order of the rows."""
    to_run = {each.stage.identity for each in found if each.is_to_run}
    cached = {each.stage.identity for each in found if each.state == "cached"}
    stages: dict[str, set[str]] = {}
    num_runs: dict[str, int] = {}
    for run in plan.runs:
        label = run.variant.label
        stages.setdefault(label, set()).update(needed_by(run))
        num_runs[label] = num_runs.get(label, 0) + 1
    return [
        RowStatus(label, num_runs[label], len(needed & to_run), len(needed & cached))
        for label, needed in stages.items()
    ]
