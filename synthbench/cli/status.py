"""`synthbench status`: show which runs and stages are under way in a store."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from synthbench.base.listing import counted
from synthbench.cli.console import PLAIN, print_table

if TYPE_CHECKING:
    from synthbench.engine.monitor import StageTask
    from synthbench.engine.run_notes import RunNote
    from synthbench.engine.status import HeldStage

SILENT_SECONDS = 120.0
"""Seconds without news after which `status` calls a run or stage silent; news is due every 20 s."""


def status(
    store: Annotated[
        str,
        typer.Argument(
            metavar="[STORE]", help="URL or folder of a store, or a home [$SYNTHBENCH_STORE, else the home]."
        ),
    ] = "",
) -> None:
    """Show the runs and stages under way in a store: machine, start, rate, failures and LLM costs so far.

    Works on any machine that can read the store; changes nothing there.
    """
    from synthbench.engine.status import status_of
    from synthbench.engine.stores import existing_store, open_store

    opened = existing_store(store) if store else open_store()
    found = status_of(opened)
    print(f"store: {opened}")
    for note, goes_on in found.runs:
        for line in _run_lines(note, goes_on=goes_on):
            print(line)
    if not found.runs:
        print("no run has told of itself here")
    if found.stages:
        print()
        headings = ("machine", "process", "stage", "since", "done", "rate")
        print_table(headings, map(_row, found.stages), words=(0, 2, 3), **PLAIN)
    print(f"{counted(len(found.stages), 'stage')} under way")


def _run_lines(note: "RunNote", *, goes_on: bool) -> Iterator[str]:
    """Yield lines on a run: progress, LLM costs and failures; `goes_on`: the run is still under way."""
    silent = time.time() - note.told
    if goes_on:
        state = f"{note.left}, since {_moment(note.began)}"
        if silent > SILENT_SECONDS:
            state += f", has told nothing since {_moment(note.told)}"
    else:
        state = f"{note.end or 'was killed'}, last told {_moment(note.told)}"
    yield (
        f"{_line(note.experiment)}: {note.done:,} of {counted(note.total, 'stage')}, {_line(state)};"
        f" process {note.pid} on {_line(note.host)}"
    )
    if note.usd or note.tokens:
        yield (
            f"  LLMs so far: {note.usd:,.4f} US dollars, {note.tokens:,} tokens, with requests in flight at"
            " their maximum"
        )
    for line in note.failures:
        yield f"  failed: {_line(line)}"
    if note.num_failed > len(note.failures):
        yield f"  failed: {note.num_failed - len(note.failures):,} more"


def _row(stage: "HeldStage") -> tuple[str, ...]:
    since = _moment(stage.since)
    if stage.silent > SILENT_SECONDS:
        since += f", silent for {stage.silent:,.0f} s"
    return (stage.host, stage.pid, stage.label, since, *_progress(stage.task))


def _progress(task: "StageTask | None") -> tuple[str, str]:
    if task is None:
        return "", ""
    rate = "" if task.rate is None else f"{task.rate:,.2f} a second"
    return f"{task.done:,}/{task.total:,}", rate


def _moment(seconds: float | None) -> str:
    from synthbench.engine.leases import moment

    return moment(seconds, "%H:%M:%S") or "?"


def _line(text: str) -> str:
    return " ".join(text.split())
