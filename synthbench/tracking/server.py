"""MLflow's own server on this machine, for `synthbench dashboard`."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import IO

from synthbench.base.errors import UserError
from synthbench.tracking.redaction import mask_password_of

HOST = "127.0.0.1"
START_SECONDS = 300
END_SECONDS = 10
POLL_SECONDS = 0.2


@contextmanager
def served(database: str, artifacts: Path, port: int) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Serve MLflow's UI of a database on loopback; yield address and process once it responds.

    `artifacts`: the folder for experiments that set no folder; port 0: any free port. The server and its
    workers end with the block. Raises UserError if the port is taken, or if the server does not start within
    `START_SECONDS`.
    """
    port = _free_port(port)
    with tempfile.TemporaryFile() as said:
        process = _start(database, artifacts, port, said)
        try:
            _wait(process, port, database, said)
            yield f"http://{HOST}:{port}", process
        finally:
            _end(process)


def _free_port(port: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            reason = error.strerror or error
            raise UserError(
                f"--port {port}: {HOST}:{port} can't be used ({reason}); name another, or 0 for any free one"
            ) from error
        return int(probe.getsockname()[1])


def _start(database: str, artifacts: Path, port: int, said: IO[bytes]) -> "subprocess.Popen[bytes]":
    address = f"--host {HOST} --port {port} --workers 1 --no-serve-artifacts"
    command = [sys.executable, "-m", "mlflow", "server", *address.split()]
    command += ["--default-artifact-root", artifacts.as_uri()]
    environment = {
        **os.environ,
        # Not as arguments, which anybody can list: the address may hold a password.
        "MLFLOW_BACKEND_STORE_URI": database,
        # MLflow's job runners only serve traces of language models.
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _wait(process: "subprocess.Popen[bytes]", port: int, database: str, said: IO[bytes]) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        if _answers(port):
            return
        time.sleep(POLL_SECONDS)
    said.seek(0)
    lines = [line.strip() for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    reason = mask_password_of(database, lines[-1]) if lines else "it printed nothing"
    raise UserError(f"MLflow's server did not start: {reason}")


def _answers(port: int) -> bool:
    with closing(HTTPConnection(HOST, port, timeout=END_SECONDS)) as connection:
        with suppress(OSError, HTTPException):
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the server and the workers that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS)
            return
