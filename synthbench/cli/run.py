"""synthbench run: carry out an experiment, record it and print its table."""

import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import console
from synthbench.cli.given import Given, load_given
from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, home, opening
from synthbench.cli.report import OutputFolder, print_files
from synthbench.cli.signals import INTERRUPTIONS, exit_code
from synthbench.errors import UserError

if TYPE_CHECKING:
    from synthbench.config.experiment import Experiment
    from synthbench.pipeline.plan import Plan
    from synthbench.pipeline.runner import Report
    from synthbench.pipeline.store import Store
    from synthbench.reporting.results import ExperimentResult
    from synthbench.runtime import Progress, Runtime

EXIT_USER_ERROR = 2
EXIT_FAILURES = 3
EXIT_PENDING = 4


def run(
    file: File,
    profile: Profile = None,
    assignments: Assignments = None,
    variant: Variants = None,
    seeds: Seeds = None,
    data: Data = None,
    jobs: Annotated[int, typer.Option(min=1, help="Local processes.")] = 1,
    force: Annotated[
        list[str] | None, typer.Option(metavar="STAGE", help="Compute again: a kind, or a glob over stages.")
    ] = None,
    output: OutputFolder = Path("reports"),
) -> None:
    """Carry out an experiment: what the store holds already is not computed again.

    Exit code 4: an LLM answers in a batch that is not done yet; the same command goes on.
    """
    given = load_given(file, profile, assignments, variant, (seeds, data))
    try:
        _run(given, jobs, force or [], output)
    except INTERRUPTIONS as interruption:
        command = shlex.join(["synthbench", *sys.argv[1:]])
        print(f"interrupted; finished work is kept. To resume: {command}", file=sys.stderr)
        raise typer.Exit(exit_code(interruption)) from None


def _run(given: Given, jobs: int, force: list[str], output: Path) -> None:
    from synthbench.pipeline.collect import collect
    from synthbench.pipeline.plan import make_plan
    from synthbench.pipeline.progress import progress_for_people

    experiment = given.experiment
    progress = progress_for_people(jobs)
    for line in opening(experiment):
        progress.say(line)
    progress.say(f"{experiment.name}: looking at what is there; loading libraries takes some seconds")
    for note in experiment.notes:
        progress.say(f"note: {note}")
    plan = make_plan(experiment)
    store = _open_store()
    folder = _places_for_results(given, output)
    report = _execute(plan, store, _runtime(experiment, jobs), progress, (jobs, force))
    if report.is_data_faulty:
        progress.say("the data are at fault, so nothing was generated or trained, not in other rows either")
        raise UserError(*dict.fromkeys(line for _, lines in report.failed.values() for line in lines))
    failures = tuple(
        f"{stage}: {lines[-1].strip().splitlines()[-1]}" for stage, lines in report.failed.values()
    )
    pending = tuple(f"{stage}: {line}" for stage, lines in report.pending.values() for line in lines)
    is_tracked = _conclude(collect(plan, store, failures, given.overrides, pending), store, folder)
    _print_failures(report)
    _print_pending(pending)
    if report.failed and not report.only_user_errors:
        raise typer.Exit(EXIT_FAILURES)
    if report.failed or not is_tracked:
        raise typer.Exit(EXIT_USER_ERROR)
    if pending:
        raise typer.Exit(EXIT_PENDING)


def _open_store() -> "Store":
    """Make the store; both it and the folder that it is in, where tracking writes, must be writable."""
    from synthbench.pipeline.store import Store

    root = home() / "store"
    try:
        root.mkdir(parents=True, exist_ok=True)
        for folder in (home(), root):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{root}: the store can't be made: {reason}; set SYNTHBENCH_HOME to a folder you may write"
        ) from error
    return Store(root)


def _places_for_results(given: Given, output: Path) -> Path:
    """Return the report's folder; it and the tracker are tried before anything is spent."""
    from synthbench.reporting.write import make_report_folder, report_folder
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    folder = report_folder(output, given.experiment.name, given.overrides)
    make_report_folder(folder)
    MlflowTracker(home()).check(given.experiment.name)
    return folder


def _runtime(experiment: "Experiment", jobs: int) -> "Runtime":
    """Divide the cores among the processes, unless the experiment says how many threads each gets."""
    import os

    if experiment.runtime.threads is not None:
        return experiment.runtime
    return experiment.runtime.model_copy(update={"threads": max(1, (os.cpu_count() or 1) // jobs)})


def _execute(
    plan: "Plan", store: "Store", runtime: "Runtime", progress: "Progress", how: tuple[int, list[str]]
) -> "Report":
    from synthbench.pipeline.cleaning import run_in_progress
    from synthbench.pipeline.executors import executor
    from synthbench.pipeline.llm import llm_on_demand
    from synthbench.pipeline.runner import Runner, matching
    from synthbench.pipeline.store import disk_errors

    jobs, force = how
    in_progress = run_in_progress(store, f"experiment {plan.experiment.name}", plan.stages)
    llm_server = llm_on_demand(plan.experiment.llm, progress)
    with disk_errors(store.root), in_progress, llm_server as llm, executor(jobs) as workers:
        runner = Runner(store, workers, runtime, progress, llm, plan.experiment.name)
        report = runner.run(plan, matching(plan, force))
        store.remember_addresses(plan.experiment.name, plan.addresses)
    progress.say(_summary(plan, report))
    return report


def _summary(plan: "Plan", report: "Report") -> str:
    failed = {"failed": len(report.failed), "left out": len(report.skipped)}
    pending = {"pending": len(report.pending), "held up": len(report.held_up)}
    unfinished = {**(failed if report.failed else {}), **(pending if report.pending else {})}
    reused = len(plan.stages) - len(report.executed) - sum(unfinished.values())
    more = "".join(f", {number} {what}" for what, number in unfinished.items())
    return f"{len(report.executed)} stages executed, {reused} reused{more}"


def _conclude(result: "ExperimentResult", store: "Store", folder: Path) -> bool:
    """Write the report of what is finished, say where, then track it; tell whether that worked.

    People who are to judge get their sheets beside the tables.
    """
    from synthbench.pipeline.audit_results import deliver_sheet
    from synthbench.reporting.terminal_report import terminal_report
    from synthbench.reporting.write import write_report
    from synthbench.tracking.mlflow_tracker import MlflowTracker
    from synthbench.tracking.redaction import redacted

    if not result.runs:
        return True
    # The page shows settings, which may hold passwords; and `report` will have them from the tracker.
    files = write_report(redacted(result), folder)
    console().print(terminal_report(result))
    print_files(files)
    for audit in result.audits:
        if audit.audit is None:
            print(f"sheet: {deliver_sheet(audit, store, folder)}")
    try:
        print(f"MLflow: {MlflowTracker(home()).log(result, folder)}")
    except UserError as error:
        for line in error.messages:
            print(f"error: {line}", file=sys.stderr)
        return False
    return True


def _print_failures(report: "Report") -> None:
    for stage, lines in report.failed.values():
        for line in lines:
            print(f"error: {stage}: {line.rstrip()}", file=sys.stderr)
    for stage in report.skipped:
        print(f"left out: {stage}: it depends on a failed stage", file=sys.stderr)


def _print_pending(pending: tuple[str, ...]) -> None:
    for line in pending:
        print(f"pending: {line}", file=sys.stderr)
    if pending:
        command = shlex.join(["synthbench", *sys.argv[1:]])
        print(f"what is finished is kept; to go on later: {command}", file=sys.stderr)
