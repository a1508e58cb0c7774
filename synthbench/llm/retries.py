"""Retries: which requests are sent again, how soon, and what a failed attempt records.

`FailureKind` has the rules for attempts without an answer, `TRIES` for incomplete answers. `llm.tries`
in the experiment file is the maximum number of attempts at any request.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum
from typing import Final

from synthbench.data.answer_kinds import AnswerKind, reason_of
from synthbench.llm.answers import CONTENT_FILTER, Answer

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
MAX_RETRY_AFTER = 3600.0
"""In seconds; if a service asks for a longer wait, only a later run retries."""
ONCE, FEW = 1, 4


@dataclass(frozen=True)
class Rule:
    """Consequences of a kind of failure.

    most_tries: maximum attempts at one request, if lower than `llm.tries`. in_doubt: the attempt may have
    been billed. is_billed: the attempt was probably billed, as a retry would be, so the failure is stored.
    is_faulty: a reply came, but no answer. slows: lower the concurrency from now on.
    """

    meaning: str
    most_tries: float = math.inf
    in_doubt: bool = False
    is_billed: bool = False
    is_faulty: bool = False
    slows: bool = False


class FailureKind(Enum):
    """Kinds of failed attempts."""

    BUSY = Rule("the service refused it for now", slows=True)
    FAILED = Rule("the service says with status 200 that it failed", is_faulty=True, slows=True)
    UNFINISHED = Rule("an answer that is not whole, which was paid")
    LOST = Rule("no answer came, though it may be billed", in_doubt=True)
    UNREADABLE = Rule("the answer is not the API's", FEW, in_doubt=True, is_billed=True, is_faulty=True)
    TOO_LARGE = Rule("the answer is too long", ONCE, in_doubt=True, is_billed=True, is_faulty=True)
    PAGE = Rule("a web page, from a proxy in between", FEW, in_doubt=True, is_faulty=True)
    UNREACHABLE = Rule("no connection", FEW)
    REFUSED = Rule("the service will never answer it", ONCE)


TRIES: Final[Mapping[AnswerKind, int]] = {AnswerKind.EMPTY: 3, AnswerKind.FAULTY: 4}
"""Maximum attempts at one request by kind of answer; other kinds are requested once."""


def is_busy(status: int) -> bool:
    """Return whether an HTTP status refuses a request temporarily."""
    return status in (408, 409, 425, 429) or status >= 500


def is_final_answer(answer: Answer, num_tries: int, most: int) -> bool:
    """Return whether to keep an answer, instead of retrying, after `num_tries` of at most `most` attempts.

    An answer that reports a failure of the service is never kept.
    """
    return not answer.is_server_fault and num_tries >= min(most, TRIES.get(answer.kind, ONCE))


@dataclass
class FailedAttemptError(Exception):
    """An attempt without a usable answer; `retry_after` is the service's requested wait in seconds.

    `answer_kind`: the kind of the incomplete answer, FAULTY if a reply held no answer, REFUSED if a filter
    blocked the answer; WHOLE for all other failures.
    """

    kind: FailureKind
    reason: str
    retry_after: float | None = None
    answer_kind: AnswerKind = AnswerKind.WHOLE

    def __post_init__(self) -> None:
        if self.rule.is_faulty:
            self.answer_kind = AnswerKind.FAULTY
        elif self.reason == CONTENT_FILTER:
            self.answer_kind = AnswerKind.REFUSED

    @property
    def rule(self) -> Rule:
        """The consequences of this failure."""
        return self.kind.value

    def reason_after(self, num_tries: int = 1, unit: str = "tries") -> str:
        """Return the reason, with the number of attempts if there were several."""
        return self.reason + ("" if num_tries == 1 else f", given up after {num_tries} {unit}")

    def failure(self, num_tries: int = 1, unit: str = "tries") -> str:
        """Return the reason for the caller, prefixed by `answer_kind` unless that is WHOLE."""
        reason = self.reason_after(num_tries, unit)
        return reason if self.answer_kind is AnswerKind.WHOLE else reason_of(self.answer_kind, reason)

    def can_pass(self, num_tries: int, most: int) -> bool:
        """Return whether to retry after `num_tries` of at most `most` attempts.

        False, too, if the service asks to wait longer than `MAX_RETRY_AFTER`.
        """
        return num_tries < min(most, self.rule.most_tries) and (self.retry_after or 0) <= MAX_RETRY_AFTER

    def pause(self, num_tries: int) -> float:
        """Return the seconds before the next attempt: exponential backoff with jitter.

        Never less than the wait that the service asked for. If it asked for 0 s, the pause still grows with
        the attempts.
        """
        backoff: float = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (num_tries - 1))
        jittered = backoff * random.uniform(0.5, 1.0)
        if self.retry_after is None:
            return jittered
        return max(jittered, self.retry_after + random.uniform(0, FIRST_BACKOFF))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the wait that a service asks for, in seconds; None without a valid header.

    Reads retry-after-ms, else Retry-After (RFC 9110, section 10.2.3): seconds, or a date (0 if it is past).
    """
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
