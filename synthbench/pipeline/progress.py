"""Progress for people: bars on a terminal, a line now and then in a log."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from synthbench.runtime import Progress, ProgressTask

if TYPE_CHECKING:
    from synthbench.pipeline.bars import RichProgress
    from synthbench.pipeline.course import Course

SECONDS_BETWEEN_LINES = 30.0


class PlainProgress:
    """Whole lines on standard error: fit for a log file and for several processes at once.

    `about` names the stage that every line is about.
    """

    def __init__(self, about: str = "") -> None:
        self.about = about

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Print a line every half minute while the task runs."""
        yield _PlainTask(self, description, total)

    def say(self, message: str) -> None:
        """Print one line."""
        shown = f"  {self.about}: {message.strip()}" if self.about else message
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {shown}\n")
        sys.stderr.flush()

    @contextmanager
    def watching(self, course: "Course") -> Iterator[None]:
        """Print every half minute how far the run is, whatever its stages say."""
        is_over = threading.Event()

        def tell() -> None:
            while not is_over.wait(SECONDS_BETWEEN_LINES):
                self.say(str(course))

        teller = threading.Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            is_over.set()
            teller.join()


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


def progress_for_people(num_processes: int = 1) -> "PlainProgress | RichProgress":
    """Return bars if standard error is a terminal and one process only writes to it, else plain lines."""
    if num_processes > 1 or not sys.stderr.isatty():
        return PlainProgress()
    from synthbench.pipeline.bars import RichProgress

    return RichProgress()


def about(progress: Progress, stage: str) -> Progress:
    """Return progress whose lines say which stage they are about; bars stand below its name anyway."""
    return PlainProgress(stage) if isinstance(progress, PlainProgress) else progress
