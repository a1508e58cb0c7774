"""Check the services that a run may ask: the LLM's endpoint and the tracking server."""

import base64
import json
import os
import shutil
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

from synthbench.diagnosis.machine import Finding, Level, fine, note, problem
from synthbench.tracking.outbox import Kept
from synthbench.tracking.redaction import mask_password_of

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from typing import IO
    from urllib.request import Request

SECONDS = 3.0
MOST_BYTES = 10_000_000
MASK = "***"


class UnreachableError(Exception):
    """The server could not be asked; the message says why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status code and body of an answer."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Address:
    """A URL without user and password, and what `Authorization` these make; `shown` is fit to print."""

    url: str
    shown: str
    authorization: str

    @classmethod
    def of(cls, text: str) -> "Address":
        """Take a URL of http or https apart; raises UnreachableError if it is none."""
        try:
            parts = urlsplit(text.strip())
            host, _ = parts.hostname, parts.port
        except ValueError:
            raise UnreachableError("is no valid URL") from None
        if parts.scheme not in ("http", "https") or not host:
            raise UnreachableError("is no URL that begins with http:// or https://")
        userinfo, _, host = parts.netloc.rpartition("@")
        bare = SplitResult(parts.scheme, host, parts.path.rstrip("/"), "", "")
        mask = f"{MASK}@" if userinfo else ""
        authorization = basic(*map(unquote, userinfo.partition(":")[::2])) if userinfo else ""
        return cls(urlunsplit(bare), urlunsplit(bare._replace(netloc=mask + host)), authorization)


def basic(user: str, password: str) -> str:
    """Return the value of `Authorization` for a user and password."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def get(url: str, authorization: str) -> Answer:
    """Return the answer to a GET, whatever its status; redirections are not followed.

    Raises UnreachableError if there is none within `SECONDS`, however slowly it trickles.
    """
    headers = {"Accept": "application/json", **({"Authorization": authorization} if authorization else {})}
    outcome: list[Answer | UnreachableError] = []
    thread = Thread(target=lambda: outcome.append(_ask(url, headers)), daemon=True)
    thread.start()
    thread.join(SECONDS)
    found = outcome[0] if outcome else UnreachableError(f"does not answer within {SECONDS:g} s")
    if isinstance(found, UnreachableError):
        raise found
    return found


def _ask(url: str, headers: Mapping[str, str]) -> Answer | UnreachableError:
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class Unredirected(HTTPRedirectHandler):
        def redirect_request(
            self, req: "Request", fp: "IO[bytes]", code: int, msg: str, headers: "HTTPMessage", newurl: str
        ) -> None:
            """Follow nobody: the headers hold a secret."""

    try:
        with build_opener(Unredirected).open(Request(url, headers=dict(headers)), timeout=SECONDS) as answer:
            return Answer(answer.status, answer.read(MOST_BYTES))
    except HTTPError as error:
        return Answer(error.code, b"")
    except TimeoutError:
        return UnreachableError(f"does not answer within {SECONDS:g} s")
    except URLError as error:
        reason = error.reason
        return UnreachableError(f"can't be reached ({getattr(reason, 'strerror', None) or reason})")
    except HTTPException:
        return UnreachableError("does not speak HTTP")
    except (OSError, ValueError) as error:
        # Of a ValueError nothing is repeated: it may quote a header.
        reason = (isinstance(error, OSError) and error.strerror) or "the request can't be sent"
        return UnreachableError(f"can't be reached ({reason})")


ENDPOINT, TRACKING = "endpoint", "tracking"
REFUSED = (401, 403)
EXPERIMENTS = "/api/2.0/mlflow/experiments/search?max_results=1"


def endpoint() -> Finding:
    """Ask the configured LLM endpoint for its models; without OPENAI_BASE_URL nobody is asked."""
    base, key = os.environ.get("OPENAI_BASE_URL", ""), os.environ.get("OPENAI_API_KEY", "")
    if key.strip() != key or not (key.isascii() and key.isprintable()):
        return problem(
            ENDPOINT,
            "OPENAI_API_KEY holds white space or letters that no key has",
            "set it anew, as it was issued",
        )
    has_key = "OPENAI_API_KEY is set" if key else "OPENAI_API_KEY is not set"
    if not base:
        advice = (
            "experiments name their LLM themselves (`llm:`); to have one tried here set OPENAI_BASE_URL to"
            " its address (such as http://localhost:8000/v1)"
        )
        return note(ENDPOINT, f"OPENAI_BASE_URL is not set, {has_key}; nobody was contacted", advice)
    try:
        address = Address.of(base)
    except UnreachableError as error:
        return problem(ENDPOINT, f"OPENAI_BASE_URL {error}", "set it as in http://localhost:8000/v1")
    try:
        answer = get(f"{address.url}/models", f"Bearer {key}" if key else address.authorization)
    except UnreachableError as error:
        return problem(ENDPOINT, f"{address.shown} {error}", "start the server, or set OPENAI_BASE_URL anew")
    return _models(address.shown, answer.status, answer.body, has_key)


def tracking(home: Path) -> Finding:
    """Try the tracking server or database, and count the results that wait for it.

    Other stores than these are left to MLflow.
    """
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    found, waits = _tracking(home, uri), Kept(home, uri)
    number = len(waits.waiting()) if uri else 0
    if not number:
        return found
    told = f"{found.text}; results that wait in {waits.folder}: {number}"
    if found.level is Level.PROBLEM:
        return replace(found, text=told)
    advice = "the next run, report or dashboard records them; of one that stays run the experiment again"
    return note(TRACKING, told, advice)


def _tracking(home: Path, uri: str) -> Finding:
    if not uri:
        return _database(home / "mlflow.db", "")
    if uri.startswith(("http://", "https://")):
        return _server(uri)
    if uri.startswith("sqlite:///"):
        return _database(Path(uri.removeprefix("sqlite:///")), " (MLFLOW_TRACKING_URI)")
    return note(
        TRACKING, f"{_shown(uri)} was not tried", "nothing: a run tries it before anything is computed"
    )


def latex() -> Finding:
    """Look for pdflatex."""
    found = shutil.which("pdflatex")
    if found:
        return fine("LaTeX", found)
    return note(
        "LaTeX", "pdflatex is not installed", "nothing, unless table.tex is to be typeset on this machine"
    )


def _models(shown: str, status: int, body: bytes, has_key: str) -> Finding:
    if status in REFUSED:
        return problem(
            ENDPOINT, f"{shown} refuses access ({status}); {has_key}", "set the right OPENAI_API_KEY"
        )
    try:
        models = [str(model["id"]) for model in json.loads(body)["data"]] if status == 200 else None
    except (ValueError, TypeError, KeyError):
        models = None
    if models is None:
        return problem(
            ENDPOINT,
            f"{shown}/models gives no list of models ({status})",
            "mend OPENAI_BASE_URL: mostly it ends in /v1",
        )
    return fine(ENDPOINT, f"{shown} answers, {len(models)} models; {has_key}")


def _server(uri: str) -> Finding:
    advice = "start the server, mend MLFLOW_TRACKING_URI, or unset it"
    try:
        address = Address.of(uri)
    except UnreachableError as error:
        return problem(TRACKING, f"MLFLOW_TRACKING_URI {error}", advice)
    try:
        status = get(address.url + EXPERIMENTS, _authorization(address)).status
    except UnreachableError as error:
        return problem(TRACKING, f"{address.shown} {error}", advice)
    if status in REFUSED:
        mended = "set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN"
        return problem(TRACKING, f"{address.shown} refuses access ({status})", mended)
    if status != 200:
        return problem(TRACKING, f"{address.shown} is no MLflow server ({status})", advice)
    return fine(TRACKING, f"{address.shown} answers")


def _authorization(address: Address) -> str:
    """Return what MLflow's own client would send."""
    user, password, token = (
        os.environ.get(f"MLFLOW_TRACKING_{name}", "") for name in ("USERNAME", "PASSWORD", "TOKEN")
    )
    if user and password:
        return basic(user, password)
    return f"Bearer {token}" if token else address.authorization


def _database(file: Path, origin: str) -> Finding:
    if not file.exists():
        return fine(TRACKING, f"{file}{origin} is made by the first run")
    advice = "move it away, and run again: the next run makes a new one"
    try:
        connection = sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)
        try:
            (count,) = connection.execute("select count(*) from experiments").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        return problem(TRACKING, f"{file}{origin} can't be read: {error}", advice)
    if not os.access(file, os.W_OK):
        return problem(TRACKING, f"{file}{origin} can't be written to", "change its permissions")
    return fine(TRACKING, f"{file}{origin}, experiments: {count}")


def _shown(uri: str) -> str:
    """Return a URI without user, password and query."""
    scheme, found, rest = uri.partition("://")
    if not found:
        return mask_password_of(uri, uri)
    return f"{scheme}://{'***@' if '@' in rest else ''}{rest.rpartition('@')[2].partition('?')[0]}"
