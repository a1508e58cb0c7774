"""Progress bars at the bottom of a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.text import Text

from synthbench.base.runtime import ProgressTask
from synthbench.base.terminal import rich_console

if TYPE_CHECKING:
    from synthbench.engine.monitor import RunMonitor

BAR_WIDTH = 8


def _monitor(task: Task) -> "RunMonitor | None":
    """Return the monitor of the run's bar, None for the bar of a task within a stage."""
    monitor: RunMonitor | None = task.fields.get("monitor")
    return monitor


class _Title(ProgressColumn):
    """The column left of a bar: the running stages, or the name of a task within a stage."""

    def render(self, task: Task) -> Text:
        monitor = _monitor(task)
        title = f"    {task.description}" if monitor is None else f"  {monitor.now or task.description}"
        return Text(title, overflow="ellipsis", no_wrap=True)


class _Bar(BarColumn):
    def render(self, task: Task) -> ProgressBar:
        monitor = _monitor(task)
        if monitor is None:
            return super().render(task)
        return ProgressBar(total=1.0, completed=monitor.share, width=BAR_WIDTH)


class _Amount(ProgressColumn):
    def render(self, task: Task) -> Text:
        monitor = _monitor(task)
        done, total = (task.completed, task.total or 0) if monitor is None else monitor.counts
        return Text(f"{done:,.0f}/{total:,.0f}{'' if monitor is None else ' stages'}")


class _TimeLeft(TimeRemainingColumn):
    def render(self, task: Task) -> Text:
        monitor = _monitor(task)
        return super().render(task) + " left" if monitor is None else Text(str(monitor.left), style="cyan")


class RichProgress:
    """Shows bars at the bottom of the terminal; messages scroll above them.

    `says_starts`: stages are also named above the bars when they start.
    """

    def __init__(self, *, says_starts: bool = False) -> None:
        self.says_starts = says_starts
        console = rich_console(sys.stderr)
        columns = (_Title(), _Bar(bar_width=BAR_WIDTH), _Amount(), _TimeLeft())
        self.bars = Progress(*columns, console=console, transient=True)

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Show a bar while the task runs."""
        with self._bar(description, total) as identifier:
            yield _RichTask(self.bars, identifier)

    @contextmanager
    def watching(self, monitor: "RunMonitor") -> Iterator[None]:
        """Show the stages that run, how many are finished and the time left."""
        with self._bar("stages", None, monitor):
            yield

    @contextmanager
    def _bar(
        self, description: str, total: int | None, monitor: "RunMonitor | None" = None
    ) -> Iterator[TaskID]:
        outermost = not self.bars.live.is_started
        if outermost:
            self.bars.start()
        identifier = self.bars.add_task(description, total=total, monitor=monitor)
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
