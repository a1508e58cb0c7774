"""An unchanged run neither draws nor tracks again, unless its report or result was edited."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_experiment import Project, new_project

from synthbench.tracking.mlflow_tracker import MlflowTracker

HEAVY = {"torch", "transformers", "mlflow", "matplotlib", "pandas", "sklearn"}
PROBE = f"""\
import sys
from synthbench.cli.main import main
sys.argv = ["synthbench", "run", "small.yaml"]
try:
    main()
except SystemExit as end:
    sys.stderr.write(f"ended {{end.code}} with {{sorted({HEAVY} & sys.modules.keys())}}")
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, bert: Path, empty_database: Path) -> Project:
    """A project that has run; a test that damages it repairs it by its own run."""
    project = new_project(tmp_path_factory.mktemp("cached"), bert)
    project.home.mkdir()
    shutil.copyfile(empty_database, project.home / "mlflow.db")
    project.call("run", project.file)
    return project


def report(project: Project) -> dict[str, tuple[bytes, int]]:
    """Return the content and the time of change of each file of the report."""
    files = (project.folder / "reports" / "small").iterdir()
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in files}


def contents(project: Project) -> dict[str, bytes]:
    """Return the content of each file of the report."""
    return {name: content for name, (content, _) in report(project).items()}


def test_an_unchanged_run_draws_tracks_and_imports_nothing(finished: Project) -> None:
    before, database = report(finished), (finished.home / "mlflow.db").read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        cwd=finished.folder,
        env={**os.environ, "SYNTHBENCH_HOME": str(finished.home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1] == "ended 0 with []"
    assert "augsbert" in done.stdout
    assert report(finished) == before
    assert (finished.home / "mlflow.db").read_bytes() == database


def test_a_file_of_the_report_that_was_removed_or_edited_is_written_again(finished: Project) -> None:
    before, folder = contents(finished), finished.folder / "reports" / "small"
    (folder / "table.tex").unlink()
    (folder / "scores.png").write_bytes(b"edited")
    called = finished.call("run", finished.file)
    assert "kept: reports/small/scores.png" in called.out
    assert contents(finished) == before | {"scores.edited.png": b"edited"}
    (folder / "scores.edited.png").unlink()


def test_a_report_without_its_record_is_written_again(finished: Project) -> None:
    before, folder = contents(finished), finished.folder / "reports" / "small"
    (folder / "table.md").write_bytes(b"another")
    (folder / ".written.json").unlink()
    finished.call("run", finished.file)
    assert contents(finished) == before | {"table.edited.md": b"another"}
    (folder / "table.edited.md").unlink()


def test_a_result_is_tracked_again_if_the_database_is_gone(finished: Project, empty_database: Path) -> None:
    shutil.copyfile(empty_database, finished.home / "mlflow.db")
    assert finished.call("run", finished.file).code == 0
    assert len(MlflowTracker(finished.home).load("small").runs) == 4


def test_changed_table_options_are_shown(finished: Project) -> None:
    before = contents(finished)
    finished.file.write_text(finished.file.read_text("utf-8") + "table: {caption: Another}\n", "utf-8")
    finished.call("run", finished.file)
    assert b"Another" in contents(finished)["table.tex"]
    assert b"Another" not in before["table.tex"]
