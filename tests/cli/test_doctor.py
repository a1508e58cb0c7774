"""`synthbench doctor`: output and exit codes."""

import os
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from synthbench.cli import diagnosis
from synthbench.cli.diagnosis import Level
from synthbench.cli.main import app


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_URI", "SYNTHBENCH_DATA"):
        monkeypatch.delenv(name, raising=False)


def doctor() -> Result:
    return CliRunner().invoke(app, ["doctor"])


def test_every_check_has_a_line_and_notes_give_exit_code_0(tmp_path: Path) -> None:
    result = doctor()
    assert result.exit_code == 0, result.output
    for subject in ("packages", "methods", "CPU", "home", "disk", "hub cache", "data", "tracking"):
        assert f" {subject}: " in result.stdout
    assert "note    data: SYNTHBENCH_DATA is not set" in result.stdout
    assert "        -> point SYNTHBENCH_DATA" in result.stdout
    assert "problems: 0" in result.stdout.splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


def test_a_problem_ends_with_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").write_text("a file")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:1")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    result = doctor()
    assert result.exit_code == 2
    assert "problem home: " in result.stdout
    assert "problem tracking: MLflow at http://127.0.0.1:1 failed: " in result.stdout
    assert "problems: 2" in result.stdout


def test_folders_that_can_not_be_seen_are_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHBENCH_DATA", "a" * 300)
    assert diagnosis.data().text == f"SYNTHBENCH_DATA={'a' * 300}: can't be read: File name too long"
    home, *_ = diagnosis.home_folder(tmp_path / ("a" * 300))
    assert home.level is Level.PROBLEM and home.text.endswith("can't be read: File name too long")


def test_libraries_without_bytecode_that_python_may_not_write_are_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))  # where no bytecode is
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (found,) = diagnosis.bytecode()
    assert found.level is Level.NOTE and "compileall" in found.advice
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    assert os.geteuid() != 0 or not list(diagnosis.bytecode())
