"""Record an experiment in MLflow while it runs, from a background thread."""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.redaction import masked
from synthbench.engine.progress import repeating
from synthbench.reporting.results import RunResult
from synthbench.tracking.live import LiveNames, LiveRuns
from synthbench.tracking.mlflow_tracker import MlflowTracker

SECONDS_BETWEEN_UPDATES = 15.0
SoFar = Callable[[], Iterable[tuple[RunResult, bool]]]
"""Yields each run with a curve or a score so far, and whether it is finished."""


def import_tracking() -> None:
    """Import everything that the thread of `live_tracking` needs, before it starts.

    Otherwise the main thread sees half-imported modules: MLflow imports polars and pandas, and libraries
    such as scikit-learn look these up in `sys.modules` when they get data. Polars delays Ctrl-C; this
    is undone.
    """
    import mlflow.entities
    import mlflow.tracking
    from mlflow.store.tracking import sqlalchemy_store

    assert sqlalchemy_store, mlflow.entities
    # Polars restarts system calls at Ctrl-C, so that this thread would wait on (pola-rs/polars#21739).
    signal.siginterrupt(signal.SIGINT, True)


@contextmanager
def live_tracking(
    tracker: MlflowTracker, names: LiveNames, so_far: SoFar, say: Callable[[str], None]
) -> Iterator[None]:
    """Record curves and scores in MLflow while the block runs, four times a minute.

    The first error is reported, and none stops the block. The end of the block waits for the last update. The
    caller records the final result. If another command with the same request runs in the same home folder,
    this one records nothing live.
    """
    with tracker.sole_computer(names.request) as is_sole:
        if not is_sole:
            yield
            return
        worker = _LiveWorker(tracker, names, so_far, say)
        with repeating(worker.update, lambda: SECONDS_BETWEEN_UPDATES, worker.end):
            try:
                yield
            except BaseException:
                worker.is_interrupted = True
                raise


@dataclass
class _LiveWorker:
    tracker: MlflowTracker
    names: LiveNames
    so_far: SoFar
    say: Callable[[str], None]
    is_interrupted: bool = False
    live: LiveRuns | None = None
    has_said: bool = False

    def end(self) -> None:
        """Mark parent and unfinished runs as killed; after an interruption, record the last state first."""
        if self.is_interrupted:
            self.update()
        self._guarded(self._end)

    def update(self) -> None:
        """Record the state so far."""
        self._guarded(self._log)

    def _end(self) -> None:
        if self.live is not None:
            with self.tracker.writing():
                self.live.end()

    def _log(self) -> None:
        known = list(self.so_far())
        if known:
            with self.tracker.writing():
                self.live = self.live or self.tracker.live_runs(self.names)
                self.live.update(known)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except UserError as error:
            self.live = None
            self._say_once(str(error))
        except Exception as error:  # noqa: BLE001 - the run goes on, and its live runs get an end
            self._say_once(f"{type(error).__name__}: {masked(in_one_line(error))}")

    def _say_once(self, reason: str) -> None:
        if not self.has_said:
            self.say(f"curves are not tracked while the run goes on: {reason}")
            self.has_said = True
