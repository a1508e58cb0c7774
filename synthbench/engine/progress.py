"""Progress display: bars on a terminal, a line every half minute in a log."""

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from synthbench.base.runtime import Progress, ProgressTask
from synthbench.engine.stage import Stage

if TYPE_CHECKING:
    from synthbench.engine.bars import RichProgress

SECONDS_BETWEEN_LINES, SECONDS_BETWEEN_REPORTS = 30.0, 0.5


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
    def watching(self, monitor: "RunMonitor") -> Iterator[None]:
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
        """Print a line every half minute while the task runs."""
        yield _PlainTask(self, description, total)

    def say(self, message: str) -> None:
        """Print one line."""
        shown = f"  {self.about}: {message.strip()}" if self.about else message
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {shown}\n")
        sys.stderr.flush()

    @contextmanager
    def watching(self, monitor: "RunMonitor") -> Iterator[None]:
        """Print the run's progress every half minute."""
        is_over = threading.Event()

        def tell() -> None:
            while not is_over.wait(SECONDS_BETWEEN_LINES):
                self.say(str(monitor))

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


def progress_for_people(
    *, is_quiet: bool = False, is_verbose: bool = False
) -> "QuietProgress | PlainProgress | RichProgress":
    """Return bars if standard error is a terminal, else plain lines; quiet: neither.

    Bars show the running stages, so only `is_verbose` prints a line for each start, too.
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
    """Return progress whose lines name the stage. Bars already appear below its name."""
    return PlainProgress(stage) if isinstance(progress, PlainProgress) else progress


class StageProgress:
    """Progress that also reports the outermost task to `tell`: the units done, and their total."""

    def __init__(self, progress: Progress, tell: Callable[[int, int], None]) -> None:
        self.say = progress.say
        self._progress, self._tell, self._depth = progress, tell, 0

    @contextmanager
    def task(self, description: str, total: int) -> Iterator[ProgressTask]:
        """Open a task; report 0 of 0 units at its end."""
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


OVERDUE = 0.1
"""If a stage exceeds its estimate, the remaining time is assumed to be this share of its elapsed time."""


@dataclass(frozen=True)
class TimeLeft:
    """The remaining seconds; `is_least`: a lower bound, since some stages' time is unknown."""

    seconds: float
    is_least: bool

    def __str__(self) -> str:
        """The time in words."""
        if self.is_least and not self.seconds:
            return "time left unknown"
        return f"{'at least' if self.is_least else 'about'} {duration(self.seconds)} left"


@dataclass(frozen=True)
class _Reports:
    """A running stage's first and latest report, each with time and units done, and the total units."""

    began: float
    first: int
    last: float
    done: int
    total: int


@dataclass(frozen=True)
class RunningTask:
    """A running stage's task: the units done, their total, and units a second (None: unknown)."""

    identity: str
    done: int
    total: int
    rate: float | None


def _steps(report: "_Reports | None") -> str:
    return "" if report is None else f", {report.done:,}/{report.total:,}"


class StageEstimator(Protocol):
    """Estimates how long stages take (see `estimates`)."""

    def seconds(self, stage: Stage) -> float | None:
        """Return how long a stage takes, None if that is unknown."""

    def learn(self, stage: Stage, seconds: float) -> None:
        """Note how long a stage of this run took."""


@dataclass
class RunMonitor:
    """Counts a run's finished stages and estimates the time left. Other threads may read it."""

    estimator_for: Callable[[Collection[Stage]], StageEstimator] | None = None
    num_processes: int = 1
    clock: Callable[[], float] = time.monotonic
    before: Callable[[], None] = lambda: None
    """Called before the first stage, in the thread that runs stages."""
    _total: int = 0
    _estimator: StageEstimator | None = None
    _waiting: dict[str, Stage] = field(default_factory=dict)
    _running: dict[str, tuple[Sequence[Stage], float]] = field(default_factory=dict)
    _reports: dict[str, "_Reports"] = field(default_factory=dict)
    _missing: set[str] | None = None
    _busy: dict[str, str] = field(default_factory=dict)
    _failures: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, needed: Collection[Stage]) -> None:
        """Note which stages are to be computed."""
        if needed:
            self.before()
        estimator = self.estimator_for(needed) if self.estimator_for is not None else None
        with self._lock:
            self._estimator = estimator
            self._total = len(needed)
            self._waiting = {stage.identity: stage for stage in needed}
            self._missing = set(self._waiting)

    def started(self, stages: Sequence[Stage]) -> None:
        """Note that stages have started, as a group."""
        with self._lock:
            self._running[stages[0].identity] = (stages, self.clock())
            for stage in stages:
                self._waiting.pop(stage.identity, None)

    def advanced(self, identity: str, done: int, total: int) -> None:
        """Note how many units of its task a running stage has done; `total` 0: no task is open."""
        with self._lock:
            now = self.clock()
            fresh = _Reports(now, done, now, done, total)
            before = self._reports.pop(identity, fresh)
            if done < before.done:  # its worker was lost, and another one resumes from a checkpoint
                before = fresh
            if total:
                self._reports[identity] = _Reports(before.began, before.first, now, done, total)

    def ended(
        self, stages: Sequence[Stage], executed: Collection[str], seconds: float, shared: Collection[str] = ()
    ) -> None:
        """Note that stages ended, computed here or (`shared`) elsewhere, and learn how long they took."""
        with self._lock:
            self._running.pop(stages[0].identity, None)
            self._busy.pop(stages[0].identity, None)
            if self._missing is not None:
                self._missing.difference_update(executed, shared)
            for stage in stages:
                self._reports.pop(stage.identity, None)
                if stage.identity in executed and self._estimator is not None:
                    self._estimator.learn(stage, seconds / len(executed))

    def put_back(self, stages: Sequence[Stage], holder: str) -> None:
        """Note that stages wait again, since another process is computing them."""
        with self._lock:
            self._waiting |= {stage.identity: stage for stage in stages}
            self._busy[stages[0].identity] = f"{titled(stages)}: {holder}"

    def failed(self, stage: Stage, messages: Sequence[str]) -> None:
        """Note that a stage failed, and why."""
        with self._lock:
            self._failures[stage.identity] = failure_line(stage, messages)

    def left_out(self, identities: Iterable[str]) -> None:
        """Note that stages won't be computed."""
        with self._lock:
            for identity in identities:
                self._waiting.pop(identity, None)

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of finished stages and of all stages."""
        with self._lock:
            running = sum(len(stages) for stages, _ in self._running.values())
            return self._total - len(self._waiting) - running, self._total

    @property
    def missing(self) -> frozenset[str] | None:
        """The identities of the stages that have no artifact yet; None before they are known."""
        with self._lock:
            return None if self._missing is None else frozenset(self._missing)

    @property
    def failures(self) -> list[str]:
        """A line for each failed stage."""
        with self._lock:
            return list(self._failures.values())

    @property
    def tasks(self) -> list[RunningTask]:
        """The tasks of the running stages that report their progress."""
        with self._lock:
            return [
                RunningTask(
                    identity,
                    each.done,
                    each.total,
                    (each.done - each.first) / (each.last - each.began) if each.last > each.began else None,
                )
                for identity, each in self._reports.items()
            ]

    @property
    def now(self) -> str:
        """The running stages and their elapsed time, as text."""
        with self._lock:
            running = [(stages, since, self._report(stages)) for stages, since in self._running.values()]
        return "; ".join(
            f"{titled(stages)}{_steps(report)}, {self.clock() - since:.0f} s"
            for stages, since, report in running
        )

    @property
    def share(self) -> float:
        """The share of the stages that is done, in [0, 1]; running ones count by their own progress."""
        done, total = self.counts
        with self._lock:
            reports = [(stages, self._report(stages)) for stages, _ in self._running.values()]
        partly = sum(len(stages) * report.done / report.total for stages, report in reports if report)
        return (done + partly) / total if total else 0.0

    @property
    def waits(self) -> str:
        """The stages that other processes are computing, and these processes, as text."""
        with self._lock:
            return "; ".join(self._busy.values())

    @property
    def left(self) -> TimeLeft:
        """The time that is left, if all processes are busy until the end."""
        with self._lock:
            waiting, running = self._of(self._waiting.values()), list(self._running.values())
        seconds, is_least = waiting.seconds, waiting.is_least
        for stages, since in running:
            own = self._by_own_count(stages)
            estimated, elapsed = self._of(stages), self.clock() - since
            least = 0.0 if estimated.is_least else OVERDUE * elapsed
            seconds += max(estimated.seconds - elapsed, least) if own is None else own
            is_least |= estimated.is_least and own is None
        return TimeLeft(seconds / self.num_processes, is_least)

    def _report(self, stages: Sequence[Stage]) -> "_Reports | None":
        """Return the reports of the task that a group has open; stages that run together share one."""
        found = (self._reports.get(stage.identity) for stage in stages)
        return next((report for report in found if report is not None), None)

    def _by_own_count(self, stages: Sequence[Stage]) -> float | None:
        """Extrapolate a group's remaining seconds from its own reports; None if there are too few.

        The first report is only the starting point: its units include loading, or come from a former run.
        """
        report = self._report(stages)
        if report is None or report.first == report.done:
            return None
        pace = (report.last - report.began) / (report.done - report.first)
        return max(0.0, (report.total - report.done) * pace - (self.clock() - report.last))

    def _of(self, stages: Iterable[Stage]) -> TimeLeft:
        """Add up estimates."""
        if self._estimator is None:
            return TimeLeft(0.0, is_least=True)
        estimates = [self._estimator.seconds(stage) for stage in stages]
        return TimeLeft(sum(seconds or 0.0 for seconds in estimates), is_least=None in estimates)

    def __str__(self) -> str:
        """The run's progress, in one line."""
        if self.missing is None:
            return "getting ready"
        done, total = self.counts
        now, waits = self.now, self.waits
        more = (f"; now: {now}" if now else "") + (f"; waiting for {waits}" if waits and not now else "")
        return f"{done:,} of {total:,} stages, {self.left}{more}"


def failure_line(stage: Stage, messages: Sequence[str]) -> str:
    """Return the stage's name and the last line of its error."""
    return f"{stage}: {messages[-1].strip().splitlines()[-1]}"


def titled(stages: Sequence[Stage]) -> str:
    """Return the first stage's name, and how many others run with it."""
    more = f" and {len(stages) - 1} more" if len(stages) > 1 else ""
    return f"{stages[0]}{more}"


_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))


def duration(seconds: float) -> str:
    """Return a time in words, with about two digits."""
    for unit, length in _UNITS:
        if seconds >= 1.95 * length:
            number = seconds / length
            return f"{number:,.0f} {unit}" if number >= 9.95 else f"{number:.1f} {unit}".replace(".0 ", " ")
    return f"{max(seconds, 1):,.0f} s"
