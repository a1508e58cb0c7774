"""Standard output for tables."""

import sys
from typing import TYPE_CHECKING

from synthbench.terminal import rich_console

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
