"""The HTTP server: OpenAI's chat-completions API on the standard library's threading server.

Not a web framework: one of the simulated faults closes the connection without a response.
"""

import contextlib
import errno
import json
import re
import socket
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO
from urllib.parse import unquote, urlsplit

from synthbench.base.errors import UserError
from synthbench.worlds.sandbox.llm import MODEL, LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers, digest
from synthbench.worlds.sandbox.llm.faults import ServiceFault, ServiceFaults, Trouble
from synthbench.worlds.sandbox.llm.requests import (
    RequestError,
    completion,
    error_body,
    model,
    models,
    read_request,
    unknown_model,
)

_COUNTED = ("requests", "prompt_tokens", "completion_tokens", "total_tokens")


class Usage:
    """Counts requests by outcome, and tokens; thread-safe.

    An answer is billed when it is made, even if it does not arrive: `dropped` answers are billed, too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._billed = {outcome: Counter(dict.fromkeys(_COUNTED, 0)) for outcome in ("answered", "dropped")}
        self._turned_away: Counter[str] = Counter()

    def bill(self, tokens: Mapping[str, int], *, is_dropped: bool = False) -> None:
        """Count an answer and the tokens in its `usage`."""
        with self._lock:
            self._billed["dropped" if is_dropped else "answered"].update({"requests": 1, **tokens})

    def turn_away(self, status: int) -> None:
        """Count a request that got an error, which costs nothing."""
        with self._lock:
            self._turned_away[str(status)] += 1

    def report(self) -> dict[str, Any]:
        """Return the JSON of GET /v1/usage."""
        with self._lock:
            billed = {outcome: dict(counts) for outcome, counts in self._billed.items()}
            return {**billed, "turned_away": dict(self._turned_away)}


COMPLETIONS = "/v1/chat/completions"
MODELS = "/v1/models"
USAGE = "/v1/usage"
REQUEST_ID = "X-Client-Request-Id"
MAX_BODY = 8 * 1024 * 1024


class LLMServer(ThreadingHTTPServer):
    """A server that listens once constructed; `log` gets one line per request, without its content.

    Raises UserError if it can't listen on the address.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, settings: LLMSettings, host: str, port: int, log: TextIO | None = None) -> None:
        self.settings = settings
        self.faults = ServiceFaults(settings)
        self.usage = Usage()
        self.log = log
        try:
            super().__init__((host, port), _Handler)
        except OSError as error:
            raise UserError(_why_not(host, port, error)) from error

    @property
    def base_url(self) -> str:
        """The base URL for clients."""
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def write_log(self, line: str) -> None:
        """Write one line to the log."""
        if self.log is not None:
            self.log.write(line + "\n")
            self.log.flush()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Print the error of a request, unless the client disconnected or timed out."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: LLMServer
    protocol_version = "HTTP/1.1"
    server_version = "synthbench-sandbox"
    sys_version = ""
    wbufsize = -1
    disable_nagle_algorithm = True
    timeout = 120

    def do_GET(self) -> None:
        path = self._path
        if path == MODELS:
            self._send(200, models(), "models")
        elif path == USAGE:
            self._send(200, self.server.usage.report(), "usage")
        elif path.startswith(MODELS + "/"):
            name = path.removeprefix(MODELS + "/")
            found = name == MODEL
            self._send(200 if found else 404, model() if found else unknown_model(name).body, "models")
        else:
            self._send_wrong_path()

    def do_POST(self) -> None:
        try:
            raw = self._body()
        except RequestError as error:
            self.close_connection = True
            self._send(error.status, error.body, "invalid")
            return
        if self._path != COMPLETIONS:
            self._send_wrong_path()
            return
        try:
            self._complete(raw)
        except RequestError as error:
            self.server.usage.turn_away(error.status)
            self._send(error.status, error.body, "invalid")
        except ConnectionError:
            raise
        except Exception:  # noqa: BLE001 - a bug of ours must not look like a dropped connection
            traceback.print_exc(file=sys.stderr)
            self._send(500, error_body(500, "The server has a bug; its log says more."), "bug")

    def _complete(self, raw: bytes) -> None:
        request = read_request(raw)
        settings = self.server.settings
        identity = digest(request.content)
        trouble = self.server.faults.on_arrival(identity)
        time.sleep(settings.latency)
        is_dropped = trouble is not None and trouble.fault is ServiceFault.DROPPED
        if trouble is not None and not is_dropped:
            self._turn_away(trouble)
            return
        answers = Answers(settings, request.content)
        num_choices = request.n or 1
        texts = [answers.choice(index) for index in range(num_choices)]
        beliefs = [answers.beliefs(index) for index in range(num_choices)] if request.logprobs else ()
        body = completion(request, texts, identity, int(time.time()), beliefs)
        self.server.usage.bill(body["usage"], is_dropped=is_dropped)
        if is_dropped:
            self._drop()
        else:
            self._send(200, body, answers.summary(num_choices))

    def _drop(self) -> None:
        self._log("- dropped")
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _turn_away(self, trouble: Trouble) -> None:
        if trouble.fault is ServiceFault.RATE_LIMITED:
            message = f"Rate limit reached; please try again in {trouble.retry_after} s."
            status, body = 429, error_body(429, message, code="rate_limit_exceeded")
            headers = {"Retry-After": str(trouble.retry_after)}
        else:
            status, body = 500, error_body(500, "The server had an error while processing your request.")
            headers = {}
        self.server.usage.turn_away(status)
        self._send(status, body, trouble.fault, headers)

    def _send_wrong_path(self) -> None:
        if self._path in (COMPLETIONS, MODELS, USAGE):
            allowed = "POST" if self._path == COMPLETIONS else "GET"
            message = f"Not allowed to {self.command} on {self._path}; use {allowed}."
            self._send(405, error_body(405, message, code="method_not_allowed"), "invalid")
        else:
            message = (
                f"Unknown request URL: {self.command} {self._path}; there are {COMPLETIONS}, {MODELS}"
                f" and {USAGE}."
            )
            self._send(404, error_body(404, message, code="unknown_url"), "invalid")

    def _log(self, what: str) -> None:
        """Log a request's outcome, with the request id that the client sent, if it is valid."""
        headers = getattr(self, "headers", None) or {}
        known = re.fullmatch(r"[\w.:-]{1,128}", headers.get(REQUEST_ID, ""), re.ASCII)
        self.server.write_log(f"{self.command} {self._path} {what}" + (f" {known[0]}" if known else ""))

    @property
    def _path(self) -> str:
        return unquote(urlsplit(self.path).path).rstrip("/")

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length")
        if length is None or not length.isdecimal():
            raise RequestError(411, "The request needs a Content-Length.")
        if int(length) > MAX_BODY:
            raise RequestError(413, f"The body is larger than {MAX_BODY} bytes.")
        return self.rfile.read(int(length))

    def _send(
        self, status: int, body: dict[str, Any], what: str, headers: dict[str, str] | None = None
    ) -> None:
        # Log first, so that a client with the response can rely on the line.
        self._log(f"{status} {what}")
        content = json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer requests that are not valid HTTP with an error in OpenAI's format."""
        self.close_connection = True
        self.command = getattr(self, "command", None) or "-"
        self.path = getattr(self, "path", "-")
        self._send(code, error_body(code, message or "Bad request."), "invalid")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: ANN401
        """Do nothing: `_send` logs each response."""


def _why_not(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken; give another with --port, or --port 0 for any that is free"
    if error.errno == errno.EACCES:
        return f"port {port} is not yours to listen on; give one above 1023, or --port 0 for any that is free"
    return f"can't listen on {host}: {error}; --host 127.0.0.1 is this machine alone"
