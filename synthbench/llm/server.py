"""Requests to a local model's server, which the run starts at the first request that is not cached.

A run has a folder with a file for each server. The file is locked as long as the server lives. The process
that gets the lock writes the server's address into the file, and starts a guard process (`server_guard.py`).
The guard inherits the lock, runs the server, and notes in the file that the server is ready or has failed. It
ends the server with the run.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.llm.answers import Answer, as_printable_line
from synthbench.llm.cache import Say
from synthbench.llm.connection import Connection
from synthbench.llm.database import OWNER_ALONE
from synthbench.llm.endpoint import Endpoint, ServerDoor
from synthbench.llm.endpoint_check import listed_names
from synthbench.llm.requests import ChatRequest
from synthbench.llm.server_guard import SECONDS_TO_END
from synthbench.llm.server_programs import HOST, PORT, found_program

LINES_SHOWN = 8
LOGS_KEPT = 20
SECONDS_BETWEEN_LOOKS = 0.2
_BYTES_OF_LOG = 20_000
_LONGEST_LINE = 300
_NOT_IN_NAMES = linear_pattern(r"\W+")
_KILLED = -9


@contextmanager
def servers(logs: Path, *, are_elsewhere: bool = False) -> Iterator[ServerDoor]:
    """Yield a `ServerDoor`: a temporary folder through which this run's processes start servers.

    All servers end with this context, or with this process. `logs`: the folder of the servers' logs.
    `are_elsewhere`: the processes only note in the folder which servers they want; a cluster runs them.
    """
    folder = Path(tempfile.mkdtemp(prefix="synthbench-"))
    try:
        yield ServerDoor(folder, logs, os.getpid(), are_elsewhere)
    finally:
        with ExitStack() as stack:
            files = [stack.enter_context(file.open()) for file in folder.iterdir()]
            # The guards end when their files are removed.
            shutil.rmtree(folder)
            until = time.monotonic() + 2 * SECONDS_TO_END
            while any(map(_is_held, files)) and time.monotonic() < until:
                time.sleep(SECONDS_BETWEEN_LOOKS / 4)


def server_file(endpoint: Endpoint) -> Path:
    """Return the file of an endpoint's server; raises ValueError if the run does not serve it."""
    if endpoint.served is None or endpoint.door is None:
        raise ValueError("not an endpoint with a server of its own")
    name = json.dumps([endpoint.name, endpoint.model, *endpoint.served.command])
    return endpoint.door.folder / hashlib.sha256(name.encode()).hexdigest()


class ServedBackend(AbstractAsyncContextManager["ServedBackend"]):
    """Sends each request to the least busy of the servers that are ready; for one event loop.

    Raises ValueError if the run does not serve the endpoint.
    """

    def __init__(self, endpoint: Endpoint, say: Say) -> None:
        if endpoint.served is None or endpoint.door is None:
            raise ValueError("not an endpoint with a server of its own")
        self._endpoint, self._served, self._door = endpoint, endpoint.served, endpoint.door
        self._file = server_file(endpoint)
        self._say = say
        self._has_started = False
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._connections: dict[str, Connection] = {}
        self._num_asked: Counter[str] = Counter()

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer, after waiting until a server is ready.

        Raises FailedAttemptError, or UserError if no request can succeed.
        """
        async with self._starting:
            if not self._connections or self._door.is_elsewhere:
                while not (addresses := self._addresses()):
                    await asyncio.sleep(SECONDS_BETWEEN_LOOKS)
                for address in addresses:
                    if address not in self._connections:
                        self._connections[address] = await self._connected(address)
            else:
                addresses = list(self._connections)
        address = min(addresses, key=self._num_asked.__getitem__)
        self._num_asked[address] += 1
        try:
            return await self._connections[address].ask(request, attempt)
        finally:
            self._num_asked[address] -= 1

    def is_running(self) -> bool:
        """Return whether the server is starting or running."""
        with self._opened() as file:
            return _is_held(file)

    def address_if_ready(self) -> str | None:
        """Return the base URL of a ready server, or None; if no server runs, start one.

        Raises UserError if the server failed to start.
        """
        return next(iter(self._addresses()), None)

    def _addresses(self) -> list[str]:
        """Return the base URLs of the servers that are ready.

        If none runs, start one; on a cluster, note that one is wanted. Raises UserError if the server failed.
        """
        with self._opened() as file:
            is_free = not _is_held(file)
            state = _json(file.read())
            if "error" in state:
                raise UserError(state["error"])
            if self._door.is_elsewhere:
                if is_free and not state:
                    write_state(file, {"wanted": True})
                return list(state.get("addresses", ()))
            if is_free and (not state or "is_ready" in state):
                self._start(file)
                return []
        if "is_ready" not in state and (is_free or "code" in state):
            raise UserError(self._why_not(state))
        return [state["address"]] if "is_ready" in state else []

    async def _connected(self, address: str) -> Connection:
        """Return a connection to the server at `address`.

        Requests have the server's own name for the model, and the body keys in `Served.body`.
        """
        if self._has_started:
            self._say(f"{self._endpoint.section}: the server at {address} is ready")
        options = dict(self._endpoint.options)
        if self._served.body:
            options["extra_body"] = {**self._served.body, **options.get("extra_body", {})}
        there = replace(self._endpoint, base_url=address, model=self._served.model_id, options=options)
        if self._served.lists:
            async with Connection(there) as asking:
                listed = listed_names(await asking.get("/models"))
            own = [name for name in listed if name in (self._served.model_id, self._endpoint.model)]
            names = own or (listed if len(listed) == 1 else [there.model])
            there = replace(there, model=names[0])
        return await self._stack.enter_async_context(Connection(there))

    def _opened(self) -> IO[str]:
        try:
            return os.fdopen(os.open(self._file, os.O_RDWR | os.O_CREAT, OWNER_ALONE), "r+")
        except FileNotFoundError:
            raise UserError(
                "the run that starts the LLM's server is gone; run the same command again"
            ) from None

    def _start(self, file: IO[str]) -> None:
        """Start a guard process, which starts the server program and inherits the locked file."""
        log, port = self._new_log(), _free_port()
        program, *arguments = [part.replace(PORT, str(port)) for part in self._served.command]
        command = [found_program(program) or program, *arguments]
        self._say(f"{self._endpoint.section}: starting {shlex.join(command)}; log: {log}")
        self._has_started = True
        state = {
            "file": str(self._file),
            "address": f"http://{HOST}:{port}/v1",
            "log": str(log),
            "python_path": os.environ.get("PYTHONPATH"),
            "run": self._door.run,
            "timeout": self._served.start_timeout_s,
        }
        write_state(file, state)
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        with log.open("ab") as stream:
            guard = subprocess.Popen(
                [sys.executable, "-m", "synthbench.llm.server_guard", str(file.fileno()), *command],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,
                pass_fds=[file.fileno()],
            )
        threading.Thread(target=guard.wait, daemon=True).start()

    def _new_log(self) -> Path:
        """Create an empty log and return its path; of the older logs, keep the newest `LOGS_KEPT`."""
        logs = self._door.logs
        logs.mkdir(parents=True, exist_ok=True)
        # Another process may delete the same logs; the next start then deletes the rest.
        with suppress(FileNotFoundError):
            for old in sorted(logs.glob("*.log"), key=lambda file: file.stat().st_mtime)[:-LOGS_KEPT]:
                old.unlink(missing_ok=True)
        name = _NOT_IN_NAMES.sub("-", self._endpoint.section)
        log = logs / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        # Servers log their command lines, keys among them.
        log.touch(OWNER_ALONE)
        return log

    def _why_not(self, state: dict[str, Any]) -> str:
        """Return why the server failed; the process that started it also shows the log's last lines."""
        section, log = self._endpoint.section, state["log"]
        lines = _last_lines(Path(log))
        if self._has_started:
            for line in lines:
                self._say(f"  | {line}")
        code = state.get("code", _KILLED)
        if code is None:
            return (
                f"{section}: its server was not healthy within {self._served.start_timeout_s:g} s; see its"
                f" log {log}, or raise {section}.start_timeout_s"
            )
        return (
            f"{section}: its server ended with exit code {code} before it was healthy; its log {log} ends:"
            f" {(lines or ['nothing'])[-1]}"
        )


def _is_held(file: IO[str]) -> bool:
    """Return whether another process holds the file's lock; if not, take it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def write_state(file: IO[str], state: dict[str, Any]) -> None:
    """Overwrite a server's file, which this process has locked."""
    file.truncate(0)
    file.seek(0)
    file.write(json.dumps(state))
    file.flush()


def _json(text: str) -> dict[str, Any]:
    """Return the JSON object in a server's file; {} while the file is empty or being written."""
    try:
        return dict(json.loads(text))
    except ValueError:
        return {}


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])


def _last_lines(log: Path) -> list[str]:
    """Return the last `LINES_SHOWN` non-empty lines of a log, shortened, as printable text."""
    text = log.read_bytes()[-_BYTES_OF_LOG:].decode("utf-8", "replace")
    lines = (as_printable_line(line)[:_LONGEST_LINE] for line in text.splitlines())
    return [line for line in lines if line][-LINES_SHOWN:]
