"""synthbench run: carry out an experiment, record it and print its table."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.cli.console import console
from synthbench.cli.options import Assignments, Data, File, Profile, Seeds, Variants, home, load
from synthbench.cli.report import OutputFolder

if TYPE_CHECKING:
    from synthbench.config.experiment import Experiment
    from synthbench.pipeline.plan import Plan
    from synthbench.pipeline.runner import Report
    from synthbench.pipeline.store import Store
    from synthbench.runtime import Progress, Runtime

EXIT_FAILURES = 3
EXIT_INTERRUPTED = 130


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
    """Carry out an experiment: what the store holds already is not computed again."""
    experiment = load(file, profile, assignments, variant, (seeds, data))
    try:
        _run(experiment, jobs, force or [], output)
    except KeyboardInterrupt:
        command = shlex.join(["synthbench", *sys.argv[1:]])
        print(f"interrupted; finished work is kept. To resume: {command}", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _run(experiment: "Experiment", jobs: int, force: list[str], output: Path) -> None:
    from synthbench.errors import UserError
    from synthbench.pipeline.plan import make_plan
    from synthbench.pipeline.progress import progress_for_people

    progress = progress_for_people()
    for note in experiment.notes:
        progress.say(f"note: {note}")
    plan = make_plan(experiment)
    store = _open_store()
    report = _execute(plan, store, _runtime(experiment, jobs), progress, (jobs, force))
    is_data_faulty = all(stage.operation.comes_first for stage, _ in report.failed.values())
    if report.failed and report.only_user_errors and is_data_faulty:
        raise UserError(*dict.fromkeys(line for _, lines in report.failed.values() for line in lines))
    failures = tuple(
        f"{stage}: {lines[-1].strip().splitlines()[-1]}" for stage, lines in report.failed.values()
    )
    _conclude(plan, store, failures, output)
    if report.failed:
        _print_failures(report)
        raise typer.Exit(2 if report.only_user_errors else EXIT_FAILURES)


def _open_store() -> "Store":
    from synthbench.errors import UserError
    from synthbench.pipeline.store import Store

    root = home() / "store"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError(
            f"{root}: the store can't be made: {reason}; set SYNTHBENCH_HOME to a folder you may write"
        ) from error
    return Store(root)


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
    from synthbench.pipeline.runner import Runner, matching
    from synthbench.pipeline.store import disk_errors

    jobs, force = how
    in_progress = run_in_progress(store, f"experiment {plan.experiment.name}", plan.stages)
    with disk_errors(store.root), in_progress, executor(jobs) as workers:
        runner = Runner(store, workers, runtime, progress)
        report = runner.run(plan, matching(plan, force))
        store.remember_addresses(plan.experiment.name, plan.addresses)
    reused = len(plan.stages) - len(report.executed) - len(report.failed) - len(report.skipped)
    unfinished = f", {len(report.failed)} failed, {len(report.skipped)} left out" if report.failed else ""
    progress.say(f"{len(report.executed)} stages executed, {reused} reused{unfinished}")
    return report


def _conclude(plan: "Plan", store: "Store", failures: tuple[str, ...], output: Path) -> None:
    """Track what is finished, write and print its tables."""

    from synthbench.pipeline.collect import collect
    from synthbench.reporting.build import build_table
    from synthbench.reporting.terminal import terminal_table
    from synthbench.reporting.write import write_report
    from synthbench.tracking.mlflow_tracker import MlflowTracker

    result = collect(plan, store, failures)
    if not result.runs:
        return
    folder = output / result.experiment
    files = write_report(result, folder)
    console().print(terminal_table(build_table(result)))
    print(f"tables: {', '.join(str(file) for file in files)}")
    print(f"tracked: {MlflowTracker(home()).log(result, folder)}")


def _print_failures(report: "Report") -> None:
    for stage, lines in report.failed.values():
        for line in lines:
            print(f"error: {stage}: {line.rstrip()}", file=sys.stderr)
    for stage in report.skipped:
        print(f"left out: {stage}: it depends on a failed stage", file=sys.stderr)
