"""A small Batch API for tests, which runs batches on command and misbehaves on purpose."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from faulty_server import Reply, error, said

Result = dict[str, Any]
"""The fields of a result line besides `custom_id`: `response` and `error`."""
Answering = Callable[[dict[str, Any]], Result]
Trouble = Callable[[str, str], "Reply | None"]
"""From method and path; what comes in the place of an answer."""


def result(text: str | None, tokens: tuple[int, int] = (10, 5), finish: str = "stop") -> Result:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    body = {"choices": [choice], "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}}
    return {"response": {"status_code": 200, "body": body}, "error": None}


def refusal(status: int, message: str = "", code: str | None = None) -> Result:
    body = {"error": {"message": message, "code": code}}
    return {"response": {"status_code": status, "body": body}, "error": None}


def never(code: str, message: str) -> Result:
    return {"response": None, "error": {"code": code, "message": message}}


def echo(body: dict[str, Any]) -> Result:
    return result(f"echo {said(body)}")


@dataclass
class Batches:
    """The server's state. `bodies` are the bodies of all executed requests, in order.

    `accepts_silently` accepts the next batch and then drops the connection; `accepts_none` drops it before.
    `trouble` may answer in the place of the API.
    """

    base_url: str = ""
    answering: Answering = echo
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    accepts_silently: bool = False
    accepts_none: bool = False
    trouble: Trouble = lambda method, path: None
    keys: set[str] = field(default_factory=set)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def asked(self, batch_id: str) -> list[dict[str, Any]]:
        """Return the lines that were uploaded for a batch."""
        lines = self.files[self.batches[batch_id]["input_file_id"]].split(b"\n")
        return [json.loads(line) for line in lines if line]

    def finish(self, state: str = "completed", num_done: int | None = None) -> None:
        """Execute at most `num_done` requests of each batch in progress, the last request first."""
        with self.lock:
            for batch in self.batches.values():
                if batch["status"] == "in_progress":
                    self._carry_out(batch, state, num_done)

    def fail(self, message: str) -> None:
        """Reject all batches in progress."""
        for batch in self.batches.values():
            if batch["status"] == "in_progress":
                errors = {"object": "list", "data": [{"code": "invalid", "message": message}]}
                batch.update(status="failed", errors=errors)

    def _carry_out(self, batch: dict[str, Any], state: str, num_done: int | None) -> None:
        asked = self.asked(batch["id"])
        late = never("batch_expired", "This request could not be executed before the window expired.")
        good: list[bytes] = []
        bad: list[bytes] = []
        for number, entry in enumerate(asked):
            is_done = num_done is None or number < num_done
            found = self.answering(entry["body"]) if is_done else late
            if is_done:
                self.bodies.append(entry["body"])
            status = (found["response"] or {}).get("status_code")
            line = json.dumps({"custom_id": entry["custom_id"], **found}, ensure_ascii=False)
            (good if status == 200 else bad).append(line.encode())
        for name, lines in (("output_file_id", good), ("error_file_id", bad)):
            if lines:
                batch[name] = f"{name}-{batch['id']}"
                self.files[batch[name]] = b"\n".join(reversed(lines)) + b"\n"
        counts = {"total": len(asked), "completed": len(good), "failed": len(bad)}
        batch.update(status=state, request_counts=counts)

    def add_file(self, content: bytes) -> dict[str, Any]:
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return {"id": name, "object": "file", "bytes": len(content), "purpose": "batch", "created_at": 1}

    def add_batch(self, given: dict[str, Any]) -> dict[str, Any]:
        name = f"batch_{len(self.batches)}"
        total = self.files[given["input_file_id"]].count(b"\n")
        self.batches[name] = {
            **given,
            "id": name,
            "object": "batch",
            "created_at": 4_000_000_000 + len(self.batches),
            "status": "in_progress",
            "request_counts": {"total": total, "completed": 0, "failed": 0},
        }
        return self.batches[name]

    def listed(self, after: str) -> dict[str, Any]:
        """Return one page of the newest batches: two."""
        names = sorted(self.batches, key=lambda name: -self.batches[name]["created_at"])
        rest = names[names.index(after) + 1 :] if after else names
        page = [self.batches[name] for name in rest[:2]]
        return {"object": "list", "data": page, "has_more": len(rest) > 2}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    held: Batches


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    @property
    def held(self) -> Batches:
        return self.server.held

    def do_GET(self) -> None:
        path, _, query = self.path.removeprefix("/v1").partition("?")
        with self.held.lock:
            self._reply(self._trouble("GET", path) or self._found(path, query))

    def do_POST(self) -> None:
        path = self.path.removeprefix("/v1")
        content = self.rfile.read(int(self.headers["Content-Length"]))
        with self.held.lock:
            self._reply(self._trouble("POST", path) or self._taken(path, content))

    def _trouble(self, method: str, path: str) -> Reply | None:
        self.held.keys.add(self.headers.get("Authorization", ""))
        return self.held.trouble(method, path)

    def _found(self, path: str, query: str) -> Reply:
        if path == "/batches":
            after = dict(part.split("=") for part in query.split("&")).get("after", "")
            return _json(self.held.listed(after))
        _, kind, name, *rest = path.split("/")
        if kind == "files" and rest == ["content"] and name in self.held.files:
            return Reply(body=self.held.files[name], content_type="application/octet-stream")
        if kind == "batches" and name in self.held.batches:
            return _json(self.held.batches[name])
        return error(404, f"No such thing: {path}")

    def _taken(self, path: str, content: bytes) -> Reply:
        if path == "/files":
            return _json(self.held.add_file(self._uploaded(content)))
        if path == "/batches":
            return self._batch(json.loads(content))
        if path == "/chat/completions":
            self.held.bodies.append(json.loads(content))
            response = self.held.answering(self.held.bodies[-1])["response"]
            return Reply(response["status_code"], json.dumps(response["body"]).encode())
        return error(404, f"No such thing: {path}")

    def _uploaded(self, content: bytes) -> bytes:
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        (file,) = [part for part in message_from_bytes(head + content).walk() if part.get_filename()]
        return bytes(file.get_payload(decode=True))

    def _batch(self, given: dict[str, Any]) -> Reply:
        if self.held.accepts_none:
            self.held.accepts_none = False
            return Reply(cut=0)
        reply = _json(self.held.add_batch(given))
        if self.held.accepts_silently:
            self.held.accepts_silently = False
            return Reply(cut=0)
        return reply

    def _reply(self, reply: Reply) -> None:
        self.close_connection = reply.cut is not None
        if reply.cut == 0:
            return
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        with suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(reply.body[: reply.cut])

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _json(content: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(content).encode())


@contextmanager
def batch_server(answering: Answering = echo) -> Iterator[Batches]:
    """Serve on loopback until the end of the block."""
    server = _Server(("127.0.0.1", 0), _Handler)
    server.held = Batches(f"http://127.0.0.1:{server.server_port}/v1", answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.held
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
