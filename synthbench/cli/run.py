"""`synthbench run`: run an experiment, track its results and print its table."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.errors import UserError
from synthbench.base.listing import counted
from synthbench.cli.last_screen import next_step, print_last_screen
from synthbench.cli.options import (
    AllowHosts,
    Given,
    Quiet,
    Verbose,
    shown_progress,
    store_line,
    taking,
)
from synthbench.cli.report import OutputFolder
from synthbench.cli.resuming import EXIT_PENDING, opened, print_pending, resumable, this_command

if TYPE_CHECKING:
    from synthbench.engine.runner import RunReport
    from synthbench.pipeline.experiment_run import Computed, Recorded, RunProgress
    from synthbench.pipeline.invocation import Invocation
    from synthbench.reporting.results import ExperimentResult

EXIT_USER_ERROR = 2
EXIT_FAILURES = 3


@taking(Given)
def run(
    given: Given,
    allow_host: AllowHosts = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of local processes.")] = 1,
    executor: Annotated[
        str | None, typer.Option(metavar="local|ray|slurm", help="Where stages run [runtime.executor].")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Ray cluster for --executor ray: HOST:PORT, or auto [runtime.address]."),
    ] = None,
    force: Annotated[
        list[str] | None, typer.Option(metavar="STAGE", help="Compute again: a kind, or a glob over names.")
    ] = None,
    output: OutputFolder = Path("reports"),
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Run an experiment; stages in the store are not computed again.

    Exit code 4: an LLM's batch is not done yet; run the same command again later to resume.
    """
    progress = shown_progress(is_quiet=quiet, is_verbose=verbose)
    progress.say(store_line())
    where = {"runtime.executor": _executor(executor, address), "runtime.address": address}
    more = (f"{key}={value}" for key, value in where.items() if value)
    invocation = opened(given.file, given.overrides(*more), progress, allow_host)
    with resumable():
        _run(invocation, progress, (jobs, force or []), output)


def _executor(executor: str | None, address: str | None) -> str | None:
    """Return the executor that the options name, None if none; an address alone means Ray.

    Raises UserError for an address with another executor.
    """
    if address and executor not in (None, "ray"):
        raise UserError(f"--address {address} is of a Ray cluster; leave out --executor {executor}")
    return executor or ("ray" if address else None)


def _run(invocation: "Invocation", progress: "RunProgress", how: tuple[int, list[str]], output: Path) -> None:
    from synthbench.pipeline.experiment_run import compute, record

    for note in invocation.experiment.notes:
        progress.say(f"note: {note}")
    jobs, force = how
    computed = compute(invocation, progress, jobs=jobs, force=force, output=output)
    report, result = computed.report, computed.result
    # Errors go above the table, which fills the rest of the screen.
    _print_failures(report)
    if report.pending:
        print_pending(report.pending_lines)
    is_tracked = True
    if result.runs:
        recorded = record(computed, progress)
        is_tracked = bool(recorded.tracked)
        _print_recorded(computed, recorded, invocation)
    if report.failed and not report.only_user_errors:
        raise typer.Exit(EXIT_FAILURES)
    if report.failed or not is_tracked:
        raise typer.Exit(EXIT_USER_ERROR)
    if report.pending:
        raise typer.Exit(EXIT_PENDING)


def _print_recorded(computed: "Computed", recorded: "Recorded", invocation: "Invocation") -> None:
    for line in recorded.errors:
        print(f"error: {line}", file=sys.stderr)
    for sheet in recorded.sheets:
        print(f"sheet: {sheet}")
    following = _next_step(computed.result, invocation, recorded.tracked, len(recorded.sheets))
    print_last_screen(computed.result, computed.folder, recorded.edited, following)


def _next_step(result: "ExperimentResult", invocation: "Invocation", tracked: str, num_sheets: int) -> str:
    if result.failures or result.pending or not tracked:
        return f"{this_command()} (goes on from here{'' if tracked else ', and tracks the results'})"
    if num_sheets:
        return f"answer {counted(num_sheets, 'sheet')}, named above, and run again"
    return next_step(invocation, tracked)


def _print_failures(report: "RunReport") -> None:
    for stage, lines in report.failed.values():
        for line in lines:
            print(f"error: {stage}: {line.rstrip()}", file=sys.stderr)
    for stage in report.skipped:
        print(f"left out: {stage}: it depends on a failed stage", file=sys.stderr)
