"""The last screen of `run` and `report`: the table of scores, and where to find the rest."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.cli.console import console, counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from synthbench.pipeline.invocation import Invocation
    from synthbench.reporting.report import Report
    from synthbench.reporting.results import ExperimentResult

PROMPT = 1
"""Lines that the shell's prompt takes."""
LEAST_LINES = 6


def print_last_screen(
    result: "ExperimentResult", folder: Path, edited: Mapping[str, str], following: str
) -> None:
    """Print a result's table, where its page and notes are, and the next step.

    On a terminal all of it fits one screen. `edited`: report files that people had changed -> their copies,
    printed above the table. `following` is the next step.
    """
    from synthbench.reporting.render.terminal import terminal_report
    from synthbench.reporting.report import Report

    for name, copy in edited.items():
        print(f"edited: {folder / name} was changed by hand since it was written; your version is {copy} now")
    output, report = console(), Report(result)
    if not output.is_terminal:
        shown = terminal_report(report, output)
        output.width = max(output.width, shown.width)
        output.print(shown.renderable)
        _print(output, _closing(report, folder, edited, shown.left_out, following))
        return
    left_out: tuple[str, ...] = ()
    # The lines below list the parts that did not fit, so their height is known only after a first pass.
    for _ in range(2):
        below = _height(output, _closing(report, folder, edited, left_out, following))
        shown = terminal_report(report, output, max(LEAST_LINES, output.height - below - PROMPT))
        left_out = shown.left_out
    output.print(shown.renderable)
    _print(output, _closing(report, folder, edited, left_out, following))


def next_step(invocation: "Invocation", address: str) -> str:
    """Say how to see the runs in MLflow; `address` is a server's address or the command that shows them.

    With overrides the command has no file: it then shows the last tracked result, which is this one.
    """
    is_server = "://" in address
    file = "" if is_server or invocation.overrides else f" {shlex.quote(str(invocation.experiment.file))}"
    return f"{address}{file} (every run in MLflow)"


def _closing(
    report: "Report", folder: Path, kept: Collection[str], left_out: Sequence[str], following: str
) -> "list[Text]":
    from rich.text import Text

    from synthbench.reporting.files import PAGE
    from synthbench.reporting.render.terminal import notes_of

    notes = notes_of(report)
    edited = f"; {counted(len(kept), 'edited file')} kept" if kept else ""
    where = f"{notes.number:,} in {folder / notes.file}"
    missing = f"; not shown here: {', '.join(left_out)}" if left_out else ""
    first = Text.assemble("; read first: ", (", ".join(notes.first), "bold yellow")) if notes.first else ""
    return [
        Text(f"page: {folder / PAGE}; tables and plots beside it{edited}"),
        Text.assemble(f"notes: {where}", first, missing),
        Text(f"next: {following}"),
    ]


def _height(output: "Console", lines: "Sequence[Text]") -> int:
    """Return how many terminal lines these take; the terminal breaks long lines anywhere, not at words."""
    return sum(max(1, -(-line.cell_len // output.width)) for line in lines)


def _print(output: "Console", lines: "Sequence[Text]") -> None:
    for line in lines:
        output.print(line, soft_wrap=True)
