"""Shared terminal code of the commands: console, tables, and exit codes of interrupted processes."""

import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from synthbench.base.terminal import rich_console

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_LOG = 160


def console() -> "Console":
    """Return rich's console on standard output: as wide as the terminal, or 160 columns without one."""
    found = rich_console(sys.stdout)
    return found if found.is_terminal else rich_console(sys.stdout, width=WIDTH_OF_A_LOG)


PLAIN: dict[str, Any] = {"box": None, "pad_edge": False}
"""Options of `print_table` for a table without lines."""


def print_table(
    headings: Sequence[str],
    lines: Iterable[Sequence[str] | None],
    words: Sequence[int] = (0,),
    **style: Any,  # noqa: ANN401 - what rich's Table takes
) -> None:
    """Print a table. None in `lines` draws a rule; columns are right-aligned, except those in `words`."""
    from rich.table import Table
    from rich.text import Text

    if "title" in style:
        style |= {"title": Text(style["title"]), "title_justify": "left"}
    table = Table(**style)
    for number, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if number in words else "right", overflow="fold")
    for line in lines:
        if line is None:
            table.add_section()
        else:
            table.add_row(*map(Text, line))
    console().print(table)


EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(BaseException):
    """Raised when the process is asked to end (SIGTERM); handled like Ctrl-C, with another exit code."""


INTERRUPTIONS = (KeyboardInterrupt, Terminated)


@contextmanager
def raising_on_termination() -> Iterator[None]:
    """Raise Terminated in the main thread when SIGTERM would otherwise end the process at once."""

    def end(*_: object) -> None:
        raise Terminated

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def exit_code(interruption: BaseException) -> int:
    """Return the shell's exit code for a process that a signal ended: 128 plus the signal's number."""
    return EXIT_TERMINATED if isinstance(interruption, Terminated) else EXIT_INTERRUPTED
