"""synthbench plan: what a run would do, without doing any of it."""

from typing import TYPE_CHECKING

from synthbench.cli.console import console, counted
from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, home, load, opening

if TYPE_CHECKING:
    from synthbench.pipeline.row_status import RowStatus
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
    from synthbench.pipeline.costs import costs
    from synthbench.pipeline.plan import make_plan
    from synthbench.pipeline.row_status import row_statuses
    from synthbench.pipeline.status import statuses
    from synthbench.pipeline.store import Store

    experiment = load(file, profile, assignments, variant, (seeds, data))
    planned = make_plan(experiment)
    for line in opening(experiment):
        print(line)
    store = Store(home() / "store")
    found = statuses(planned, store)
    _print_stages(found)
    print()
    _print_rows(row_statuses(planned, found))
    print()
    for stage, lines in costs(found, store):
        print(f"{stage}:")
        for line in lines:
            print(f"  {line}")
    for note in (*planned.experiment.notes, *planned.experiment.remarks):
        print(f"note: {note}")
    for task in planned.missing_tasks:
        print(f"note: {task}: no data found, left out")
    num_to_run = sum(status.is_to_run for status in found)
    print(f"{counted(len(found), 'stage')} for {counted(len(planned.runs), 'run')}: {num_to_run} to run")


def _print_rows(rows: "list[RowStatus]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("row", "runs", "to run", "cached"):
        table.add_column(heading, justify="left" if heading == "row" else "right", overflow="fold")
    for row in rows:
        table.add_row(row.label, str(row.num_runs), str(row.num_to_run), str(row.num_cached))
    console().print(table, markup=False)


def _print_stages(found: "list[StageStatus]") -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading in ("id", "stage", "runs", "state", "why"):
        table.add_column(heading, justify="right" if heading == "runs" else "left", overflow="fold")
    for status in found:
        runs = str(status.num_runs)
        table.add_row(status.stage.identity[:8], str(status.stage), runs, status.state, status.why)
    console().print(table, markup=False)
