"""`doctor` queries the tracking server like a run, and never shows secrets."""

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from wording import worded

from synthbench.cli import diagnosis
from synthbench.cli.diagnosis import DoctorFinding, Level
from synthbench.reporting.results import ExperimentResult
from synthbench.tracking.outbox import Outbox

TOKEN, PASSWORD = "very-secret-token", "hunter2"
NO_EXPERIMENT = b'{"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"}'


class Server(ThreadingHTTPServer):
    """Gives every request the same reply, and records the requests."""

    status: int = 404
    body: bytes = NO_EXPERIMENT
    location: str = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", *(f"MLFLOW_TRACKING_{key}" for key in ("URI", "TOKEN"))):
        monkeypatch.delenv(name, raising=False)
    for name in ("USERNAME", "PASSWORD"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


def secretless(finding: DoctorFinding) -> DoctorFinding:
    assert TOKEN not in f"{finding.text}{finding.advice}"
    assert PASSWORD not in f"{finding.text}{finding.advice}"
    return finding


def test_a_tracking_server_is_asked_with_the_credentials_of_a_run(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{PASSWORD}@{server.host}")
    found = secretless(diagnosis.tracking(tmp_path))
    assert (found.level, found.text) == (Level.OK, f"http://me:***@{server.host} answers")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{server.host}")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", TOKEN)
    secretless(diagnosis.tracking(tmp_path))
    userinfo = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert [authorization for _, authorization in server.asked] == [f"Basic {userinfo}", f"Bearer {TOKEN}"]


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_tracking_server_that_does_not_serve_is_a_problem(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int
) -> None:
    server.status, server.body = status, b"<html>"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{PASSWORD}@{server.host}")
    found = secretless(diagnosis.tracking(tmp_path))
    assert found.level == Level.PROBLEM
    worded(found.text, f"http://me:***@{server.host}", str(status))


def test_a_server_that_is_gone_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{PASSWORD}@127.0.0.1:1")
    found = secretless(diagnosis.tracking(tmp_path))
    assert found.level == Level.PROBLEM
    worded(found.text, "http://me:***@127.0.0.1:1")


def test_a_redirection_does_not_get_the_password(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Server() as thief:
        threading.Thread(target=thief.serve_forever, daemon=True).start()
        server.status, server.location = 302, f"http://localhost:{thief.server_port}/"
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{PASSWORD}@{server.host}")
        secretless(diagnosis.tracking(tmp_path))
        thief.shutdown()
    assert {authorization for _, authorization in thief.asked} <= {None}


def test_results_that_wait_for_a_tracking_server_are_counted(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uri = f"http://me:{PASSWORD}@{server.host}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    result = ExperimentResult(experiment="e", identity="i", runs=())
    folder = Outbox(tmp_path, uri).add(result, tmp_path / "report").parent
    found = secretless(diagnosis.tracking(tmp_path))
    told = f"http://me:***@{server.host} answers; results that wait in {folder}: 1"
    assert (found.level, found.text) == (Level.NOTE, told)
    server.status, server.body = 401, b""
    found = secretless(diagnosis.tracking(tmp_path))
    assert (found.level, "that wait in" in found.text) == (Level.PROBLEM, True)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("", "sqlite:///{home}/mlflow.db"),
        ("sqlite:///{home}/other.db", "sqlite:///{home}/other.db"),
        (f"postgresql://me:{PASSWORD}@host/db?sslpassword={TOKEN}", "postgresql://me:***@host/db"),
    ],
)
def test_other_tracking_stores_are_left_to_mlflow_without_showing_passwords(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str, shown: str
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", given.replace("{home}", str(tmp_path)))
    found = secretless(diagnosis.tracking(tmp_path))
    text = f"{shown.replace('{home}', str(tmp_path))}; not tried"
    assert (found.level, found.text) == (Level.OK, text)
    assert list(tmp_path.iterdir()) == []
