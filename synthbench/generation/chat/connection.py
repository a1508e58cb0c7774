"""One attempt at one request, through the `openai` package's transport, and what its failure means."""

import asyncio
import json
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from ssl import SSLError
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from synthbench.errors import UserError
from synthbench.generation.chat.cache import Answer
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.replies import UnreadableReplyError, read_reply
from synthbench.generation.chat.requests import ChatRequest
from synthbench.generation.chat.waiting import seconds_asked_for

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIStatusError

SECONDS_TO_CONNECT = 10.0
FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
TRIES_OF_UNLIKELY = 4
"""Most attempts where nobody listens, or something else than the API answers."""
CONTENT_FILTER = "content filter"
REQUEST_ID = "X-Client-Request-Id"
_CAN_PASS = (408, 409, 425, 429)
_LONGEST_SAID = 200
_PAST_QUOTA = ("insufficient_quota", "billing_hard_limit_reached")


class Kind(Enum):
    """What a failed attempt means for the next."""

    BUSY = "the service turned it away for now"
    LOST = "it may have been answered, and paid, but no answer came"
    UNREADABLE = "an answer came, but not the API's"
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
        return self.kind in (Kind.LOST, Kind.UNREADABLE)

    def can_pass(self, num_tries: int, most: int) -> bool:
        """Tell whether another attempt makes sense after so many."""
        if self.kind in (Kind.UNREACHABLE, Kind.UNREADABLE):
            most = min(most, TRIES_OF_UNLIKELY)
        return self.kind is not Kind.REFUSED and num_tries < most

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
        self._http = DefaultAioHttpClient(limits=limits, timeout=timeout)
        client = AsyncOpenAI(
            base_url=endpoint.base_url, api_key=self._refusals.key or "none", http_client=self._http
        )
        self._url = f"{str(client.base_url).rstrip('/')}/chat/completions"
        headers = {**client.default_headers, **client.auth_headers}
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
        from aiohttp import ClientError
        from httpx2 import HTTPError

        body = json.dumps(body_of(self._endpoint, request), ensure_ascii=False)
        try:
            async with asyncio.timeout(self._endpoint.pacing.timeout):
                # `AsyncOpenAI.post` comes to the same without retries, for half as much CPU again.
                response = await self._http.post(
                    self._url, content=body.encode(), headers={**self._headers, REQUEST_ID: attempt}
                )
            if not response.is_success:
                raise self._refusals.of(_status_error(response))
            return read_reply(request, response.content, response.headers.get("content-type", ""))
        except (HTTPError, ClientError, SSLError) as error:
            raise self._without_answer(error) from None
        except TimeoutError:
            raise FailedAttemptError(Kind.LOST, self._too_late()) from None
        except UnreadableReplyError as error:
            raise FailedAttemptError(Kind.UNREADABLE, str(error)) from None
        except UnicodeEncodeError:
            raise FailedAttemptError(Kind.REFUSED, "its text is not valid Unicode") from None

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

    def of(self, error: "APIStatusError") -> Exception:
        """Return the meaning of the package's error."""
        pause = seconds_asked_for(error.response.headers)
        return self.turned_away(error.status_code, error.code or "", self.said(error), pause)

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

    def said(self, error: "APIStatusError") -> str:
        """Return the service's own words in one line."""
        body = error.body
        said = body.get("message") if isinstance(body, dict) else body if isinstance(body, str) else ""
        if not isinstance(said, str):
            said = json.dumps(said)
        if "html" in error.response.headers.get("content-type", ""):
            said = "a web page, not the API's answer"
        return self.without_key(" ".join(said.split()))[:_LONGEST_SAID]

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


def _status_error(response: "Response") -> "APIStatusError":
    """Return the package's error of a reply that is none of success."""
    from openai import APIStatusError

    body: Any = response.text.strip()
    with suppress(ValueError):
        body = json.loads(body)
    return APIStatusError(
        "", response=response, body=body.get("error", body) if isinstance(body, dict) else body
    )


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
