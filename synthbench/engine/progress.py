"""Progress display: bars on a terminal, a line every half minute in a log."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synthbench.base.runtime import Progress, ProgressTask
from synthbench.engine.monitor import RunMonitor

if TYPE_CHECKING:
    from synthbench.engine.bars import RichProgress

SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_REPORTS = 30.0, 0.5


@contextmanager
def repeating(
    call: Callable[[], object], pause: Callable[[], float], at_end: Callable[[], object] = lambda: None
) -> Iterator[None]:
    """Call a function in a thread after each pause (in seconds) while the block runs.

    When the block ends, the thread calls `at_end`, even if `call` raised an error. After an error, `call` is
    not called again.
    """
    is_over = threading.Event()

    def repeat() -> None:
        try:
            while not is_over.wait(pause()):
                call()
        finally:
            is_over.wait()
            at_end()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


class QuietProgress:
    """Shows nothing."""

    says_starts = False

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Open a task that is not shown."""
        yield self

    def advance(self, amount: int = 1) -> None:
        """Count nothing."""

    def say(self, message: str) -> None:
        """Print nothing."""

    @contextmanager
    def watching(self, monitor: RunMonitor) -> Iterator[None]:
        """Show nothing of the run."""
        yield


class PlainProgress:
    """Prints whole lines to standard error, for log files and several processes.

    `about` is the stage's name, which begins each line. `says_starts`: stages are named when they start.
    """

    def __init__(self, about: str = "", *, says_starts: bool = True) -> None:
        self.about = about
        self.says_starts = says_starts

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Open a task; print a line when it advances, at most every half minute."""
        yield _PlainTask(self, description, total)

    def say(self, message: str) -> None:
        """Print one line."""
        shown = f"  {self.about}: {message.strip()}" if self.about else message
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {shown}\n")
        sys.stderr.flush()

    @contextmanager
    def watching(self, monitor: RunMonitor) -> Iterator[None]:
        """Print the run's progress every half minute."""
        with repeating(lambda: self.say(str(monitor)), lambda: SECONDS_BETWEEN_LINES):
            yield


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


def progress_for_people(
    *, is_quiet: bool = False, is_verbose: bool = False
) -> "QuietProgress | PlainProgress | RichProgress":
    """Return bars if standard error is a terminal, else plain lines; with `is_quiet`, neither.

    Plain lines name each stage at its start. With bars, which show the running stages, a stage's start is
    printed only if `is_verbose`.
    """
    if is_quiet:
        return QuietProgress()
    if not sys.stderr.isatty():
        return PlainProgress()
    from synthbench.engine.bars import RichProgress

    return RichProgress(says_starts=is_verbose)


def says_starts(progress: Progress) -> bool:
    """Return whether a line is printed when a stage starts."""
    return bool(getattr(progress, "says_starts", True))


def in_worker(progress: Progress) -> "QuietProgress | PlainProgress":
    """Return the progress display of a worker process: plain lines, or nothing if `progress` is quiet."""
    if isinstance(progress, QuietProgress):
        return progress
    return PlainProgress(says_starts=says_starts(progress))


def about(progress: Progress, stage: str) -> Progress:
    """Return a display whose lines begin with the stage; bars are unchanged, as they show the stage."""
    return PlainProgress(stage) if isinstance(progress, PlainProgress) else progress


class StageProgress:
    """Progress that also reports the outermost task to `tell`: the units done, and their total.

    Reports come when the task advances, at most every half second.
    """

    def __init__(self, progress: Progress, tell: Callable[[int, int], None]) -> None:
        self.say = progress.say
        self._progress, self._tell, self._depth = progress, tell, 0

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Open a task; report 0 of 0 units when the outermost task ends."""
        self._depth += 1
        try:
            with self._progress.task(description, total) as task:
                yield _ReportingTask(task, total, self._tell) if self._depth == 1 else task
        finally:
            self._depth -= 1
            if not self._depth:
                self._tell(0, 0)


class _ReportingTask:
    def __init__(self, task: ProgressTask, total: int, tell: Callable[[int, int], None]) -> None:
        self._task, self._total, self._tell = task, total, tell
        self._done, self._told = 0, -SECONDS_BETWEEN_REPORTS

    def advance(self, amount: int = 1) -> None:
        self._task.advance(amount)
        self._done += amount
        if (now := time.monotonic()) - self._told >= SECONDS_BETWEEN_REPORTS:
            self._told = now
            self._tell(self._done, self._total)
