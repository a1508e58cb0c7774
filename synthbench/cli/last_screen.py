"""The last screen of `run` and `report`: the table of scores, and where to find the rest."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.base.listing import counted
from synthbench.cli.console import console

if TYPE_CHECKING:
    from rich.text import Text

    from synthbench.pipeline.invocation import Invocation
    from synthbench.reporting.report import Report
    from synthbench.reporting.results import ExperimentResult


def print_last_screen(
    result: "ExperimentResult", folder: Path, edited: Mapping[str, str], following: str
) -> None:
    """Print a result's table, the paths of its page and notes, and the next step.

    On a terminal, the table fits the terminal's width. The keys of `edited` are report files that the user
    had changed, the values are the names of their copies; both are printed first. `following` is the next
    step.
    """
    from synthbench.reporting.render.terminal import terminal_report
    from synthbench.reporting.render.terminal_forest import terminal_forest
    from synthbench.reporting.report import Report

    for name, copy in edited.items():
        print(f"kept: {folder / name} was not what was last written here; that version is {copy} now")
    output, report = console(), Report(result)
    shown = terminal_report(report, output, fits=output.is_terminal)
    if not output.is_terminal:
        output.width = max(output.width, shown.width)
    output.print(shown.renderable)
    for line in terminal_forest(report.forest, output) if report.forest else ():
        output.print(line, soft_wrap=True)
    for line in _closing(report, folder, edited, shown.left_out, following):
        output.print(line, soft_wrap=True)


def next_step(invocation: "Invocation", address: str) -> str:
    """Return how to see the runs in MLflow; `address` is a server's URL or the command that shows the runs.

    After a run without overrides, the command names the experiment file. After a run with overrides, the
    command names no file and shows the last tracked result, which is this run's.
    """
    is_server = "://" in address
    file = "" if is_server or invocation.overrides else f" {shlex.quote(str(invocation.experiment.file))}"
    return f"{address}{file} (every run in MLflow)"


def _closing(
    report: "Report", folder: Path, kept: Collection[str], left_out: Sequence[str], following: str
) -> "list[Text]":
    from rich.text import Text

    from synthbench.reporting.files import PAGE
    from synthbench.reporting.model.registration_note import registration_line
    from synthbench.reporting.render.terminal import notes_of

    notes = notes_of(report)
    edited = f"; {counted(len(kept), 'edited file')} kept" if kept else ""
    where = f"{notes.number:,} in {folder / notes.file}"
    missing = f"; not shown here: {', '.join(left_out)}" if left_out else ""
    first = Text.assemble("; read first: ", (", ".join(notes.first), "bold yellow")) if notes.first else ""
    return [
        *([Text(f"warning: {report.warning}", style="bold yellow")] if report.warning else []),
        *(Text(f"registration: {line}") for line in registration_line(report.result.registration)),
        Text(f"page: {folder / PAGE}; tables and plots beside it{edited}"),
        Text.assemble(f"notes: {where}", first, missing),
        Text(f"next: {following}"),
    ]
