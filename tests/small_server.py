"""A server of OpenAI's chat API as a user might have one: `python small_server.py --port N --model NAME`.

It notes its starts and what it is asked in `--notes`, a line each. `--fails` ends it before it listens,
`--sleeps` keeps it from listening, `--child` starts a process that ignores SIGTERM.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


class Handler(BaseHTTPRequestHandler):
    """Answers with the length of the last message; has no /health."""

    def do_GET(self) -> None:
        found = self.path == "/v1/models"
        self._send(
            200 if found else 404, {"data": [{"id": f"served-{Path(given.model).name}"}]} if found else {}
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = body["messages"][-1]["content"]
        note(f"asked {body['model']} {text}")
        message = {"role": "assistant", "content": f"{len(text)} letters by {Path(given.model).name}"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(200, {"choices": [choice], "usage": usage})

    def _send(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def note(line: str) -> None:
    """Append a line to the notes."""
    with given.notes.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--model")
    parser.add_argument("--notes", type=Path)
    parser.add_argument("--api-key")
    for flag in ("--fails", "--sleeps", "--child"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    note(f"started {os.getpid()}")
    print("loading the weights", flush=True)
    if given.fails:
        sys.exit("ValueError: the weights are gone")
    if given.sleeps:
        time.sleep(600)
    if given.child:
        note(f"started {subprocess.Popen([sys.executable, '-c', STUBBORN]).pid}")
    ThreadingHTTPServer(("127.0.0.1", given.port), Handler).serve_forever()
