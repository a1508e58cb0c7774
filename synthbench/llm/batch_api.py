"""Use a service's Batch API through the `openai` package; write and read a batch's files."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from synthbench.base.errors import UserError
from synthbench.data.records import is_unicode
from synthbench.llm.answers import Answer, as_printable_line
from synthbench.llm.bodies import body_of
from synthbench.llm.connection import (
    CONNECT_TIMEOUT,
    ErrorReader,
    causes,
    endpoint_error,
    unreachable_error,
)
from synthbench.llm.database import OpenBatch
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import (
    MAX_REPLY_BYTES,
    NOT_UNICODE,
    Reply,
)
from synthbench.llm.requests import ChatRequest
from synthbench.llm.retries import FailedAttemptError, FailureKind

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError

COMPLETIONS: Final = "/v1/chat/completions"


def request_line(endpoint: Endpoint, key: str, request: ChatRequest) -> bytes:
    """Return a request's line in the input file; `key` identifies its answer.

    Raises FailedAttemptError if its text is not valid Unicode.
    """
    try:
        for message in request.messages:
            message["content"].encode()
    except UnicodeEncodeError:
        raise FailedAttemptError(FailureKind.REFUSED, NOT_UNICODE) from None
    entry = {"custom_id": key, "method": "POST", "url": COMPLETIONS, "body": body_of(endpoint, request)}
    return json.dumps(entry).encode() + b"\n"


@dataclass(frozen=True)
class ResultLine:
    """The result of the request `key`: its HTTP `status` (0: it was not run), reply `body`, and `error`."""

    key: str
    status: int
    body: Any
    error: Mapping[str, Any]

    def answer(self, errors: ErrorReader, prompt_tokens: int) -> Answer:
        """Return the answer; `prompt_tokens` is used if the service reports no count.

        Raises FailedAttemptError if there is none, UserError if no request can succeed.
        """
        if self.status == 200:
            return errors.answer(lambda: self.body, prompt_tokens, FailureKind.UNREADABLE)
        names = ("code", "message", "param")
        code, said, param = (as_printable_line(str(self.error.get(name) or "")) for name in names)
        if self.status:
            raise errors.of_status(self.status, code, said, param=param)
        raise FailedAttemptError(FailureKind.BUSY, errors.redacted(said or code or "not run"))


def read_line(line: bytes) -> ResultLine | None:
    """Parse a line of an output or error file; None if it is invalid."""
    try:
        entry = json.loads(line)
        key, response = entry["custom_id"], entry.get("response") or {}
        status, body = response.get("status_code") or 0, response.get("body")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    within = body.get("error") if isinstance(body, dict) else None
    error = within or entry.get("error")
    is_status = type(status) is int
    if not isinstance(key, str) or not is_unicode(key):
        return None
    return ResultLine(key, status if is_status else 0, body, error if isinstance(error, dict) else {})


def lines_in(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file, each cut at MAX_REPLY_BYTES."""
    while line := file.readline(MAX_REPLY_BYTES):
        yield line
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_REPLY_BYTES)


_MOST_STATE = 40
TOKEN = "synthbench"
"""The metadata key that holds a batch's token."""
MAX_CLOCK_SKEW = 86_400.0
"""Tolerance, in seconds, for a service's clock that is behind ours."""
_UNDER_WAY = ("validating", "in_progress", "finalizing", "cancelling")
_FINAL = ("completed", "failed", "expired", "cancelled")
_T = TypeVar("_T")


class MaybeSubmittedError(UserError):
    """The service may or may not have accepted the batch."""


@dataclass(frozen=True)
class RemoteBatch:
    """A batch's state at the service; `files` are the ids of its output and error files.

    `num_done`: requests that succeeded or failed. `said`: the service's messages on errors of the batch.
    """

    state: str
    num_done: int
    files: tuple[str, ...]
    said: str

    @property
    def is_under_way(self) -> bool:
        """Whether results may still come; True for an unknown state, so that nothing is paid twice."""
        return self.state not in _FINAL

    @property
    def unknown_state(self) -> str:
        """The state if the Batch API does not define it, else ""."""
        return "" if self.state in (*_UNDER_WAY, *_FINAL) else self.state or "none"


class BatchService(AbstractContextManager["BatchService"]):
    """Submits and retrieves batches, with retries.

    Methods raise UserError if retries fail or can't help; the constructor raises it without an API key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        from httpx2 import Timeout
        from openai import DefaultHttpxClient, OpenAI

        self.errors = ErrorReader(endpoint)
        self._endpoint = endpoint
        seconds = endpoint.pacing.timeout
        self._client = OpenAI(
            base_url=endpoint.base_url,
            api_key=self.errors.key or "none",
            max_retries=0,
            http_client=DefaultHttpxClient(
                timeout=Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT)), follow_redirects=False
            ),
        )

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def submit(self, file: IO[bytes], token: str) -> str:
        """Upload the requests, create a batch and return its id.

        On failure, raises MaybeSubmittedError if the batch may exist, else UserError.
        """
        without = "has no Batch API; set `batch: false` to ask it directly"
        input_file = self._with_retries(lambda: self._uploaded(file), without)
        written = OpenBatch(token, time.time(), "")
        num_tries, may_be_there = 0, False
        try:
            while True:
                num_tries += 1
                try:
                    return self._call(lambda: self._created(input_file, token), without)
                except FailedAttemptError as error:
                    may_be_there |= error.rule.in_doubt
                    is_last = not error.can_pass(num_tries, self._endpoint.pacing.tries)
                    time.sleep(0 if is_last else error.pause(num_tries))
                    found = self.find(written) if may_be_there else None
                    if found is not None:
                        return found
                    if is_last:
                        raise self._gave_up(error, num_tries) from None
        except UserError as error:
            if may_be_there:
                raise MaybeSubmittedError(*error.messages) from None
            raise

    def find(self, batch: OpenBatch) -> str | None:
        """Return the id of the batch with our token, None if there is none."""
        return self._with_retries(lambda: self._listed(batch), f"can't tell of {_described(batch)}")

    def state_of(self, batch: OpenBatch) -> RemoteBatch:
        """Return a batch's state."""
        return self._with_retries(lambda: self._seen(batch.id), f"does not know {_described(batch)}")

    def fetch(self, batch: OpenBatch, name: str, file: IO[bytes]) -> None:
        """Copy the batch's file with the id `name` into `file`, replacing the content."""
        self._with_retries(lambda: self._copied(name, file), f"has lost a file of {_described(batch)}")

    def _uploaded(self, file: IO[bytes]) -> str:
        file.seek(0)
        return _id(self._client.files.create(file=("requests.jsonl", file), purpose="batch"))

    def _created(self, input_file: str, token: str) -> str:
        return _id(
            self._client.batches.create(
                completion_window="24h",
                endpoint=COMPLETIONS,
                input_file_id=input_file,
                metadata={TOKEN: token},
            )
        )

    def _listed(self, written: OpenBatch) -> str | None:
        for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get(TOKEN) == written.token:
                return _id(batch)
            if batch.created_at < written.sent - MAX_CLOCK_SKEW:
                return None
        return None

    def _seen(self, batch_id: str) -> RemoteBatch:
        batch = self._client.batches.retrieve(batch_id)
        _id(batch)
        counts = batch.request_counts
        errors = (batch.errors and batch.errors.data) or ()
        return RemoteBatch(
            as_printable_line(str(batch.status or ""))[:_MOST_STATE].lower(),
            counts.completed + counts.failed if counts else 0,
            tuple(name for name in (batch.output_file_id, batch.error_file_id) if name),
            self.errors.redacted("; ".join(dict.fromkeys(_text(error) for error in errors))),
        )

    def _copied(self, name: str, file: IO[bytes]) -> None:
        file.seek(0)
        file.truncate()
        with self._client.files.with_streaming_response.content(name) as response:
            for part in response.iter_bytes():
                file.write(part)

    def _with_retries(self, call: Callable[[], _T], if_missing: str) -> _T:
        num_tries = 0
        while True:
            num_tries += 1
            try:
                return self._call(call, if_missing)
            except FailedAttemptError as error:
                if not error.can_pass(num_tries, self._endpoint.pacing.tries):
                    raise self._gave_up(error, num_tries) from None
                time.sleep(error.pause(num_tries))

    def _call(self, call: Callable[[], _T], if_missing: str) -> _T:
        from httpx2 import HTTPError
        from openai import APIConnectionError, APIStatusError

        try:
            return call()
        except APIStatusError as error:
            raise self._refused(error, if_missing) from None
        except APIConnectionError as error:
            raise self._no_reply(error) from None
        except HTTPError:
            raise FailedAttemptError(FailureKind.LOST, "the connection was lost within a file") from None
        except (ValueError, AttributeError, TypeError):
            raise FailedAttemptError(
                FailureKind.UNREADABLE, "the reply is not the Batch API's JSON"
            ) from None

    def _refused(self, error: "APIStatusError", if_missing: str) -> Exception:
        if error.response.next_request is not None:
            return self.errors.redirected(error.response.next_request.url)
        if error.status_code == 404:
            return endpoint_error(
                self._endpoint, f"{if_missing} (HTTP 404: {self.errors.said(_reply(error))})"
            )
        return self.errors.of(_reply(error))

    def _no_reply(self, error: "APIConnectionError") -> FailedAttemptError:
        from httpx2 import ConnectError, ConnectTimeout, TimeoutException

        cause = next(iter(causes(error)), error)
        if isinstance(cause, ConnectError | ConnectTimeout):
            return FailedAttemptError(FailureKind.UNREACHABLE, self.errors.redacted(str(cause)))
        if isinstance(cause, TimeoutException):
            return FailedAttemptError(
                FailureKind.LOST, f"no answer within {self._endpoint.pacing.timeout:g} s"
            )
        return FailedAttemptError(FailureKind.LOST, "the connection ended without an answer")

    def _gave_up(self, error: FailedAttemptError, num_tries: int) -> UserError:
        if error.kind is FailureKind.UNREACHABLE:
            return unreachable_error(self._endpoint, error.reason)
        tries = "" if num_tries == 1 else f", given up after {num_tries} tries"
        return endpoint_error(
            self._endpoint,
            f"fails to process batches ({error.reason}{tries}). Its answers are cached; run the same command"
            " again to resume",
        )


def _reply(error: "APIStatusError") -> Reply:
    return Reply(error.status_code, error.response.headers, error.response.content)


def _described(batch: OpenBatch) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(batch.sent))
    name = batch.id or batch.token
    return (
        f"batch {name} of {day}: does the key belong to the same project?"
        f" `synthbench ledger --give-up {name}` requests its answers anew"
    )


def _id(found: Any) -> str:  # noqa: ANN401 - the package hands over whatever came
    """Return the id of an API object; raises AttributeError if the id is missing or not printable."""
    if not isinstance(found.id, str) or not found.id or not found.id.isprintable():
        raise AttributeError("id")
    return found.id


def _text(error: Any) -> str:  # noqa: ANN401
    return as_printable_line(str(error.message or error.code or "no reason given"))
