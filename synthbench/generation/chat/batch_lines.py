"""The two files of a batch: a line for each request, and one for what became of it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from synthbench.generation.chat.bodies import LARGEST, UnreadableReplyError, as_printable_line
from synthbench.generation.chat.cache import Answer
from synthbench.generation.chat.connection import FailedAttemptError, Kind, Refusals, body_of
from synthbench.generation.chat.endpoint import Endpoint
from synthbench.generation.chat.replies import NOT_UNICODE, read_completion
from synthbench.generation.chat.requests import ChatRequest

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
