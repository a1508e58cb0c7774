"""A process that runs a server's program, waits until it is healthy, and ends it with the run.

Run as: python -m synthbench.llm.server_guard FILE PROGRAM [ARGUMENT ...]. FILE is the descriptor of the
server's file, whose lock the guard holds until it ends. The file has the settings, as JSON. The guard adds
`is_ready` once the server is healthy, or the program's exit `code`: 127 if the program can't be started, null
if the server was not healthy in time. The guard ends when the program ends, the start takes too long, the
file is removed, or the run is gone. Before that, it ends the program and all its children.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil

SECONDS_TO_END = 10.0
"""Wait after SIGTERM, in seconds; then remaining processes are killed."""
SECONDS_TO_REPLY = 5.0
SECONDS_BETWEEN_LOOKS = 0.2
_NOT_OFFERED = (404, 405, 501)
_SET_CHILD_SUBREAPER, _SET_PARENT_DEATH_SIGNAL = 36, 1
"""Linux: orphans become our children; a signal comes when the parent dies (prctl(2))."""


def main() -> None:
    """Run the program until it ends, fails to start in time, its file is removed, or the run is gone.

    If the run is gone, remove the folder of its server files.
    """
    file, command = int(sys.argv[1]), sys.argv[2:]
    state = json.loads(os.pread(file, os.fstat(file).st_size, 0))
    _prctl(_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        outcome = _serve(file, state, command)
    finally:
        _end_all()
    _write(file, {**state, **outcome})
    if not _is_alive(state["run"]):
        shutil.rmtree(Path(state["file"]).parent, ignore_errors=True)


def _serve(file: int, state: dict[str, Any], command: list[str]) -> dict[str, Any]:
    """Run the program; return the keys to add to the server's file: `is_ready`, or the exit `code`."""
    environment = {**os.environ, "PYTHONPATH": state["python_path"]}
    if state["python_path"] is None:
        del environment["PYTHONPATH"]
    try:
        program = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env=environment,
            preexec_fn=lambda: _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM),
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: can't be started: {error.strerror}\n")
        return {"code": 127}
    until = time.monotonic() + state["timeout"]
    is_ready = False
    while program.poll() is None and Path(state["file"]).exists() and _is_alive(state["run"]):
        if not is_ready and _is_healthy(state["address"]):
            is_ready = True
            _write(file, {**state, "is_ready": True})
        elif not is_ready and time.monotonic() > until:
            return {"code": None}
        time.sleep(SECONDS_BETWEEN_LOOKS)
    return {"is_ready": True} if is_ready else {"code": program.returncode}


def _write(file: int, state: dict[str, Any]) -> None:
    os.pwrite(file, json.dumps(state).encode(), 0)


def _is_alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def _is_healthy(address: str) -> bool:
    """Return whether /health answers with status 200; for a server without /health, whether /models does."""
    status = _status(address.removesuffix("/v1") + "/health")
    return (_status(f"{address}/models") if status in _NOT_OFFERED else status) == 200


def _status(url: str) -> int:
    """Return the HTTP status of a GET without a proxy; 0 without a reply in HTTP within 5 s."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=SECONDS_TO_REPLY) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError, HTTPException):
        return 0


def _family() -> list[psutil.Process]:
    """Return the program's process and all its descendants, orphans included."""
    own, group = psutil.Process(), os.getpgrp()
    found = {process.pid: process for process in own.children(recursive=True)}
    for process in psutil.process_iter():
        with suppress(OSError):
            if process.pid != own.pid and os.getpgid(process.pid) == group:
                found[process.pid] = process
    return list(found.values())


def _end_all() -> None:
    family = _family()
    for process in family:
        with suppress(psutil.Error):
            process.terminate()
    psutil.wait_procs(family, SECONDS_TO_END)
    for process in _family():
        with suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    main()
