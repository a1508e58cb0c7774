"""Servers on loopback: asked for little, trusted with no more than they need, and their keys never told."""

import base64
import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from synthbench.diagnosis import services
from synthbench.diagnosis.machine import Finding, Level
from synthbench.reporting.results import ExperimentResult
from synthbench.tracking.outbox import Kept

KEY, PASSWORD = "sk-very-secret", "hunter2"
MODELS = json.dumps({"data": [{"id": "a"}, {"id": "b"}]}).encode()


class Server(ThreadingHTTPServer):
    """Gives every request the same answer and notes what was asked."""

    status: int = 200
    body: bytes = MODELS
    seconds: float = 0.0
    location: str = ""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers["Authorization"]))
        time.sleep(self.server.seconds)
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "MLFLOW_TRACKING_URI", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("USERNAME", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()


@pytest.fixture
def endpoint_url(server: Server, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"http://{server.place}/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return url


def secretless(finding: Finding) -> Finding:
    assert KEY not in f"{finding.text}{finding.advice}"
    assert PASSWORD not in f"{finding.text}{finding.advice}"
    return finding


def test_an_endpoint_that_answers_is_fine(server: Server, endpoint_url: str) -> None:
    found = secretless(services.endpoint())
    assert (found.level, found.text) == (
        Level.OK,
        f"{endpoint_url} answers, 2 models; OPENAI_API_KEY is set",
    )
    assert server.asked == [("/v1/models", f"Bearer {KEY}")]


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (401, b"", "refuses access (401); OPENAI_API_KEY is set"),
        (404, b"", "/models gives no list of models (404)"),
        (200, b"<html>", "/models gives no list of models (200)"),
        (200, b'{"data": 3}', "/models gives no list of models (200)"),
    ],
)
def test_an_endpoint_that_refuses_is_a_problem(
    server: Server, endpoint_url: str, status: int, body: bytes, text: str
) -> None:
    server.status, server.body = status, body
    found = secretless(services.endpoint())
    assert (found.level, text in found.text) == (Level.PROBLEM, True)


def test_nobody_is_contacted_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "_ask", pytest.fail)
    assert services.endpoint().level == Level.NOTE
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    found = secretless(services.endpoint())
    assert found.text == "OPENAI_BASE_URL is not set, OPENAI_API_KEY is set; nobody was contacted"


def test_a_redirection_does_not_get_the_key(server: Server, endpoint_url: str) -> None:
    with Server() as thief:
        threading.Thread(target=thief.serve_forever, daemon=True).start()
        server.status, server.location = 302, f"http://{thief.place}/"
        assert "no list of models (302)" in services.endpoint().text
        thief.shutdown()
    assert thief.asked == []


def test_a_server_that_is_slow_or_gone_is_not_waited_for(
    server: Server, endpoint_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "SECONDS", 0.05)
    server.seconds = 0.5
    assert services.endpoint().text == f"{endpoint_url} does not answer within 0.05 s"
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{PASSWORD}@127.0.0.1:1/v1?api_key={KEY}")
    monkeypatch.setattr(services, "SECONDS", 3.0)
    found = secretless(services.endpoint())
    assert found.text == "http://***@127.0.0.1:1/v1 can't be reached (Connection refused)"


@pytest.mark.parametrize(
    "url", [f"{PASSWORD}.example", f"ftp://{PASSWORD}/v1", f"http://[{PASSWORD}", "http://a:b:c"]
)
def test_what_is_no_url_is_not_repeated(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    found = secretless(services.endpoint())
    assert (found.level, found.text.startswith("OPENAI_BASE_URL is no")) == (Level.PROBLEM, True)


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", f"{KEY}\r\nx", f"„{KEY}“"])
def test_a_key_that_was_pasted_badly_is_said_before_it_is_sent(
    server: Server, endpoint_url: str, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    assert secretless(services.endpoint()).level == Level.PROBLEM
    assert server.asked == []


def test_a_tracking_server_gets_the_credentials_that_mlflow_would_send(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://me:{PASSWORD}@{server.place}/")
    found = secretless(services.tracking(tmp_path))
    assert (found.level, found.text) == (Level.OK, f"http://***@{server.place} answers")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", KEY)
    secretless(services.tracking(tmp_path))
    userinfo = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    path = "/api/2.0/mlflow/experiments/search?max_results=1"
    assert server.asked == [(path, f"Basic {userinfo}"), (path, f"Bearer {KEY}")]


@pytest.mark.parametrize(("status", "text"), [(401, "refuses access"), (404, "is no MLflow server (404)")])
def test_a_tracking_server_that_does_not_serve_is_a_problem(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int, text: str
) -> None:
    server.status = status
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{server.place}")
    found = services.tracking(tmp_path)
    assert (found.level, text in found.text) == (Level.PROBLEM, True)


def test_results_that_wait_for_a_tracking_server_are_counted(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    uri = f"http://me:{PASSWORD}@{server.place}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    result = ExperimentResult(experiment="e", identity="i", runs=())
    folder = Kept(tmp_path, uri).keep(result, tmp_path / "report").parent
    found = secretless(services.tracking(tmp_path))
    told = f"http://***@{server.place} answers; results that wait in {folder}: 1"
    assert (found.level, found.text) == (Level.NOTE, told)
    server.status = 401
    found = secretless(services.tracking(tmp_path))
    assert (found.level, "that wait in" in found.text) == (Level.PROBLEM, True)


def test_our_own_database_is_read_and_not_made(tmp_path: Path) -> None:
    file = tmp_path / "mlflow.db"
    assert services.tracking(tmp_path).text == f"{file} is made by the first run"
    assert not file.exists()
    connection = sqlite3.connect(file)
    connection.execute("create table experiments (name)")
    connection.execute("insert into experiments values ('mine')")
    connection.commit()
    connection.close()
    assert services.tracking(tmp_path).text == f"{file}, experiments: 1"
    file.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    assert "can't be read: file is not a database" in services.tracking(tmp_path).text


def test_other_tracking_stores_are_left_to_mlflow_and_their_passwords_untold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"postgresql://me:{PASSWORD}@host/db?sslpassword={KEY}")
    found = secretless(services.tracking(tmp_path))
    assert (found.level, found.text) == (Level.NOTE, "postgresql://***@host/db was not tried")


def test_latex_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert services.latex().level == Level.NOTE
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert (services.latex().level, services.latex().text) == (Level.OK, "/usr/bin/pdflatex")
