"""A service's Batch API, through the `openai` package, and the two files of a batch."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, Self, TypeVar

from synthbench.errors import UserError
from synthbench.llm.cache import Answer
from synthbench.llm.connection import (
    SECONDS_TO_CONNECT,
    FailedAttemptError,
    Kind,
    Refusals,
    body_of,
    causes,
    endpoint_error,
    gone,
)
from synthbench.llm.database import Batch
from synthbench.llm.endpoint import Endpoint
from synthbench.llm.replies import (
    LARGEST,
    NOT_UNICODE,
    Reply,
    UnreadableReplyError,
    as_printable_line,
    read_completion,
)
from synthbench.llm.requests import ChatRequest

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError

COMPLETIONS: Final = "/v1/chat/completions"


def request_line(endpoint: Endpoint, key: str, request: ChatRequest) -> bytes:
    """Return a request's line; `key` is the name by which its answer comes back.

    Raises FailedAttemptError if no line can hold it.
    """
    try:
        for message in request.messages:
            message["content"].encode()
    except UnicodeEncodeError:
        raise FailedAttemptError(Kind.REFUSED, NOT_UNICODE) from None
    entry = {"custom_id": key, "method": "POST", "url": COMPLETIONS, "body": body_of(endpoint, request)}
    return json.dumps(entry).encode() + b"\n"


@dataclass(frozen=True)
class ResultLine:
    """What became of the request `key`; `status` is 0 if it was never carried out."""

    key: str
    status: int
    body: Any
    error: Mapping[str, Any]

    def answer(self, refusals: Refusals, prompt_tokens: int) -> Answer:
        """Return the answer; `prompt_tokens` is taken where the service does not say how many there were.

        Raises FailedAttemptError if there is none, UserError if it says that no request can succeed.
        """
        if self.status == 200:
            try:
                return read_completion(self.body, prompt_tokens)
            except UnreadableReplyError as error:
                raise FailedAttemptError(Kind.UNREADABLE, str(error)) from None
        code, said = (as_printable_line(str(self.error.get(name) or "")) for name in ("code", "message"))
        if self.status:
            raise refusals.turned_away(self.status, code, said)
        raise FailedAttemptError(Kind.BUSY, refusals.without_key(said or code or "not carried out"))


def read_line(line: bytes) -> ResultLine | None:
    """Return what a line of an output or error file says, None if it can't be read."""
    try:
        entry = json.loads(line)
        key, response = entry["custom_id"], entry.get("response") or {}
        status, body = response.get("status_code") or 0, response.get("body")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    within = body.get("error") if isinstance(body, dict) else None
    error = within or entry.get("error")
    is_status = type(status) is int
    return ResultLine(str(key), status if is_status else 0, body, error if isinstance(error, dict) else {})


def lines_in(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; of one that is longer than an answer can be, the beginning."""
    while line := file.readline(LARGEST):
        yield line
        while line and not line.endswith(b"\n"):
            line = file.readline(LARGEST)


TOKEN = "synthbench"
"""Under which key of its metadata a batch keeps our token."""
SECONDS_OF_DOUBT = 86_400.0
"""How much older than its sending by our clock a batch may be by the service's."""
_UNDER_WAY = ("validating", "in_progress", "finalizing", "cancelling")
_T = TypeVar("_T")


class MayBeThereError(UserError):
    """Nobody knows whether the batch was taken."""


@dataclass(frozen=True)
class RemoteBatch:
    """What the service says of a batch; `files` are the ids of its output and error files."""

    state: str
    num_done: int
    files: tuple[str, ...]
    said: str

    @property
    def is_under_way(self) -> bool:
        """Whether there is more to come."""
        return self.state in _UNDER_WAY


class BatchService:
    """Submits batches and looks at them; asks again what can pass.

    Every method raises UserError if that does not help. The constructor does if there is no key.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        from httpx2 import Timeout
        from openai import DefaultHttpxClient, OpenAI

        self.refusals = Refusals(endpoint)
        self._endpoint = endpoint
        seconds = endpoint.pacing.timeout
        self._client = OpenAI(
            base_url=endpoint.base_url,
            api_key=self.refusals.key or "none",
            max_retries=0,
            http_client=DefaultHttpxClient(
                timeout=Timeout(seconds, connect=min(seconds, SECONDS_TO_CONNECT)), follow_redirects=False
            ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def submit(self, file: IO[bytes], token: str) -> str:
        """Upload the requests, make a batch of them and return its id.

        Raises MayBeThereError if it can't be known whether there is one.
        """
        without = "has no Batch API; with `batch: false` it is asked directly"
        input_file = self._patiently(lambda: self._uploaded(file), without)
        written = Batch(token, time.time(), "")
        num_tries, may_be_there = 0, False
        while True:
            num_tries += 1
            try:
                return self._once(lambda: self._created(input_file, token), without)
            except FailedAttemptError as error:
                may_be_there |= error.is_in_doubt
                is_last = not error.can_pass(num_tries, self._endpoint.pacing.tries)
                time.sleep(0 if is_last else error.pause(num_tries))
                found = self._found_after_all(written) if may_be_there else None
                if found is not None:
                    return found
                if is_last:
                    raise self._given_up(error, num_tries) from None

    def find(self, batch: Batch) -> str | None:
        """Return the id of the batch with our token."""
        return self._patiently(lambda: self._listed(batch), f"can't tell of {_known_as(batch)}")

    def look(self, batch: Batch) -> RemoteBatch:
        """Return how far a batch is."""
        return self._patiently(lambda: self._seen(batch.id), f"does not know {_known_as(batch)}")

    def fetch(self, batch: Batch, name: str, file: IO[bytes]) -> None:
        """Write the content of one of its files into `file`."""
        self._patiently(lambda: self._copied(name, file), f"has lost a file of {_known_as(batch)}")

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

    def _listed(self, written: Batch) -> str | None:
        for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get(TOKEN) == written.token:
                return _id(batch)
            if batch.created_at < written.sent - SECONDS_OF_DOUBT:
                return None
        return None

    def _seen(self, batch_id: str) -> RemoteBatch:
        batch = self._client.batches.retrieve(batch_id)
        _id(batch)
        counts = batch.request_counts
        errors = (batch.errors and batch.errors.data) or ()
        return RemoteBatch(
            batch.status,
            counts.completed + counts.failed if counts else 0,
            tuple(name for name in (batch.output_file_id, batch.error_file_id) if name),
            self.refusals.without_key("; ".join(dict.fromkeys(_text(error) for error in errors))),
        )

    def _copied(self, name: str, file: IO[bytes]) -> None:
        file.seek(0)
        file.truncate()
        with self._client.files.with_streaming_response.content(name) as response:
            for part in response.iter_bytes():
                file.write(part)

    def _found_after_all(self, batch: Batch) -> str | None:
        try:
            return self.find(batch)
        except UserError as error:
            raise MayBeThereError(*error.messages) from None

    def _patiently(self, call: Callable[[], _T], if_missing: str) -> _T:
        num_tries = 0
        while True:
            num_tries += 1
            try:
                return self._once(call, if_missing)
            except FailedAttemptError as error:
                if not error.can_pass(num_tries, self._endpoint.pacing.tries):
                    raise self._given_up(error, num_tries) from None
                time.sleep(error.pause(num_tries))

    def _once(self, call: Callable[[], _T], if_missing: str) -> _T:
        from httpx2 import HTTPError
        from openai import APIConnectionError, APIStatusError

        try:
            return call()
        except APIStatusError as error:
            raise self._turned_away(error, if_missing) from None
        except APIConnectionError as error:
            raise self._without_answer(error) from None
        except HTTPError:
            raise FailedAttemptError(Kind.LOST, "the connection ended in the middle of a file") from None
        except (ValueError, AttributeError, TypeError):
            raise FailedAttemptError(Kind.UNREADABLE, "something else than the Batch API's JSON") from None

    def _turned_away(self, error: "APIStatusError", if_missing: str) -> Exception:
        if error.response.next_request is not None:
            return self.refusals.redirected(error.response.next_request.url)
        if error.status_code == 404:
            return endpoint_error(
                self._endpoint, f"{if_missing} (HTTP 404: {self.refusals.said(_reply(error))})"
            )
        return self.refusals.of(_reply(error))

    def _without_answer(self, error: "APIConnectionError") -> FailedAttemptError:
        from httpx2 import ConnectError, ConnectTimeout, TimeoutException

        cause = next(iter(causes(error)), error)
        if isinstance(cause, ConnectError | ConnectTimeout):
            return FailedAttemptError(Kind.UNREACHABLE, self.refusals.without_key(str(cause)))
        if isinstance(cause, TimeoutException):
            return FailedAttemptError(Kind.LOST, f"no answer within {self._endpoint.pacing.timeout:g} s")
        return FailedAttemptError(Kind.LOST, "the connection ended without an answer")

    def _given_up(self, error: FailedAttemptError, num_tries: int) -> UserError:
        if error.kind is Kind.UNREACHABLE:
            return gone(self._endpoint, error.reason)
        tries = "" if num_tries == 1 else f", given up after {num_tries} tries"
        return endpoint_error(
            self._endpoint,
            f"does not take or give batches ({error.reason}{tries}); what it has written is kept, and the"
            " same command goes on",
        )


def _reply(error: "APIStatusError") -> Reply:
    return Reply(error.status_code, error.response.headers, error.response.content)


def _known_as(batch: Batch) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(batch.sent))
    name = batch.id or batch.token
    return (
        f"batch {name} of {day}: is the key one of the same project? After"
        f" `synthbench ledger --give-up {name}` all that is in it is asked again"
    )


def _id(found: Any) -> str:  # noqa: ANN401 - the package hands over whatever came
    """Return the id of what the service made; raises AttributeError if it is something else."""
    if not isinstance(found.id, str) or not found.id:
        raise AttributeError("id")
    return found.id


def _text(error: Any) -> str:  # noqa: ANN401
    return " ".join(str(error.message or error.code or "no reason given").split())
