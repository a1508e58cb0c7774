"""Fixtures of tests that plan or run stages."""

from pathlib import Path

import fakes
import pytest
from experiment_files import ExperimentFile

from synthbench.engine.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def work_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which every piece of work is noted, by all processes."""
    file = tmp_path / "work.log"
    monkeypatch.setenv(fakes.WORK_LOG, str(file))
    return file


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentFile:
    """A valid experiment file with fake plug-ins."""
    fakes.install(monkeypatch)
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    return ExperimentFile(tmp_path)
