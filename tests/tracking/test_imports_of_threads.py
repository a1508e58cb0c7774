"""Threads import no heavy library that the stages' thread has not imported before."""

import builtins
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from small_experiment import new_project

from synthbench.engine import monitor as run_monitor
from synthbench.engine import progress
from synthbench.tracking import live, live_worker

HEAVY = {
    "datasets",
    "matplotlib",
    "mlflow",
    "openai",
    "pandas",
    "polars",
    "pyarrow",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "torch",
    "transformers",
}


@pytest.fixture
def imports(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """What is imported first by a thread other than the main one, by module; cached modules count, too."""
    first: dict[str, bool] = {}
    found: dict[str, set[str]] = defaultdict(set)
    real = builtins.__import__

    def noted(name: str, *more: Any, **named: Any) -> Any:
        package = name.partition(".")[0]
        if package in HEAVY:
            thread = threading.current_thread()
            is_main = thread is threading.main_thread()
            if not first.setdefault(package, is_main):
                found[package].add(thread.name)
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", noted)
    return found


def test_heavy_libraries_are_imported_before_threads_start(
    tmp_path: Path, bert: Path, imports: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow imports polars; scikit-learn, given data meanwhile, finds half of it in `sys.modules`."""
    updates: list[str] = []
    real = live.LiveRuns.update
    monkeypatch.setattr(live.LiveRuns, "update", lambda *given: updates.append("") or real(*given))
    monkeypatch.setattr(live_worker, "SECONDS_BETWEEN_UPDATES", 0.01)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    project = new_project(tmp_path, bert)
    called = project.call("run", "small.yaml", "--variant", "gold-only", "--seeds", "0", "--output", "out")
    assert called.code == 0, called.err
    assert updates
    assert "stages, " in called.err
    assert imports == {}


def test_a_cached_run_imports_nothing_for_tracking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run where nothing changed loads no MLflow."""
    called: list[str] = []
    monitor = run_monitor.RunMonitor(before=lambda: called.append("imported"))
    monitor.begin([])
    assert called == []
