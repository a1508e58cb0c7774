"""A process that runs a server's program and ends it, with all that it started, when the run is gone.

Run as: python -m synthbench.llm.server_guard LOG PYTHONPATH PROGRAM [ARGUMENT ...]. It ends with the program.
It ends the program on SIGTERM, and when its standard input closes, as it does when the run is killed. The
program gets that PYTHONPATH, since it may be of another environment.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from synthbench.base.processes import when_parent_ends

SECONDS_TO_END = 10.0
"""After SIGTERM; what still runs then is killed."""
PYTHON_PATH = "PYTHONPATH"
_SET_CHILD_SUBREAPER, _SET_PARENT_DEATH_SIGNAL = 36, 1
"""Linux: orphans become our children; a signal comes when the parent dies (prctl(2))."""


def main() -> int:
    """Run the program until it ends or nobody needs it; return its exit code, or 0."""
    log, python_path, *command = sys.argv[1:]
    environment = {key: value for key, value in os.environ.items() if key != PYTHON_PATH}
    if python_path:
        environment[PYTHON_PATH] = python_path
    _prctl(_SET_CHILD_SUBREAPER, 1)
    reader, writer = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(writer, b"."))
    with Path(log).open("ab") as stream:
        try:
            program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=lambda: _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM),
            )
        except OSError as error:
            stream.write(f"{command[0]}: can't be started: {error.strerror}\n".encode())
            return 127
    when_parent_ends(lambda: os.write(writer, b"."))
    threading.Thread(target=lambda: (program.wait(), os.write(writer, b".")), daemon=True).start()
    os.read(reader, 1)
    ended_by_itself = program.poll()
    _end_all()
    return 0 if ended_by_itself is None else ended_by_itself


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def _family() -> list[psutil.Process]:
    """Return the program and all that it started, also what has lost its parent."""
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
    sys.exit(main())
