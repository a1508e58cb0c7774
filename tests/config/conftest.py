from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from fakes import install


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExperimentFile:
    """A valid experiment file with fake plug-ins, to be changed by tests."""
    install(monkeypatch)
    monkeypatch.delenv("SYNTHBENCH_DATA", raising=False)
    return ExperimentFile(tmp_path)
