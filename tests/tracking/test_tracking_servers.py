"""Real servers on loopback: MLflow's own, as `synthbench dashboard` starts it, and PostgreSQL behind it."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mlflow import MlflowClient
from small_experiment import Project
from wording import refused, worded

from synthbench.reporting.results import ExperimentResult
from synthbench.tracking import server
from synthbench.tracking.mlflow_tracker import MlflowTracker
from synthbench.tracking.server import served


def kinds_at(uri: str, name: str) -> list[str]:
    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(name)
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return sorted(run.data.tags["synthbench.kind"] for run in runs)


def kinds_of(result: ExperimentResult) -> list[str]:
    rows = {run.variant for run in result.runs}
    return ["experiment", *["row"] * len(rows), *["run"] * len(result.runs)]


def test_a_taken_port_is_reported_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            refused("--port", str(port), f"127.0.0.1:{port}"),
            served("sqlite:///nothing.db", tmp_path, port),
        ):
            pass


def test_a_dashboard_without_results_is_an_error(project: Project) -> None:
    called = project.call("dashboard")

    assert (called.code, called.out) == (2, "")
    worded(called.errors, f"sqlite:///{project.home}/mlflow.db")
    assert not project.home.exists()


@pytest.mark.experiments
def test_the_dashboard_shows_tracked_results_and_ends_with_all_its_processes(
    result: ExperimentResult, report_folder: Path, tmp_path: Path
) -> None:
    tracker = MlflowTracker(tmp_path / "home")
    tracker.log(result, report_folder)

    with served(tracker.uri, tracker.artifacts, 0) as (address, process):
        page = urllib.request.urlopen(address).read().decode()
        found = kinds_at(address, result.experiment)
        pages = tracker.addresses().pages

    assert "MLflow" in page
    assert found == kinds_of(result)
    assert all(page.startswith("/#/") for page in pages.values())
    assert process.poll() is not None
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address)


@pytest.mark.experiments
def test_results_can_be_sent_to_a_server_that_also_stores_the_files(
    result: ExperimentResult, report_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _mlflow_server(tmp_path) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        tracker = MlflowTracker(tmp_path / "home")
        tracker.check(result.experiment)

        project = tracker.log(result, report_folder)
        again = tracker.log(result, report_folder)

        assert project == again
        assert project.startswith(f"{address}/#/experiments/")
        assert tracker.load(result.experiment).runs[0].scores == result.runs[0].scores
        assert kinds_at(address, result.experiment) == kinds_of(result)


@pytest.mark.experiments
def test_postgresql_keeps_results_and_serves_the_dashboard(
    result: ExperimentResult, report_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _postgresql() as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        tracker = MlflowTracker(tmp_path / "home")

        assert tracker.log(result, report_folder) == "synthbench dashboard"
        assert tracker.load(result.experiment).runs[0].scores == result.runs[0].scores
        with served(tracker.uri, tracker.artifacts, 0) as (address, _):
            assert kinds_at(address, result.experiment) == kinds_of(result)


@contextmanager
def _mlflow_server(folder: Path) -> Iterator[str]:
    """An MLflow server as a team would run it, which takes the files too."""
    port = server._free_port(0)
    options = {
        "--backend-store-uri": f"sqlite:///{folder}/server.db",
        "--artifacts-destination": str(folder / "files"),
        "--host": server.HOST,
        "--port": str(port),
        "--workers": "1",
    }
    command = [sys.executable, "-m", "mlflow", "server", *(text for pair in options.items() for text in pair)]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said, start_new_session=True)
        try:
            server._wait(process, port, "", said)
            yield f"http://{server.HOST}:{port}"
        finally:
            server._end(process)


@contextmanager
def _postgresql() -> Iterator[str]:
    """A PostgreSQL of the test's own; skips where it or its driver is not installed."""
    pytest.importorskip("psycopg")
    found = shutil.which("initdb") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), "")
    if not found:
        pytest.skip("needs PostgreSQL (Debian: postgresql)")
    programs = Path(found).parent
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if user:
            shutil.chown(folder, user)
        port = server._free_port(0)
        (password := folder / "password").write_text("s3cret\n", encoding="utf-8")
        password.chmod(0o644)

        def call(program: str, *arguments: str) -> None:
            command = [str(programs / program), "-D", str(folder / "data"), *arguments]
            subprocess.run(command, user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        call("initdb", "-U", "me", "-A", "scram-sha-256", f"--pwfile={password}")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder}"
        call("pg_ctl", "-w", "-l", str(folder / "log"), "-o", options, "start")
        try:
            yield f"postgresql://me:s3cret@127.0.0.1:{port}/postgres"
        finally:
            call("pg_ctl", "-m", "immediate", "stop")
