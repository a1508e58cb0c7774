"""ray-project/ray #32435: a thread imports pandas while another uses it, and finds half of it.

Here MLflow, which brings pandas and polars, is imported by the thread that runs stages, before the first one.
"""

import threading
from typing import Any

import pytest

from synthbench.engine.monitor import RunMonitor
from synthbench.pipeline import experiment_run


def test_imports_of_the_tracking_thread_happen_before_any_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monitor = RunMonitor(before=lambda: seen.append((threading.current_thread(), monitor.counts)))
    monitor.begin([_Stage()])  # type: ignore[list-item]
    assert seen == [(threading.main_thread(), (0, 0))]
    assert experiment_run.import_tracking.__module__ == "synthbench.tracking.live_worker"


class _Stage:
    identity = "a" * 64
