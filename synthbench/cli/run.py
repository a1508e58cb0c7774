"""synthbench run: carry out an experiment, record it and print its table."""

import shlex
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import counted
from synthbench.cli.given import Given, load_given
from synthbench.cli.last_screen import next_step, print_last_screen
from synthbench.cli.options import (
    Assignments,
    Data,
    File,
    Profile,
    Seeds,
    Variants,
    home,
    opening,
    store_line,
)
from synthbench.cli.report import OutputFolder
from synthbench.cli.signals import INTERRUPTIONS, exit_code
from synthbench.errors import UserError

if TYPE_CHECKING:
    from synthbench.config.experiment import Experiment
    from synthbench.pipeline.artifacts import Artifacts
    from synthbench.pipeline.bars import RichProgress
    from synthbench.pipeline.plan import Plan
    from synthbench.pipeline.progress import PlainProgress
    from synthbench.pipeline.runner import Report
    from synthbench.pipeline.store import Store
    from synthbench.reporting.results import ExperimentResult
    from synthbench.runtime import Runtime

    RunProgress = PlainProgress | RichProgress

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
    from synthbench.pipeline.progress import progress_for_people

    progress = progress_for_people()
    progress.say(store_line())
    progress.say(f"reading {file}")
    given = load_given(file, profile, assignments, variant, (seeds, data))
    try:
        _run(given, progress, (jobs, force or []), output)
    except INTERRUPTIONS as interruption:
        print(f"interrupted; finished work is kept. To resume: {_this_command()}", file=sys.stderr)
        raise typer.Exit(exit_code(interruption)) from None


def _run(given: Given, progress: "RunProgress", how: tuple[int, list[str]], output: Path) -> None:
    from synthbench.pipeline.artifacts import Artifacts
    from synthbench.pipeline.plan import make_plan

    experiment = given.experiment
    for line in opening(experiment):
        progress.say(line)
    for note in experiment.notes:
        progress.say(f"note: {note}")
    progress.say(f"{experiment.name}: planning, by hashes of its files and models")
    plan = make_plan(experiment)
    store = _open_store()
    progress.say("trying where results go: report folder and tracking")
    folder = _places_for_results(given, output)
    progress.say(f"looking at what is there of {counted(len(plan.stages), 'stage')}")
    report, result = _execute(plan, store, given.overrides, progress, how)
    if report.is_data_faulty:
        progress.say("the data are at fault, so nothing was generated or trained, not in other rows either")
        raise UserError(*dict.fromkeys(line for _, lines in report.failed.values() for line in lines))
    assert result is not None, "only faulty data leave nothing to be collected"
    # What went wrong stands above the table, which ends the screen and counts it.
    _print_failures(report)
    _print_pending(report.pending_lines)
    is_tracked = _conclude(result, Artifacts(store, progress.say), folder, progress, given)
    if report.failed and not report.only_user_errors:
        raise typer.Exit(EXIT_FAILURES)
    if report.failed or not is_tracked:
        raise typer.Exit(EXIT_USER_ERROR)
    if report.pending:
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
    plan: "Plan",
    store: "Store",
    overrides: tuple[str, ...],
    progress: "RunProgress",
    how: tuple[int, list[str]],
) -> "tuple[Report, ExperimentResult | None]":
    """Compute what is missing and collect the results, unless the data are faulty."""
    from synthbench.durability import DamagedFileError
    from synthbench.pipeline.cleaning import run_in_progress
    from synthbench.pipeline.course import Course
    from synthbench.pipeline.estimates.estimator import estimator_for
    from synthbench.pipeline.estimates.known import Known
    from synthbench.pipeline.executors import executor
    from synthbench.pipeline.llm import llm_on_demand
    from synthbench.pipeline.progress import PlainProgress
    from synthbench.pipeline.repair import collect_whole
    from synthbench.pipeline.runner import Runner, matching
    from synthbench.pipeline.store import disk_errors

    jobs, force = how
    name = plan.experiment.name
    runtime = _runtime(plan.experiment, jobs)
    course = Course(lambda stages: estimator_for(stages, runtime, Known(store)), jobs)
    in_progress = run_in_progress(store, f"experiment {name}", plan.stages)
    llm_server = llm_on_demand(plan.experiment.llm, progress)
    say = None if isinstance(progress, PlainProgress) else progress.say
    with disk_errors(store.root), in_progress, llm_server as llm, executor(jobs, say) as workers:
        runner = Runner(store, workers, runtime, progress, llm, name, course)
        with progress.watching(course):
            report = runner.run(plan, matching(plan, force))
        try:
            store.remember_addresses(name, plan.addresses)
        except DamagedFileError as damage:
            progress.say(f"the record of what {name} uses {damage}; writing it anew")
            store.forget_addresses(name)
            store.remember_addresses(name, plan.addresses)
        progress.say(_summary(plan, report))
        if report.is_data_faulty:
            return report, None
        progress.say("collecting results, and comparing training data with the test sets")
        return report, collect_whole(plan, runner, report, overrides)


def _summary(plan: "Plan", report: "Report") -> str:
    failed = {"failed": len(report.failed), "left out": len(report.skipped)}
    pending = {"pending": len(report.pending), "held up": len(report.held_up)}
    unfinished = {**(failed if report.failed else {}), **(pending if report.pending else {})}
    reused = len(plan.stages) - len(report.executed) - sum(unfinished.values())
    more = "".join(f", {number} {what}" for what, number in unfinished.items())
    return f"{len(report.executed)} stages executed, {reused} reused{more}"


def _conclude(
    result: "ExperimentResult",
    artifacts: "Artifacts",
    folder: Path,
    progress: "RunProgress",
    given: Given,
) -> bool:
    """Track what is finished, then write its report and say where; tell whether tracking worked.

    Tracking comes first: a report that can't be made or written is made again from what is tracked. People
    who are to judge get their sheets beside the tables.
    """
    from synthbench.pipeline.audit_results import deliver_sheet
    from synthbench.reporting.write import place_report, report_files
    from synthbench.tracking.redaction import redacted

    if not result.runs:
        return True
    progress.say("making tables, figures and the page")
    files: dict[str, bytes] = {}
    try:
        # The page shows settings, which may hold passwords; and `report` will have them from the tracker.
        for name, content in report_files(redacted(result)):
            files[name] = content
    except Exception:
        _track(result, files)
        raise
    progress.say("tracking in MLflow")
    tracked = _track(result, files)
    kept = place_report(files, folder)
    sheets = [deliver_sheet(audit, artifacts, folder) for audit in result.audits if audit.audit is None]
    for sheet in sheets:
        print(f"sheet: {sheet}")
    print_last_screen(result, folder, kept, _next_step(result, given, tracked, len(sheets)))
    return bool(tracked)


def _next_step(result: "ExperimentResult", given: Given, tracked: str, num_sheets: int) -> str:
    if result.failures or result.pending or not tracked:
        return f"{_this_command()} (goes on from here{'' if tracked else ', and tracks the results'})"
    if num_sheets:
        return f"answer {counted(num_sheets, 'sheet')}, named above, and run again"
    return next_step(given, tracked)


def _this_command() -> str:
    return shlex.join(["synthbench", *sys.argv[1:]])


def _track(result: "ExperimentResult", files: Mapping[str, bytes]) -> str:
    """Track a result with the files of its report; return where to look, "" with the error said."""
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    with tempfile.TemporaryDirectory() as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        try:
            return MlflowTracker(home()).log(result, Path(name))
        except UserError as error:
            for line in error.messages:
                print(f"error: {line}", file=sys.stderr)
    return ""


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
        print(f"what is finished is kept; to go on later: {_this_command()}", file=sys.stderr)
