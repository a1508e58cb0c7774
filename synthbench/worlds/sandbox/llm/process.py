"""Run the server in a process of its own, which ends with the parent process."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError
from synthbench.base.processes import end_child, start_child, when_parent_ends
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings

if TYPE_CHECKING:
    import subprocess

HOST = "127.0.0.1"
SECONDS_TO_START = 60.0
SECONDS_TO_END = 5.0


@dataclass(frozen=True)
class SandboxServer:
    """A running server: address, model name, and process."""

    base_url: str
    process: "subprocess.Popen[str]"
    model: str = MODEL


@contextmanager
def running_server(settings: LLMSettings | None = None, port: int = 0) -> Iterator[SandboxServer]:
    """Start a server on loopback, wait until it listens, and end it afterwards.

    It ends by itself if this process dies in any way. Raises UserError if it does not start.
    """
    given = (settings or LLMSettings()).model_dump_json()
    process = start_child("synthbench.worlds.sandbox.llm.process", str(port), given)
    try:
        yield SandboxServer(_base_url(process), process)
    finally:
        end_child(process, SECONDS_TO_END)


def _base_url(process: "subprocess.Popen[str]") -> str:
    """Wait until a server listens, and return its address; raises UserError if it does not."""
    assert process.stdout is not None
    timer = threading.Timer(SECONDS_TO_START, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    said = json.loads(line) if line else {"error": "it ended, or took too long, without a word"}
    if "error" in said:
        raise UserError(f"the sandbox's LLM server did not start: {said['error']}")
    return str(said["base_url"])


def main() -> int:
    """Serve until the parent ends or stops this process; prints one line with the address or an error."""
    from synthbench.worlds.sandbox.llm.serving import LLMServer

    try:
        server = LLMServer(LLMSettings.model_validate_json(sys.argv[2]), HOST, int(sys.argv[1]))
    except UserError as error:
        _say({"error": str(error)})
        return 2
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    when_parent_ends(lambda: os._exit(0))
    _say({"base_url": server.base_url})
    server.serve_forever()
    return 0


def _say(what: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
