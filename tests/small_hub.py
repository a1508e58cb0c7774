"""A hub on loopback that takes repositories: the few endpoints that an upload of small files needs."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

import pytest
from loopback import serving

TOKEN = "hf_" + "x" * 34
REVISION = "c0ffee" + "0" * 34


@dataclass
class SmallHub:
    """The hub's repositories by "models/owner/name", with visibility and files.

    `refuses` is a status that it gives to whoever wants to write.
    """

    address: str = ""
    repositories: dict[str, dict[str, Any]] = field(default_factory=dict)
    refuses: int = 0
    asked: list[str] = field(default_factory=list)


@contextmanager
def small_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallHub]:
    """Start a hub that this process takes for the real one, with a token for it."""
    from huggingface_hub import constants

    hub = SmallHub()

    class Handler(_Handler):
        of = hub

    with serving(Handler) as hub.address:
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield hub


class _Handler(BaseHTTPRequestHandler):
    of: SmallHub

    def log_message(self, format: str, *args: object) -> None:
        """Be silent."""

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.of.asked.append(f"GET {path}")
        found = self.of.repositories.get(path.removeprefix("/api/"))
        if found is None:
            self._send(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
        else:
            self._send(200, {"id": path.removeprefix("/api/models/"), "private": found["private"]})

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        self.of.asked.append(f"POST {path}")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert self.headers["Authorization"] == f"Bearer {TOKEN}"
        if self.of.refuses:
            self._send(self.of.refuses, {"error": "You may not write here"})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif path == "/api/validate-yaml":
            self._send(200, {"errors": [], "warnings": []})
        elif "/preupload/" in path:
            files = json.loads(body)["files"]
            regular = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            self._send(200, {"files": [{"path": each["path"], **regular} for each in files]})
        else:
            self._commit(path, [json.loads(line) for line in body.splitlines()])

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted.get('type') or 'model'}s/{wanted['organization']}/{wanted['name']}"
        is_private = wanted.get("visibility") == "private" or wanted.get("private") is True
        known = self.of.repositories.setdefault(name, {"private": is_private, "files": {}})
        kind, _, rest = name.partition("/")
        address = f"{self.of.address}/{'' if kind == 'models' else kind + '/'}{rest}"
        self._send(200, {"url": address, "private": known["private"]})

    def _commit(self, path: str, lines: list[dict[str, Any]]) -> None:
        name = path.removeprefix("/api/").partition("/commit/")[0]
        files = self.of.repositories[name]["files"]
        for line in lines:
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        address = f"{self.of.address}/{name}/commit/{REVISION}"
        self._send(200, {"commitUrl": address, "commitOid": REVISION, "success": True})

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
