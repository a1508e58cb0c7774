"""Shared terminal code of the commands: width, plural nouns, and the end of an interrupted process."""

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
    """Return standard output, as wide as the terminal; wide enough for any table if it is no terminal."""
    found = rich_console(sys.stdout)
    return found if found.is_terminal else rich_console(sys.stdout, width=WIDTH_OF_A_LOG)


def counted(number: int, noun: str) -> str:
    """Return "1 run", "2 runs"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class Terminated(BaseException):
    """Raised when the process is asked to end (SIGTERM); like Ctrl-C, but for the exit code."""


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
