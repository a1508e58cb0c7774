"""Messages for an unusable shared store: one line, without secrets."""

import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from obstore.store import LocalStore
from s3 import SECRET, log_in
from wording import refused

from synthbench.engine import cloud_objects
from synthbench.engine.cloud_objects import CloudObjects
from synthbench.engine.patience import Objects
from synthbench.engine.stores import LEASE_VARIABLE, VARIABLE, existing_store, open_store

URL = "s3://laboratory/path"
REQUESTS: dict[str, Callable[[Objects], Any]] = {
    "create": lambda objects: objects.create("key", b"content"),
    "write": lambda objects: objects.write("key", b"content"),
    "list": lambda objects: list(objects.list("prefix/")),
}


class Refusing(BaseHTTPRequestHandler):
    """Answers every request with one status and the code that S3 gives with it."""

    status, code = 403, "AccessDenied"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = f"<Error><Code>{self.code}</Code><Message>of {SECRET}</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815 - the names that the server calls

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Refusing]]:
    """A server whose answer tests set."""

    class Handler(Refusing):
        pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    log_in(monkeypatch, f"http://127.0.0.1:{httpd.server_port}")
    yield Handler
    httpd.shutdown()
    httpd.server_close()


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
@pytest.mark.parametrize(
    ("status", "code", "facts"),
    [
        (403, "AccessDenied", ("access was refused (AccessDenied)", "reading, writing and deleting")),
        (401, "InvalidAccessKeyId", ("credentials are wrong", "AWS_ACCESS_KEY_ID")),
        (404, "NoSuchBucket", ("there is no such bucket",)),
    ],
)
def test_a_bucket_that_refuses_is_reported_in_one_line_without_secrets(
    server: type[Refusing],
    status: int,
    code: str,
    facts: tuple[str, ...],
    request_of: Callable[[Objects], Any],
) -> None:
    server.status, server.code = status, code
    with refused(URL, *facts) as caught:
        request_of(CloudObjects(URL))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("request_of", REQUESTS.values(), ids=REQUESTS)
def test_the_missing_extra_is_named_with_its_command(
    request_of: Callable[[Objects], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("obstore", "obstore.store", "obstore.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    with refused(URL, "pip install 'synthbench[store]'"):
        request_of(CloudObjects(URL))


def test_an_unreachable_server_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    log_in(monkeypatch, "http://127.0.0.1:9")
    monkeypatch.setattr(cloud_objects, "RETRIES", 0)
    with refused(URL, "can't be reached", "AWS_ENDPOINT_URL"):
        CloudObjects(URL).write("key", b"content")


def test_missing_credentials_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The account of an Azure store is looked for before anything is sent."""
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with refused("az://laboratory/path", "no credentials", "AZURE_STORAGE_ACCOUNT_NAME"):
        CloudObjects("az://laboratory/path").write("key", b"content")


@pytest.mark.parametrize(
    ("variable", "value", "facts"),
    [
        (VARIABLE, "ftp://host/path", ("s3://BUCKET/PATH", "without credentials")),
        (VARIABLE, f"s3://somebody:{SECRET}@bucket/path", ("without credentials",)),
        (VARIABLE, "/there/is/none", ("/there/is/none", "no such folder")),
        (LEASE_VARIABLE, "soon", ("soon", "seconds above 0")),
    ],
)
def test_invalid_settings_are_refused(
    variable: str, value: str, facts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv(variable, value)
    with refused(*facts) as caught:
        open_store()
    assert SECRET not in str(caught.value)


def test_a_store_that_an_argument_names_is_not_refused_as_a_setting() -> None:
    with refused("s3://BUCKET/PATH", "without credentials") as caught:
        existing_store(f"ftp://{SECRET}@host/path")
    assert VARIABLE not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_missing_object_keeps_no_other_from_being_deleted(tmp_path: Path) -> None:
    """A folder of obstore stops at the first missing object, as Google's cloud does."""
    objects = CloudObjects("gs://laboratory/path")
    vars(objects)["_store"] = LocalStore(str(tmp_path))
    for key in ("first", "last"):
        objects.write(key, b"content")
    objects.delete(["gone", "first", "last"])
    assert list(objects.list("")) == []
