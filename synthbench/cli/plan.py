"""synthbench plan: what a run would do, without doing any of it."""

from typing import TYPE_CHECKING

from synthbench.cli.console import console
from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, home, load

if TYPE_CHECKING:
    from synthbench.pipeline.status import StageStatus


def plan(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
) -> None:
    """Show the stages of an experiment: which are cached, which are to run, and why. Computes nothing."""
    from synthbench.pipeline.plan import make_plan
    from synthbench.pipeline.status import statuses
    from synthbench.pipeline.store import Store

    planned = make_plan(load(file, profile, assignments, variant, (seeds, data)))
    found = statuses(planned, Store(home() / "store"))
    _print_table(found)
    for note in planned.experiment.notes:
        print(f"note: {note}")
    for task in planned.missing_tasks:
        print(f"note: {task}: no data found, left out")
    to_run = [status for status in found if status.state != "cached" and status.state != "not needed"]
    print(f"{len(found)} stages for {len(planned.runs)} runs: {len(to_run)} to run")


def _print_table(found: "list[StageStatus]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "stage", "runs", "state", "why"):
        table.add_column(heading, justify="right" if heading == "runs" else "left", overflow="fold")
    for status in found:
        runs = str(status.num_runs)
        table.add_row(status.stage.identity[:8], str(status.stage), runs, status.state, status.why)
    console().print(table, markup=False)
