"""Asking a server one question, within a few seconds, without giving secrets to anybody else."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

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
        userinfo, _, place = parts.netloc.rpartition("@")
        bare = SplitResult(parts.scheme, place, parts.path.rstrip("/"), "", "")
        mask = f"{MASK}@" if userinfo else ""
        authorization = basic(*map(unquote, userinfo.partition(":")[::2])) if userinfo else ""
        return cls(urlunsplit(bare), urlunsplit(bare._replace(netloc=mask + place)), authorization)


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
