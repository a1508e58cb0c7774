"""A proxy before an S3 server that does to requests what networks and busy servers do.

    with s3_server() as address, faulty_s3(address) as faults:
        log_in(monkeypatch, faults.address)

Nothing is faulty at first. Two ways to ask for faults, which may be mixed:

    faults.next("PUT", "artifacts/", "503", "503", "lost")   # scripted: of the next such requests, in order
    faults.seeded(7, share=0.2, most_in_a_row=3)             # drawn: the same seed, the same faults

Scripted faults come first. A request fits if its method is the one named ("" is any) and its path holds the
text. Drawn faults are decided by the seed, the method, the first part of the key (`artifacts`, `leases` ...)
and how many such requests came before, so threads change which request of a kind is hit, never how many.
After `most_in_a_row` faulty requests of a kind the next one passes: whoever asks often enough gets through.

| fault | the request reaches the server | what the client sees |
| --- | --- | --- |
| `500`, `503` | no | the status, with S3's code |
| `409` | no | ConditionalRequestConflict, as S3 says while requests on one key compete |
| `closed` | no | the connection is closed without a reply |
| `stalled` | no | nothing for `stall_seconds`, then the connection is closed |
| `lost` | yes | the connection is closed without a reply: it was done, and nobody knows |
| `truncated` | yes | half of the reply's body, then the connection is closed |
| `short` | yes | half of the body as if it were the whole: only a checksum tells |
| `expired` | no | 400 ExpiredToken, as with credentials whose time is over; not among the drawn `KINDS` |

`faults.valid_key` names the one access key whose requests pass; the others meet `expired`.

`faults.down("503")` lets every request fail until `faults.up()`. `faults.log` lists each request as
(method, path, fault), "" where it passed. Fixtures set `most_in_a_row` below what the client tries; give the
client a clock of the test's own (`Patience`), so that minutes of waiting take no time.
"""

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

CODES = {"500": "InternalError", "503": "SlowDown", "409": "ConditionalRequestConflict"}
EXPIRED = "expired"
KINDS = (*CODES, "closed", "stalled", "lost", "truncated", "short")
NOT_PASSED_ON = {"connection", "transfer-encoding", "content-length", "keep-alive"}


@dataclass
class Faults:
    """The faults to inject; may be changed between requests."""

    address: str = ""
    stall_seconds: float = 0.2
    valid_key: str = ""
    keys: list[str] = field(default_factory=list)
    """The access key of each request."""
    log: list[tuple[str, str, str]] = field(default_factory=list)
    _scripts: list[tuple[str, str, list[str]]] = field(default_factory=list)
    _down: str = ""
    _seed: int | None = None
    _share: float = 0.0
    _kinds: Sequence[str] = ()
    _most_in_a_row: int = 0
    _seen: Counter[str] = field(default_factory=Counter)
    _in_a_row: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, method: str, text: str, *kinds: str) -> None:
        """Let the next requests with this method and this text in their path fail, in this order."""
        assert set(kinds) <= {*KINDS, EXPIRED, ""}, kinds
        with self._lock:
            self._scripts.append((method, text, list(kinds)))

    def seeded(self, seed: int, share: float, kinds: Sequence[str] = KINDS, most_in_a_row: int = 3) -> None:
        """Let a share of all requests fail from here on, with faults drawn from `kinds`."""
        with self._lock:
            self._seed, self._share, self._kinds = seed, share, tuple(kinds)
            self._most_in_a_row = most_in_a_row

    def down(self, kind: str = "503") -> None:
        """Let every request fail."""
        self._down = kind

    def up(self) -> None:
        """Let everything pass from here on: no outage, no script, no drawn faults."""
        with self._lock:
            self._down, self._seed, self.valid_key = "", None, ""
            self._scripts.clear()

    def counts(self) -> Counter[str]:
        """Return how many requests met each fault, "" those that passed."""
        return Counter(fault for _, _, fault in self.log)

    def decide(self, method: str, path: str, key: str = "") -> str:
        """Return the fault that a request meets, "" if it passes."""
        with self._lock:
            self.keys.append(key)
            if self.valid_key not in ("", key):
                self.log.append((method, path, EXPIRED))
                return EXPIRED
            fault = self._scripted(method, path)
            if fault is None:
                fault = self._down or self._drawn(method, path)
            self.log.append((method, path, fault))
            return fault

    def _scripted(self, method: str, path: str) -> str | None:
        for wanted, text, kinds in self._scripts:
            if kinds and wanted in ("", method) and text in path:
                return kinds.pop(0)
        return None

    def _drawn(self, method: str, path: str) -> str:
        if self._seed is None:
            return ""
        sort = f"{method} {_part(path)}"
        self._seen[sort] += 1
        draw = random.Random(f"{self._seed} {sort} {self._seen[sort]}")
        if draw.random() >= self._share or self._in_a_row[sort] >= self._most_in_a_row:
            self._in_a_row[sort] = 0
            return ""
        self._in_a_row[sort] += 1
        return draw.choice(self._kinds)


def _part(path: str) -> str:
    """Return the first part of the key in a path, or of the prefix that is listed."""
    found = [
        part
        for part in ("artifacts", "attempts", "unfinished", "leases", "addresses", "used")
        if part in path
    ]
    return found[0] if found else "other"


@contextmanager
def faulty_s3(upstream: str) -> Iterator[Faults]:
    """Run the proxy before the server at this address; yield its faults, with its own address."""
    faults = Faults()
    target = urlsplit(upstream).netloc

    class Handler(_Proxy):
        pass

    Handler.faults, Handler.target = faults, target
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    faults.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield faults
    finally:
        server.shutdown()
        server.server_close()


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    faults: Faults
    target: str

    def _answer(self) -> None:
        content = self._content()
        _, _, signed = self.headers.get("Authorization", "").partition("Credential=")
        fault = self.faults.decide(self.command, self.path, signed.partition("/")[0])
        if fault in CODES:
            self._refuse(int(fault), CODES[fault])
            return
        if fault == EXPIRED:
            self._refuse(400, "ExpiredToken")
            return
        if fault in ("closed", "stalled"):
            if fault == "stalled":
                threading.Event().wait(self.faults.stall_seconds)
            self._hang_up()
            return
        status, headers, body = self._passed_on(content)
        if fault == "lost":
            self._hang_up()
        elif fault == "truncated":
            self._send(status, headers, body[: len(body) // 2], said=len(body))
            self._hang_up()
        else:
            self._send(status, headers, body[: len(body) // 2] if fault == "short" else body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _answer  # noqa: N815 - the names that the server calls

    def _content(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _passed_on(self, content: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(self.target)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "connection"}
        connection.request(self.command, self.path, content or None, headers)
        reply: HTTPResponse = connection.getresponse()
        body = reply.read()
        kept = [(name, value) for name, value in reply.getheaders() if name.lower() not in NOT_PASSED_ON]
        if self.command == "HEAD":
            kept += [("Content-Length", reply.headers.get("Content-Length", "0"))]
        connection.close()
        return reply.status, kept, body

    def _refuse(self, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>try again</Message></Error>".encode()
        self._send(status, [("Content-Type", "application/xml")], body)

    def _send(
        self, status: int, headers: list[tuple[str, str]], body: bytes, said: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD" and status != 204:
            self.send_header("Content-Length", str(len(body) if said is None else said))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def _hang_up(self) -> None:
        self.close_connection = True
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Print nothing."""
