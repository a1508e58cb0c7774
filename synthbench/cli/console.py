"""What commands share on a terminal: counted nouns, and how an interrupted process ends."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synthbench.base.terminal import rich_console

if TYPE_CHECKING:
    from rich.console import Console

WIDTH_OF_A_LOG = 160


def console() -> "Console":
    """Return standard output: as wide as the terminal, or wide enough for a table where there is none."""
    found = rich_console(sys.stdout)
    return found if found.is_terminal else rich_console(sys.stdout, width=WIDTH_OF_A_LOG)


def counted(number: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(BaseException):
    """The process was asked to end (SIGTERM): as Ctrl-C, but for the exit code."""


INTERRUPTIONS = (KeyboardInterrupt, Terminated)


@contextmanager
def heeding_termination() -> Iterator[None]:
    """Raise Terminated in the main thread where SIGTERM would end the process on the spot."""

    def end(*_: object) -> None:
        raise Terminated

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


def exit_code(interruption: BaseException) -> int:
    """Return the shell's code for a process that ended by that signal: 128 and its number."""
    return EXIT_TERMINATED if isinstance(interruption, Terminated) else EXIT_INTERRUPTED
