"""Send one request through the `openai` package's transport, and classify its failure."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from ssl import SSLError
from typing import TYPE_CHECKING, Any, get_args

from synthbench.base.errors import UserError
from synthbench.llm.answers import CONTENT_FILTER, Answer, Origin, as_printable_line
from synthbench.llm.bodies import body_of
from synthbench.llm.endpoint import Endpoint, SamplingName, key_of
from synthbench.llm.replies import (
    BYTES_PER_TOKEN,
    ENCODINGS,
    MAX_REPLY_BYTES,
    MESSAGE_KEYS,
    NOT_UNICODE,
    Reply,
    ServerFaultError,
    UnreadableReplyError,
    described,
    read_completion,
    read_whole,
)
from synthbench.llm.requests import ChatRequest
from synthbench.llm.retries import FailedAttemptError, FailureKind, is_busy, retry_after_seconds

if TYPE_CHECKING:
    from httpx2 import URL, Response


CONNECT_TIMEOUT = 10.0
MAX_REDIRECTS = 3
REQUEST_ID = "X-Client-Request-Id"
_MAX_MESSAGE = 200
_NEW_LIMIT = "max_completion_tokens"
_OTHER_NAMES = {"response_format": ("json_schema", "schema", "grammar")}
"""Option -> other words by which error messages may name it: some services compile a schema to a grammar."""
_QUOTA_CODES = ("insufficient_quota", "billing_hard_limit_reached")


class Connection(AbstractAsyncContextManager["Connection"]):
    """Sends each request to an endpoint once; callers retry.

    Raises UserError if the environment variable of the key is not set.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        from httpx2 import Limits, Timeout
        from openai import AsyncOpenAI, DefaultAioHttpClient

        self._endpoint = endpoint
        self._errors = ErrorReader(endpoint)
        seconds, most = endpoint.pacing.timeout, endpoint.pacing.concurrency
        timeout = Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT))
        limits = Limits(max_connections=most, max_keepalive_connections=most)
        self._http = DefaultAioHttpClient(limits=limits, timeout=timeout, follow_redirects=False)
        client = AsyncOpenAI(
            base_url=endpoint.base_url, api_key=self._errors.key or "none", http_client=self._http
        )
        self._base_url = str(client.base_url).rstrip("/")
        headers = {**client.default_headers, **client.auth_headers, "Accept-Encoding": ENCODINGS}
        self._headers = {name: value for name, value in headers.items() if isinstance(value, str)}
        self._more_headers: dict[str, str] = {}
        self._limit_name = "max_tokens"

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    async def ask(self, request: ChatRequest, attempt: str) -> Answer:
        """Return the answer; `attempt` is sent as OpenAI's X-Client-Request-Id, for the service's log.

        Raises UserError if no request to the endpoint can succeed, else FailedAttemptError without an answer.
        """
        body, is_old = body_of(self._endpoint, request), self._limit_name != _NEW_LIMIT
        reply = await self._post(body, attempt)
        may_be_name = is_old and reply.status == 400 and "max_tokens" in body
        if may_be_name and _NEW_LIMIT in self._errors.said(reply):
            # OpenAI's newer models know the limit by this name alone; the refusal cost nothing.
            self._limit_name = _NEW_LIMIT
            reply = await self._post(body, attempt)
        if not 200 <= reply.status < 300:
            raise self._errors.of(reply)
        if not reply.is_whole:
            raise FailedAttemptError(
                FailureKind.TOO_LARGE, f"the answer exceeds {MAX_REPLY_BYTES // 2**20} MiB"
            )
        read = sum(len(message["content"]) for message in request.messages)
        kind = FailureKind.PAGE if reply.is_page else FailureKind.UNREADABLE
        return self._errors.answer(lambda: reply.value, read // BYTES_PER_TOKEN + 1, kind)

    async def _post(self, body: dict[str, Any], attempt: str) -> Reply:
        if "max_tokens" in body:
            rest = {key: value for key, value in body.items() if key != "max_tokens"}
            body = {**rest, self._limit_name: body["max_tokens"]}
        try:
            content = json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise FailedAttemptError(FailureKind.REFUSED, NOT_UNICODE) from None
        return await self._reply("POST", "/chat/completions", content, {REQUEST_ID: attempt})

    async def get(self, path: str) -> Reply:
        """Return the reply to a GET, with any status; raises FailedAttemptError without a reply.

        Status 401 is retried once with Anthropic's headers. Raises UserError for redirects to another server.
        """
        reply = await self._reply("GET", path, b"", self._more_headers)
        if reply.status == 401 and self._errors.key and not self._more_headers:
            # Anthropic's list of models reads the key from a header of its own; its chat API does not.
            self._more_headers = {"x-api-key": self._errors.key, "anthropic-version": "2023-06-01"}
            return await self._reply("GET", path, b"", self._more_headers)
        return reply

    async def _reply(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Send a request and return the reply; raises FailedAttemptError without a reply."""
        from aiohttp import ClientError
        from httpx2 import HTTPError

        try:
            async with asyncio.timeout(self._endpoint.pacing.timeout):
                return await self._redirected(method, path, body, {**self._headers, **headers})
        except (HTTPError, ClientError, SSLError) as error:
            raise self._no_reply(error) from None
        except TimeoutError:
            raise FailedAttemptError(FailureKind.LOST, self._timed_out()) from None
        except ValueError:
            raise FailedAttemptError(FailureKind.LOST, "the reply is not HTTP") from None

    async def _redirected(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Return the final reply; redirects are followed within the same server.

        Raises UserError if they lead to another server or are too many.
        """
        from httpx2 import URL

        url = URL(self._base_url + path)
        for _ in range(MAX_REDIRECTS + 1):
            # `AsyncOpenAI.post` without retries does the same for 50 % more CPU.
            async with self._http.stream(method, url, content=body, headers=headers) as response:
                if not response.has_redirect_location:
                    return await read_whole(response)
                url = self._target(response)
        raise endpoint_error(
            self._endpoint, f"redirects too often; set {self._endpoint.section}.base_url to its final address"
        )

    def _target(self, response: "Response") -> "URL":
        """Return a redirect's target.

        Raises UserError if it is another server, FailedAttemptError if the address is invalid.
        """
        from httpx2 import InvalidURL

        try:
            url = response.url.join(response.headers["location"])
        except InvalidURL:
            raise FailedAttemptError(FailureKind.REFUSED, "a redirect to an invalid address") from None
        if (url.scheme, url.host, url.port) == (response.url.scheme, response.url.host, response.url.port):
            return url
        raise self._errors.redirected(url)

    def _no_reply(self, error: Exception) -> FailedAttemptError:
        from aiohttp import ClientConnectorError, ConnectionTimeoutError

        # httpx2 reports a later broken connection as a failure to connect, too; only the transport knows.
        for cause in causes(error):
            if isinstance(cause, ClientConnectorError | ConnectionTimeoutError):
                reason = self._errors.redacted(_system_message(cause))
                return FailedAttemptError(FailureKind.UNREACHABLE, reason)
            if isinstance(cause, TimeoutError):
                return FailedAttemptError(FailureKind.LOST, self._timed_out())
        return FailedAttemptError(FailureKind.LOST, "the connection ended without an answer")

    def _timed_out(self) -> str:
        return f"no answer within {self._endpoint.pacing.timeout:g} s"


class ErrorReader:
    """Turns an endpoint's errors into exceptions; `key`, its API key, is masked in all messages.

    Raises UserError if the environment variable of the key is not set.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.key = key_of(endpoint)

    def answer(self, completion: Callable[[], Any], prompt_tokens: int, if_unreadable: FailureKind) -> Answer:
        """Return the answer in a chat completion; `prompt_tokens` is used if the service reports no count.

        The answer's failure, model and fingerprint are cut to 200 characters, and the API key is masked.
        Raises UserError if no request can succeed, else FailedAttemptError if there is no answer. The error's
        kind is `if_unreadable` if the completion can't be parsed.
        """
        try:
            found = read_completion(completion(), prompt_tokens)
        except ServerFaultError as error:
            raise self._of_fault(error.fault) from None
        except UnreadableReplyError as error:
            raise FailedAttemptError(if_unreadable, str(error)) from None
        origin = Origin(self._shown(found.origin.model), self._shown(found.origin.fingerprint))
        return replace(found, failure=self._shown(found.failure), origin=origin)

    def of(self, reply: Reply) -> FailedAttemptError | UserError:
        """Return the error for a reply with an error status."""
        error = _error_in(reply)
        named = error if isinstance(error, dict) else {}
        code, param = (value if isinstance(value := named.get(key), str) else "" for key in ("code", "param"))
        pause = retry_after_seconds(reply.headers)
        return self.of_status(reply.status, code, self.said(reply), pause, param)

    def redirected(self, url: "URL") -> UserError:
        """Return the error of a redirect to another server, which would get the key and the prompts."""
        address = str(url.copy_with(query=None, fragment=None, userinfo=b""))
        shown = as_printable_line(self.redacted(address))[:_MAX_MESSAGE]
        return self._error(
            f"redirects to {shown}, another server; if that is the right one, set"
            f" {self._endpoint.section}.base_url to it"
        )

    def _of_fault(self, fault: Any) -> FailedAttemptError | UserError:  # noqa: ANN401 - whatever came
        """Return the error for a reply with status 200 whose body reports a failure of the service."""
        given = fault.get("code") if isinstance(fault, dict) else None
        code = given if isinstance(given, str) else ""
        number = int(code) if code.isdecimal() and len(code) == len("500") else given
        status = number if type(number) is int and 400 <= number < 600 else 500
        error = self.of_status(status, code, self.message_of(fault))
        if isinstance(error, FailedAttemptError) and error.kind is FailureKind.BUSY:
            return FailedAttemptError(FailureKind.FAILED, self._shown(described(fault)))
        return error

    def _shown(self, text: str) -> str:
        return self.redacted(text)[:_MAX_MESSAGE]

    def of_status(
        self, status: int, code: str, said: str, retry_after: float | None = None, param: str = ""
    ) -> FailedAttemptError | UserError:
        """Return the error for a status and message; a UserError if no request can succeed.

        `param`: the request's parameter that the service blames, from its error's field `param`; "" if none.
        """
        said = self.redacted(said)[:_MAX_MESSAGE]
        if status == 401:
            # The message may repeat parts of the key.
            return self._error(f"rejects the key (HTTP 401); {self._where_the_key_is()}")
        if 400 <= status < 500 and "logprobs" in f"{param} {said}" and not self._refused_option(said):
            return no_logprobs_error(self._endpoint, f"HTTP {status}: {said}")
        if status == 403:
            return self._error(f"denies access with this key (HTTP 403: {said}); {self._where_the_key_is()}")
        if status == 404:
            return self._error(
                f"has no model '{self._endpoint.model}', or another address (HTTP 404: {said})"
            )
        if status == 402 or code in _QUOTA_CODES:
            return self._error(f"has no credit left for this key (HTTP {status}: {said})")
        if is_busy(status):
            return FailedAttemptError(FailureKind.BUSY, f"HTTP {status}", retry_after)
        if CONTENT_FILTER in f"{code} {said}".replace("_", " ").lower():
            return FailedAttemptError(FailureKind.REFUSED, CONTENT_FILTER)
        if option := self._refused_option(f"{param} {said}"):
            key = f"{self._endpoint.section}.{option}"
            where = ": ".join(filter(None, (self._endpoint.locations.get(option), key)))
            return UserError(
                f"{where}: the LLM '{self._endpoint.name}' refuses it"
                f" (HTTP {status}: {said}); leave it out or correct it"
            )
        if param in get_args(SamplingName) and code.startswith("unsupported"):
            return self._error(
                f"refuses {param} with {self._endpoint.model} (HTTP {status}: {said}); leave it out with"
                f" {self._endpoint.section}.unsent: [{param}]"
            )
        return FailedAttemptError(FailureKind.REFUSED, f"HTTP {status}: {said}")

    def _refused_option(self, said: str) -> str:
        """Return the configured option that an error message names, or ""."""
        for option, value in self._endpoint.options.items():
            names = [option, *_OTHER_NAMES.get(option, ()), *(value if option == "extra_body" else ())]
            if any(re.search(rf"\b{re.escape(name)}\b", said, re.IGNORECASE) for name in names):
                return str(option)
        return ""

    def said(self, reply: Reply) -> str:
        """Return the service's message in one line of at most 200 characters, with the API key masked."""
        if reply.is_page:
            return "a web page instead of the API's answer"
        return self.message_of(_error_in(reply))

    def message_of(self, error: Any) -> str:  # noqa: ANN401 - whatever came
        """Return an error's message in one line of at most 200 characters, with the API key masked."""
        said = error or ""
        if isinstance(error, dict):
            said = next(filter(None, map(error.get, (*MESSAGE_KEYS, "errors"))), "")
        if not isinstance(said, str):
            said = json.dumps(said)
        return as_printable_line(self.redacted(said))[:_MAX_MESSAGE]

    def redacted(self, text: str) -> str:
        """Replace the key in a text by asterisks."""
        return text.replace(self.key, "***") if self.key else text

    def _error(self, what: str) -> UserError:
        return endpoint_error(self._endpoint, what)

    def _where_the_key_is(self) -> str:
        variable, section = self._endpoint.key_variable, self._endpoint.section
        return f"see the environment variable {variable}" if variable else f"set {section}.key_variable"


def _error_in(reply: Reply) -> Any:  # noqa: ANN401 - whatever came
    """Return a reply's `error` or (FastAPI) `detail`, else its whole JSON; its text if it is not JSON."""
    try:
        value = reply.value
    except UnreadableReplyError:
        return reply.content.decode("utf-8", "replace").strip()
    return value.get("error") or value.get("detail") or value if isinstance(value, dict) else value


def unreachable_error(endpoint: Endpoint, reason: str) -> UserError:
    """Return the error of an endpoint that can't be reached."""
    return endpoint_error(
        endpoint, f"can't be reached ({reason}). Its answers are cached; run the same command again to resume"
    )


def no_logprobs_error(endpoint: Endpoint, why: str) -> UserError:
    """Return the error of an endpoint that gives no log-probabilities."""
    return endpoint_error(
        endpoint,
        f"gives no log-probabilities of {endpoint.model} ({why}); take an LLM that does, such as one of"
        " OpenAI's without thoughts or one that vLLM serves, or do without",
    )


def endpoint_error(endpoint: Endpoint, what: str) -> UserError:
    """Return an error that names the endpoint and its address."""
    return UserError(f"the LLM '{endpoint.name}' at {endpoint.base_url} {what}")


def _system_message(error: Exception) -> str:
    """Return the operating system's message, such as "Connection refused", else the transport's."""
    cause = getattr(error, "os_error", None)
    if cause is None or isinstance(cause, SSLError):
        return str(error)
    return os.strerror(cause.errno) if (cause.errno or 0) > 0 else cause.strerror or str(error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the chain of exceptions that led to an error, the direct cause first."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__
