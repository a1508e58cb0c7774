"""Start a local model's server when the first request needs it, wait until it is healthy, and end it."""

import json
import os
import secrets
import shlex
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from synthbench.base.patterns import linear_pattern
from synthbench.base.processes import end_child, start_child
from synthbench.llm.database import OWNER_ALONE
from synthbench.llm.endpoint import Endpoint, Served
from synthbench.llm.replies import as_printable_line
from synthbench.llm.server_door import RunningServer, ServerDoor
from synthbench.llm.server_guard import PYTHON_PATH, SECONDS_TO_END
from synthbench.llm.server_programs import found_program

if TYPE_CHECKING:
    import subprocess

    from synthbench.base.runtime import Progress

HOST = "127.0.0.1"
LINES_SHOWN = 8
LOGS_KEPT = 20
SECONDS_BETWEEN_LOOKS = 0.2
SECONDS_TO_REPLY = 5.0
_BYTES_OF_LOG = 20_000
_LONGEST_LINE = 300
_NOT_IN_NAMES = linear_pattern(r"\W+")
_NOT_OFFERED = (404, 405, 501)


@dataclass
class _Server:
    """A server by its endpoint. `outcome`: None while it starts, then the server or why there is none."""

    endpoint: Endpoint
    served: Served
    process: "subprocess.Popen[str] | None" = None
    outcome: RunningServer | str | None = None

    @property
    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


@dataclass
class Servers:
    """The servers of one run. Each starts when a process of the run first asks; all end with this context.

    `logs`: the folder of their logs. They end as well when this process is killed.
    """

    logs: Path
    progress: "Progress"
    _servers: dict[str, _Server] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        if self._servers:
            self._hang_up()
        with self._lock:
            for server in self._servers.values():
                if server.process is not None:
                    end_child(server.process, 2 * SECONDS_TO_END)

    def door(self, endpoint: Endpoint) -> ServerDoor:
        """Return where any process of the run may ask for the server of an endpoint that has one."""
        if endpoint.served is None:
            raise ValueError("not an endpoint with a server of its own")
        name = json.dumps([endpoint.name, endpoint.model, *endpoint.served.command])
        with self._lock:
            if not self._servers:
                self._listen()
            self._servers.setdefault(name, _Server(endpoint, endpoint.served))
        return ServerDoor(str(self._listener.address), self._key, name)

    def _listen(self) -> None:
        self._key = secrets.token_bytes(32)
        self._listener = Listener(authkey=self._key)
        threading.Thread(target=self._answer_all, name="synthbench-servers", daemon=True).start()

    def _hang_up(self) -> None:
        """Let the thread that answers end; it is not waited for long, since it may be gone already."""
        ending = threading.Thread(target=self._say_the_end, name="synthbench-servers-end", daemon=True)
        ending.start()
        ending.join(SECONDS_TO_REPLY)
        self._listener.close()

    def _say_the_end(self) -> None:
        with suppress(OSError, EOFError), Client(self._listener.address, authkey=self._key) as line:
            line.send(None)

    def _answer_all(self) -> None:
        """Answer until the end is said: one who is connected, and not answered, would wait for ever."""
        is_last = False
        while not is_last:
            try:
                with self._listener.accept() as line:
                    is_last = self._is_last(line)
            except (OSError, EOFError, AuthenticationError):
                is_last = self._is_over.is_set()

    def _is_last(self, line: "Connection[Any, Any]") -> bool:
        """Answer one who asks for a server; True if the end is said instead."""
        asked = line.recv() if line.poll(SECONDS_TO_REPLY) else ""
        server = self._servers.get(asked or "")
        if server is not None:
            self._answer(line, server)
        return asked is None

    def _answer(self, line: "Connection[Any, Any]", server: _Server) -> None:
        with self._lock:
            has_died = isinstance(server.outcome, RunningServer) and not server.is_alive
            if (server.process is None or has_died) and not self._is_over.is_set():
                self._start(server)
        line.send(server.outcome)

    def _start(self, server: _Server) -> None:
        """Start the program, and watch in a thread how that goes."""
        served, port = server.served, _free_port()
        command = [part.replace("{port}", str(port)) for part in served.command]
        command[0] = found_program(command[0]) or command[0]
        log = self._new_log(server.endpoint)
        self.progress.say(f"{server.endpoint.section}: starting {shlex.join(command)}; log: {log}")
        server.outcome = None
        python_path = os.environ.get(PYTHON_PATH, "")
        server.process = start_child("synthbench.llm.server_guard", str(log), python_path, *command)
        threading.Thread(target=self._watch, args=(server, port, log), daemon=True).start()

    def _new_log(self, endpoint: Endpoint) -> Path:
        """Return the file of a new log; the oldest logs are removed."""
        self.logs.mkdir(parents=True, exist_ok=True)
        for old in sorted(self.logs.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-LOGS_KEPT]:
            old.unlink(missing_ok=True)
        name = _NOT_IN_NAMES.sub("-", endpoint.section)
        log = self.logs / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        # Servers log their command lines, keys among them.
        log.touch(OWNER_ALONE)
        return log

    def _watch(self, server: _Server, port: int, log: Path) -> None:
        found = self._when_healthy(server, f"http://{HOST}:{port}", log)
        if self._is_over.is_set():
            return
        if isinstance(found, str):
            for line in _last_lines(log):
                self.progress.say(f"  | {line}")
            if server.process is not None:
                end_child(server.process, 2 * SECONDS_TO_END)
        else:
            self.progress.say(f"{server.endpoint.section}: the server at {found.base_url} is ready")
        server.outcome = found

    def _when_healthy(self, server: _Server, root: str, log: Path) -> RunningServer | str:
        """Wait until the server is healthy; return it, or why there is none."""
        name, served = f"{server.endpoint.section}: its server", server.served
        until = time.monotonic() + served.start_timeout_s
        while time.monotonic() < until and not self._is_over.wait(SECONDS_BETWEEN_LOOKS):
            if not server.is_alive:
                assert server.process is not None
                last = (_last_lines(log) or ["nothing"])[-1]
                code = server.process.returncode
                return f"{name} ended with exit code {code} before it was healthy; its log {log} ends: {last}"
            if _is_healthy(root):
                listed = _listed_model(root, server.endpoint.model, served) if served.lists else ""
                return RunningServer(f"{root}/v1", listed or served.model_id)
        return (
            f"{name} was not healthy within {served.start_timeout_s:g} s; see its log {log}, or raise"
            f" {server.endpoint.section}.start_timeout_s"
        )


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])


def _is_healthy(root: str) -> bool:
    """Ask /health; a server without it is healthy once it lists its models."""
    status, _ = _get(f"{root}/health")
    if status in _NOT_OFFERED:
        status, _ = _get(f"{root}/v1/models")
    return status == 200


def _listed_model(root: str, name: str, served: Served) -> str:
    """Return the model's name in a server's list: as the experiment has it, else the only one, else ""."""
    _, listed = _get(f"{root}/v1/models")
    rows = listed.get("data") if isinstance(listed, Mapping) else None
    names = [row["id"] for row in rows or () if isinstance(row, Mapping) and isinstance(row.get("id"), str)]
    own = [each for each in names if each in (served.model_id, name)]
    return str(next(iter(own or (names if len(names) == 1 else ())), ""))


def _get(url: str) -> tuple[int, Any]:
    """Return status and JSON of a GET, status 0 if nothing answers; no proxy is asked."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=SECONDS_TO_REPLY) as reply:
            text = reply.read()
            status = reply.status
    except urllib.error.HTTPError as error:
        return error.code, None
    except (OSError, ValueError):
        return 0, None
    try:
        return status, json.loads(text)
    except ValueError:
        return status, None


def _last_lines(log: Path) -> list[str]:
    """Return the last lines of a log that are not empty, as printable text."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - _BYTES_OF_LOG))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return []
    lines = (as_printable_line(line)[:_LONGEST_LINE] for line in text.splitlines())
    return [line for line in lines if line][-LINES_SHOWN:]
