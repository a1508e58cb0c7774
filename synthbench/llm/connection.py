"""One attempt at one request, through the `openai` package's transport, and what its failure means."""

import asyncio
import json
import math
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from ssl import SSLError
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synthbench.errors import UserError
from synthbench.llm.cache import Answer
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import (
    ENCODINGS,
    LARGEST,
    NOT_UNICODE,
    Reply,
    UnreadableReplyError,
    as_printable_line,
    read_reply,
    read_whole,
)
from synthbench.llm.requests import ChatRequest

if TYPE_CHECKING:
    from httpx2 import URL, Response


def seconds_asked_for(headers: Mapping[str, str]) -> float | None:
    """Return what Retry-After (RFC 9110, section 10.2.3) or retry-after-ms says, None if that is unusable."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, OverflowError):
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())


SECONDS_TO_CONNECT = 10.0
FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
TRIES_OF_UNLIKELY = 4
"""Most attempts where nobody listens, or something else than the API answers."""
CONTENT_FILTER = "content filter"
MOST_REDIRECTS = 3
LONGEST_WAIT = 3600.0
"""A service that asks to wait longer, in seconds, is asked again by another run."""
REQUEST_ID = "X-Client-Request-Id"
_CAN_PASS = (408, 409, 425, 429)
_LONGEST_SAID = 200
_PAST_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")


class Kind(Enum):
    """What a failed attempt means for the next."""

    BUSY = "the service turned it away for now"
    LOST = "it may have been answered, and paid, but no answer came"
    UNREADABLE = "an answer came, but not the API's"
    TOO_LARGE = "an answer came that no model can have written"
    PAGE = "a web page came, of somebody in between"
    UNREACHABLE = "nobody was there"
    REFUSED = "it will never be answered"


@dataclass
class FailedAttemptError(Exception):
    """An attempt without an answer; `retry_after` is what the service asked to wait, in seconds."""

    kind: Kind
    reason: str
    retry_after: float | None = None

    @property
    def is_in_doubt(self) -> bool:
        """Whether it may have been paid."""
        return self.kind in (Kind.LOST, Kind.UNREADABLE, Kind.TOO_LARGE, Kind.PAGE)

    @property
    def is_bought(self) -> bool:
        """Whether the service replied as to a request that it bills: asked again, it would bill it again."""
        return self.kind in (Kind.UNREADABLE, Kind.TOO_LARGE)

    def can_pass(self, num_tries: int, most: int) -> bool:
        """Tell whether another attempt makes sense after so many."""
        if self.kind in (Kind.REFUSED, Kind.TOO_LARGE) or (self.retry_after or 0) > LONGEST_WAIT:
            return False
        if self.kind in (Kind.UNREACHABLE, Kind.UNREADABLE, Kind.PAGE):
            most = min(most, TRIES_OF_UNLIKELY)
        return num_tries < most

    def pause(self, num_tries: int) -> float:
        """Return the seconds to wait before the next attempt: never less than asked for, and no two alike.

        They grow whatever is asked for: services that are overrun may ask for none.
        """
        backoff: float = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (num_tries - 1))
        jittered = backoff * random.uniform(0.5, 1.0)
        if self.retry_after is None:
            return jittered
        return max(jittered, self.retry_after + random.uniform(0, FIRST_BACKOFF))


class Connection:
    """Asks an endpoint, once for each call; retries are others' business.

    Raises UserError if the environment variable of the key is not set.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        from httpx2 import Limits, Timeout
        from openai import AsyncOpenAI, DefaultAioHttpClient

        self._endpoint = endpoint
        self._refusals = Refusals(endpoint)
        seconds, most = endpoint.pacing.timeout, endpoint.pacing.concurrency
        timeout = Timeout(seconds, connect=min(seconds, SECONDS_TO_CONNECT))
        limits = Limits(max_connections=most, max_keepalive_connections=most)
        self._http = DefaultAioHttpClient(limits=limits, timeout=timeout, follow_redirects=False)
        client = AsyncOpenAI(
            base_url=endpoint.base_url, api_key=self._refusals.key or "none", http_client=self._http
        )
        self._base_url = str(client.base_url).rstrip("/")
        headers = {**client.default_headers, **client.auth_headers, "Accept-Encoding": ENCODINGS}
        self._headers = {name: value for name, value in headers.items() if isinstance(value, str)}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; a service's log has the attempt's name, as OpenAI's X-Client-Request-Id.

        Raises FailedAttemptError, or UserError if no request to this endpoint can succeed.
        """
        try:
            body = json.dumps(body_of(self._endpoint, request), ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise FailedAttemptError(Kind.REFUSED, NOT_UNICODE) from None
        reply = await self._reply("POST", "/chat/completions", body, {REQUEST_ID: attempt})
        if not 200 <= reply.status < 300:
            raise self._refusals.of(reply)
        if not reply.is_whole:
            raise FailedAttemptError(Kind.TOO_LARGE, f"an answer of more than {LARGEST // 2**20} MiB")
        try:
            return read_reply(request, reply)
        except UnreadableReplyError as error:
            kind = Kind.PAGE if reply.is_page else Kind.UNREADABLE
            raise self._refusals.within(reply) or FailedAttemptError(kind, str(error)) from None

    async def look_up(self, path: str) -> Reply:
        """Return what a GET brings, whatever its status; raises FailedAttemptError if that is nothing."""
        return await self._reply("GET", path, b"", {})

    async def _reply(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Return what comes; raises FailedAttemptError if nothing does."""
        from aiohttp import ClientError
        from httpx2 import HTTPError

        try:
            async with asyncio.timeout(self._endpoint.pacing.timeout):
                return await self._redirected(method, path, body, {**self._headers, **headers})
        except (HTTPError, ClientError, SSLError) as error:
            raise self._without_answer(error) from None
        except TimeoutError:
            raise FailedAttemptError(Kind.LOST, self._too_late()) from None
        except ValueError:
            raise FailedAttemptError(Kind.LOST, "something else than HTTP came") from None

    async def _redirected(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Return what comes in the end; redirects are followed within the same server."""
        from httpx2 import URL

        url = URL(self._base_url + path)
        for _ in range(MOST_REDIRECTS + 1):
            # `AsyncOpenAI.post` comes to the same without retries, for half as much CPU again.
            async with self._http.stream(method, url, content=body, headers=headers) as response:
                if not response.has_redirect_location:
                    return await read_whole(response)
                url = self._target(response)
        raise endpoint_error(
            self._endpoint, "redirects in circles; write the address where it is in llm.base_url"
        )

    def _target(self, response: "Response") -> "URL":
        """Return where a redirect leads; raises UserError if that is another server's."""
        from httpx2 import InvalidURL

        try:
            url = response.url.join(response.headers["location"])
        except InvalidURL:
            raise FailedAttemptError(Kind.REFUSED, "a redirect to no address") from None
        if (url.scheme, url.host, url.port) == (response.url.scheme, response.url.host, response.url.port):
            return url
        raise self._refusals.redirected(url)

    def _without_answer(self, error: Exception) -> FailedAttemptError:
        from aiohttp import ClientConnectorError, ConnectionTimeoutError

        # httpx2 calls a connection that broke later a failure to connect, too: only the transport knows.
        for cause in causes(error):
            if isinstance(cause, ClientConnectorError | ConnectionTimeoutError):
                reason = self._refusals.without_key(_in_the_systems_words(cause))
                return FailedAttemptError(Kind.UNREACHABLE, reason)
            if isinstance(cause, TimeoutError):
                return FailedAttemptError(Kind.LOST, self._too_late())
        return FailedAttemptError(Kind.LOST, "the connection ended without an answer")

    def _too_late(self) -> str:
        return f"no answer within {self._endpoint.pacing.timeout:g} s"


class Refusals:
    """What it means that an endpoint turned a request away; `key` is the endpoint's, and appears in no text.

    Raises UserError if the environment variable of the key is not set.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.key = _key(endpoint)

    def of(self, reply: Reply) -> FailedAttemptError | UserError:
        """Return the meaning of a reply that is none of success."""
        error = _error_in(reply)
        code = error.get("code") if isinstance(error, dict) else None
        pause = seconds_asked_for(reply.headers)
        return self.turned_away(reply.status, code if isinstance(code, str) else "", self.said(reply), pause)

    def redirected(self, url: "URL") -> UserError:
        """Return the error of a redirect to a server that was not asked, and that would get it all."""
        address = str(url.copy_with(query=None, fragment=None, userinfo=b""))
        shown = as_printable_line(self.without_key(address))[:_LONGEST_SAID]
        return self._error(
            f"redirects to {shown}, which was not asked; if that is the right server, write its address in"
            " llm.base_url"
        )

    def within(self, reply: Reply) -> FailedAttemptError | UserError | None:
        """Return the meaning of an error that has the status of success, None if the reply holds none."""
        error = _error_in(reply)
        if not isinstance(error, dict) or error is reply.value:
            return None
        code = error.get("code")
        status = code if type(code) is int and 400 <= code < 600 else 500
        return self.turned_away(status, code if isinstance(code, str) else "", self.said(reply))

    def turned_away(
        self, status: int, code: str, said: str, retry_after: float | None = None
    ) -> FailedAttemptError | UserError:
        """Return the meaning of a status and what was said; a UserError if no request can succeed."""
        said = self.without_key(said)[:_LONGEST_SAID]
        if status == 401:
            # What was said may repeat the key, or parts of it.
            return self._error(f"does not accept the key (HTTP 401); {self._where_the_key_is()}")
        if status == 403:
            return self._error(f"lets nobody in with this key (HTTP 403: {said}); {self._where_the_key_is()}")
        if status == 404:
            return self._error(f"has no model '{self._endpoint.model}', or is elsewhere (HTTP 404: {said})")
        if code in _PAST_QUOTA:
            return self._error(f"has no money left for this key (HTTP {status}: {said})")
        if status in _CAN_PASS or status >= 500:
            return FailedAttemptError(Kind.BUSY, f"HTTP {status}", retry_after)
        if CONTENT_FILTER in f"{code} {said}".replace("_", " ").lower():
            return FailedAttemptError(Kind.REFUSED, CONTENT_FILTER)
        return FailedAttemptError(Kind.REFUSED, f"HTTP {status}: {said}")

    def said(self, reply: Reply) -> str:
        """Return the service's own words in one line."""
        if reply.is_page:
            return "a web page, not the API's answer"
        error = _error_in(reply)
        said = error.get("message") or "" if isinstance(error, dict) else error
        if not isinstance(said, str):
            said = json.dumps(said)
        return as_printable_line(self.without_key(said))[:_LONGEST_SAID]

    def without_key(self, text: str) -> str:
        """Return the text with asterisks for the key."""
        return text.replace(self.key, "***") if self.key else text

    def _error(self, what: str) -> UserError:
        return endpoint_error(self._endpoint, what)

    def _where_the_key_is(self) -> str:
        variable = self._endpoint.key_variable
        return f"see the environment variable {variable}" if variable else "give llm.key_variable"


def body_of(endpoint: Endpoint, request: ChatRequest) -> dict[str, Any]:
    """Return what is sent to ask for one answer."""
    body = {"model": endpoint.model, "messages": request.messages, **request.sampling}
    if endpoint.sends_sample:
        body.setdefault("seed", request.sample)
    return body


def _error_in(reply: Reply) -> Any:  # noqa: ANN401 - whatever came
    """Return the error of a reply's JSON, the JSON itself if it has none, or else its text."""
    try:
        value = reply.value
    except UnreadableReplyError:
        return reply.content.decode("utf-8", "replace").strip()
    return value.get("error", value) if isinstance(value, dict) else value


def gone(endpoint: Endpoint, reason: str) -> UserError:
    """Return the error of an endpoint where nobody is."""
    return endpoint_error(
        endpoint, f"can't be reached ({reason}); what it has written is kept, and the same command goes on"
    )


def endpoint_error(endpoint: Endpoint, what: str) -> UserError:
    """Return the error of an endpoint that `what` is said of."""
    return UserError(f"the LLM '{endpoint.name}' at {endpoint.base_url} {what}")


def _in_the_systems_words(error: Exception) -> str:
    """Return "Connection refused" where the transport has much to say around it."""
    cause = getattr(error, "os_error", None)
    if cause is None or isinstance(cause, SSLError):
        return str(error)
    return os.strerror(cause.errno) if (cause.errno or 0) > 0 else cause.strerror or str(error)


def _key(endpoint: Endpoint) -> str:
    if not endpoint.key_variable:
        return ""
    key = os.environ.get(endpoint.key_variable, "").strip()
    if not key or not key.isascii():
        state = "holds no key" if key else "is not set"
        raise UserError(
            f"the environment variable {endpoint.key_variable} {state}: it must hold the key of the LLM"
            f" '{endpoint.name}'"
        )
    return key


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield what an error came from, the nearest first."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
