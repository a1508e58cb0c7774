"""Progress for people: bars on a terminal, a line now and then in a log."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synthbench.runtime import Progress, ProgressTask
from synthbench.terminal import rich_console

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

SECONDS_BETWEEN_LINES = 30.0


class PlainProgress:
    """Whole lines on standard error: fit for a log file and for several processes at once."""

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Print a line every half minute while the task runs."""
        yield _PlainTask(self, description, total)

    def say(self, message: str) -> None:
        """Print one line."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {message}\n")
        sys.stderr.flush()


class _PlainTask:
    def __init__(self, progress: PlainProgress, description: str, total: int) -> None:
        self.progress = progress
        self.description = description
        self.total = total
        self.done = 0
        self.started = self.last = time.monotonic()

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        now = time.monotonic()
        if now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        rate = self.done / (now - self.started)
        left = (self.total - self.done) / rate if rate else 0.0
        self.progress.say(f"  {self.description}: {self.done:,}/{self.total:,}, {left:,.0f} s left")


class RichProgress:
    """Bars at the bottom of the terminal, messages scrolling above them."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self.bars: Bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=rich_console(sys.stderr),
            transient=True,
        )

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Show a bar while the task runs."""
        outermost = not self.bars.live.is_started
        if outermost:
            self.bars.start()
        identifier = self.bars.add_task(description, total=total)
        try:
            yield _RichTask(self.bars, identifier)
        finally:
            self.bars.remove_task(identifier)
            if outermost:
                self.bars.stop()

    def say(self, message: str) -> None:
        """Print one line above the bars."""
        self.bars.console.print(message, markup=False, highlight=False, soft_wrap=True)


class _RichTask:
    def __init__(self, bars: "Bars", identifier: "TaskID") -> None:
        self.bars = bars
        self.identifier = identifier

    def advance(self, amount: int = 1) -> None:
        self.bars.advance(self.identifier, amount)


def progress_for_people(num_processes: int = 1) -> Progress:
    """Return bars if standard error is a terminal and one process only writes to it, else plain lines."""
    return RichProgress() if num_processes == 1 and sys.stderr.isatty() else PlainProgress()
