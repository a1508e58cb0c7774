"""How far a run is: which stages are settled, which run, and how long the rest takes."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from synthbench.pipeline.estimates.estimator import Estimator
from synthbench.pipeline.estimates.wording import duration
from synthbench.pipeline.stage import Stage

OVERDUE = 0.1
"""Of a stage that takes longer than was estimated, this share of its time so far is left."""


@dataclass(frozen=True)
class Left:
    """Seconds that are left; others may come on top that nobody can tell."""

    seconds: float
    is_least: bool

    def __str__(self) -> str:
        """The time in words."""
        if self.is_least and not self.seconds:
            return "time left unknown"
        return f"{'at least' if self.is_least else 'about'} {duration(self.seconds)} left"


@dataclass
class Course:
    """Follows a run; another thread may ask at any time."""

    estimator_for: Callable[[Collection[Stage]], Estimator] | None = None
    num_processes: int = 1
    clock: Callable[[], float] = time.monotonic
    _total: int = 0
    _estimator: Estimator | None = None
    _waiting: dict[str, Stage] = field(default_factory=dict)
    _running: dict[str, tuple[Sequence[Stage], float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, needed: Collection[Stage]) -> None:
        """Note which stages are to be computed."""
        estimator = self.estimator_for(needed) if self.estimator_for is not None else None
        with self._lock:
            self._estimator = estimator
            self._total = len(needed)
            self._waiting = {stage.identity: stage for stage in needed}

    def started(self, stages: Sequence[Stage]) -> None:
        """Note that stages are being computed, together."""
        with self._lock:
            self._running[stages[0].identity] = (stages, self.clock())
            for stage in stages:
                self._waiting.pop(stage.identity, None)

    def ended(self, stages: Sequence[Stage], executed: Collection[str], seconds: float) -> None:
        """Note that stages run no more, and learn how long those took that were computed."""
        with self._lock:
            self._running.pop(stages[0].identity, None)
            for stage in stages:
                if stage.identity in executed and self._estimator is not None:
                    self._estimator.learn(stage, seconds / len(executed))

    def put_back(self, stages: Iterable[Stage]) -> None:
        """Note that stages wait again."""
        with self._lock:
            self._waiting |= {stage.identity: stage for stage in stages}

    def left_out(self, identities: Iterable[str]) -> None:
        """Note that stages won't be computed."""
        with self._lock:
            for identity in identities:
                self._waiting.pop(identity, None)

    @property
    def counts(self) -> tuple[int, int]:
        """How many stages are settled, of how many."""
        with self._lock:
            running = sum(len(stages) for stages, _ in self._running.values())
            return self._total - len(self._waiting) - running, self._total

    @property
    def now(self) -> str:
        """The stages that run, with the seconds since they began."""
        with self._lock:
            running = list(self._running.values())
        return "; ".join(f"{titled(stages)}, {self.clock() - since:.0f} s" for stages, since in running)

    @property
    def left(self) -> Left:
        """The time that is left, if all processes are busy until the end."""
        with self._lock:
            waiting, running = self._of(self._waiting.values()), list(self._running.values())
        seconds, is_least = waiting.seconds, waiting.is_least
        for stages, since in running:
            estimated, elapsed = self._of(stages), self.clock() - since
            least = 0.0 if estimated.is_least else OVERDUE * elapsed
            seconds += max(estimated.seconds - elapsed, least)
            is_least |= estimated.is_least
        return Left(seconds / self.num_processes, is_least)

    def _of(self, stages: Iterable[Stage]) -> Left:
        """Return the estimates of stages together; each sort of stage is estimated once."""
        if self._estimator is None:
            return Left(0.0, is_least=True)
        sorts: Counter[object] = Counter()
        one: dict[object, Stage] = {}
        for stage in stages:
            sort = self._estimator.sort(stage)
            sorts[sort] += 1
            one[sort] = stage
        estimates = {sort: self._estimator.estimate(stage).seconds for sort, stage in one.items()}
        seconds = sum((estimates[sort] or 0.0) * number for sort, number in sorts.items())
        return Left(seconds, is_least=None in estimates.values())

    def __str__(self) -> str:
        """Where the run is, in one line."""
        done, total = self.counts
        now = self.now
        return f"{done:,} of {total:,} stages, {self.left}" + (f"; now: {now}" if now else "")


def titled(stages: Sequence[Stage]) -> str:
    """Return the first stage, and how many run with it."""
    more = f" and {len(stages) - 1} more" if len(stages) > 1 else ""
    return f"{stages[0]}{more}"
