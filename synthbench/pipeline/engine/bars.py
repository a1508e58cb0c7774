"""Bars at the bottom of a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from synthbench.runtime import ProgressTask
from synthbench.terminal import rich_console

if TYPE_CHECKING:
    from synthbench.pipeline.engine.progress import Course

BAR_WIDTH = 8


def _course(task: Task) -> "Course | None":
    """Return the run that a bar shows, None if it shows a part of a stage."""
    course: Course | None = task.fields.get("course")
    return course


class _Title(ProgressColumn):
    """The stages that run; of a part of a stage, what it is."""

    def render(self, task: Task) -> Text:
        course = _course(task)
        title = f"    {task.description}" if course is None else f"  {course.now or task.description}"
        return Text(title, overflow="ellipsis", no_wrap=True)


class _Bar(BarColumn):
    def render(self, task: Task) -> ProgressBar:
        course = _course(task)
        if course is None:
            return super().render(task)
        done, total = course.counts
        return ProgressBar(total=max(total, 1), completed=done, width=BAR_WIDTH)


class _Amount(ProgressColumn):
    def render(self, task: Task) -> Text:
        course = _course(task)
        done, total = (task.completed, task.total or 0) if course is None else course.counts
        return Text(f"{done:,.0f}/{total:,.0f}{'' if course is None else ' stages'}")


class _TimeLeft(TimeRemainingColumn):
    def render(self, task: Task) -> Text:
        course = _course(task)
        return super().render(task) + " left" if course is None else Text(str(course.left), style="cyan")


class RichProgress:
    """Bars at the bottom of the terminal, messages scrolling above them."""

    def __init__(self) -> None:
        console = rich_console(sys.stderr)
        columns = (_Title(), _Bar(bar_width=BAR_WIDTH), _Amount(), _TimeLeft())
        self.bars = Progress(*columns, console=console, transient=True)

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Show a bar while the task runs."""
        with self._bar(description, total) as identifier:
            yield _RichTask(self.bars, identifier)

    @contextmanager
    def watching(self, course: "Course") -> Iterator[None]:
        """Show the stages that run, how many are settled and the time left."""
        with self._bar("stages", None, course):
            yield

    @contextmanager
    def _bar(self, description: str, total: int | None, course: "Course | None" = None) -> Iterator[TaskID]:
        outermost = not self.bars.live.is_started
        if outermost:
            self.bars.start()
        identifier = self.bars.add_task(description, total=total, course=course)
        try:
            yield identifier
        finally:
            self.bars.remove_task(identifier)
            if outermost:
                self.bars.stop()

    def say(self, message: str) -> None:
        """Print one line above the bars."""
        self.bars.console.print(message, markup=False, highlight=False, soft_wrap=True)


class _RichTask:
    def __init__(self, bars: Progress, identifier: TaskID) -> None:
        self.bars = bars
        self.identifier = identifier

    def advance(self, amount: int = 1) -> None:
        self.bars.advance(self.identifier, amount)
