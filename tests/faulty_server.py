"""A small chat server that answers by a script and records its requests."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[[int, dict[str, Any]], "Reply"]
"""Returns the reply, from the request's index (0, 1 ...) and its body."""


@dataclass(frozen=True)
class Reply:
    """The bytes that the server sends; `cut` closes the connection after so many bytes of the body.

    `raw` goes over it instead, which need not be HTTP.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    raw: bytes = b""


@dataclass
class FaultyServer:
    """`bodies` are the requests' in the order of arrival; so are `keys` (Authorization headers) and `ids`.

    `paths` are what was looked up (GET).
    """

    base_url: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    most_at_once: int = 0
    num_now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def answer(text: str | None, finish: str = "stop", tokens: tuple[int, int] = (10, 5)) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}
    return Reply(body=json.dumps({"choices": [choice], "usage": usage}).encode())


def error(status: int, message: str = "", code: str | None = None, **headers: str) -> Reply:
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Reply(status, body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def said(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def echo(number: int, body: dict[str, Any]) -> Reply:
    return answer(f"echo {said(body)}")


@contextmanager
def faulty_server(
    script: Script,
    lookups: Callable[[str], Reply] = lambda path: error(404),
    headed: Callable[[str, Any], Reply] | None = None,
) -> Iterator[FaultyServer]:
    """Serve on loopback until the end of the block; `headed` looks up by path and headers instead."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with found.lock:
                number = len(found.bodies)
                found.bodies.append(body)
                found.keys.append(self.headers.get("Authorization", ""))
                found.ids.append(self.headers.get("X-Client-Request-Id", ""))
                found.num_now += 1
                found.most_at_once = max(found.most_at_once, found.num_now)
            reply = script(number, body)
            with found.lock:
                found.num_now -= 1
            self._reply(reply)

        def do_GET(self) -> None:
            with found.lock:
                found.paths.append(self.path)
                found.keys.append(self.headers.get("Authorization", ""))
            self._reply(headed(self.path, self.headers) if headed else lookups(self.path))

        def _reply(self, reply: Reply) -> None:
            self.close_connection = reply.cut is not None or bool(reply.raw)
            if self.wfile.write(reply.raw) or reply.cut == 0:
                return
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body[: reply.cut])

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = FaultyServer(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
