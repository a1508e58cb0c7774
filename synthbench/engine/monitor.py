"""A run's progress: finished stages, running stages, and the time left; several threads may read it."""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from synthbench.engine.stage import Stage

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

    @property
    def rate(self) -> float | None:
        """Units per second, None if unknown."""
        return (self.done - self.first) / (self.last - self.began) if self.last > self.began else None


class StageTask(BaseModel):
    """A running stage's task: units done, total units, and units per second (None: unknown)."""

    model_config = ConfigDict(frozen=True)

    identity: str = Field(max_length=64)
    done: int = Field(ge=0)
    total: int = Field(ge=0)
    rate: float | None = Field(ge=0, allow_inf_nan=False)


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
        """Note which stages are to be computed; if any, call `before` first."""
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
        done = max(done, 0)
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
        """Note that a group ended, and learn how long its stages took.

        Stages in `executed` were computed here, in `seconds` all together; stages in `shared`, elsewhere. The
        group's other stages failed or wait again.
        """
        with self._lock:
            self._running.pop(stages[0].identity, None)
            if self._missing is not None:
                self._missing.difference_update(executed, shared)
            for stage in stages:
                self._busy.pop(stage.identity, None)
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
        """The numbers of finished stages (computed, failed or left out) and of all stages."""
        with self._lock:
            running = sum(len(stages) for stages, _ in self._running.values())
            return self._total - len(self._waiting) - running, self._total

    @property
    def missing(self) -> frozenset[str] | None:
        """The identities of the stages that have no artifact yet; None before `begin`."""
        with self._lock:
            return None if self._missing is None else frozenset(self._missing)

    @property
    def failures(self) -> list[str]:
        """A line for each failed stage."""
        with self._lock:
            return list(self._failures.values())

    @property
    def tasks(self) -> list[StageTask]:
        """The tasks of the running stages that report their progress."""
        with self._lock:
            return [
                StageTask(identity=identity, done=each.done, total=each.total, rate=each.rate)
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
        """The stages that other processes are computing, each with its process, as text."""
        with self._lock:
            return "; ".join(self._busy.values())

    @property
    def left(self) -> TimeLeft:
        """The estimated time left, if all processes are busy until the end."""
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
        """Return the reports of a group's open task, which its stages share; None if no task is open."""
        found = (self._reports.get(stage.identity) for stage in stages)
        return next((report for report in found if report is not None), None)

    def _by_own_count(self, stages: Sequence[Stage]) -> float | None:
        """Extrapolate a group's remaining seconds from its own reports; None if they show no progress yet.

        The first report is only the starting point: its units include loading, or come from a former run.
        """
        report = self._report(stages)
        if report is None or not report.rate:
            return None
        return max(0.0, (report.total - report.done) / report.rate - (self.clock() - report.last))

    def _of(self, stages: Iterable[Stage]) -> TimeLeft:
        """Return the sum of the stages' estimated times; a lower bound if some are unknown."""
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
