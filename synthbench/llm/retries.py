"""When a request is asked again, how soon, and what a failed attempt leaves behind.

`FailureKind` is the table of attempts without an answer, `TRIES` that of answers that are not whole. The
file's `llm.tries` is the most attempts at any request.
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
"""Seconds; if a service asks for a longer wait, only a later run retries."""
ONCE, FEW = 1, 4


@dataclass(frozen=True)
class Rule:
    """What follows from an attempt that failed in this way.

    most_tries: attempts at one request, beside `llm.tries`. in_doubt: it may have been billed. is_billed: it
    probably was, and a retry would be, too, so the failure is kept. is_faulty: a reply came, but no answer.
    slows: fewer requests at a time from now on.
    """

    meaning: str
    most_tries: float = math.inf
    in_doubt: bool = False
    is_billed: bool = False
    is_faulty: bool = False
    slows: bool = False


class FailureKind(Enum):
    """Ways in which an attempt fails."""

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
"""Most attempts at one request that gets answers of this kind; others are asked for once."""


def is_busy(status: int) -> bool:
    """Tell whether an HTTP status refuses a request for now."""
    return status in (408, 409, 425, 429) or status >= 500


def is_kept(answer: Answer, num_tries: int, most: int) -> bool:
    """Tell whether an answer is final after `num_tries` of at most `most` attempts, or asked for again."""
    return not answer.is_server_fault and num_tries >= min(most, TRIES.get(answer.kind, ONCE))


@dataclass
class FailedAttemptError(Exception):
    """An attempt without an answer; `retry_after` is the wait that the service asked for, in seconds.

    `answer_kind`: what the reply was, if one came with status 200 or was filtered.
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
        """What follows from it."""
        return self.kind.value

    def told(self, num_tries: int = 1, unit: str = "tries") -> str:
        """Return the reason, with the number of attempts if there were several."""
        return self.reason + ("" if num_tries == 1 else f", given up after {num_tries} {unit}")

    def failure(self, num_tries: int = 1, unit: str = "tries") -> str:
        """Return the same for the caller: behind the answer's kind, if a reply came."""
        told = self.told(num_tries, unit)
        return told if self.answer_kind is AnswerKind.WHOLE else reason_of(self.answer_kind, told)

    def can_pass(self, num_tries: int, most: int) -> bool:
        """Tell whether to retry after `num_tries` of at most `most` attempts."""
        return num_tries < min(most, self.rule.most_tries) and (self.retry_after or 0) <= MAX_RETRY_AFTER

    def pause(self, num_tries: int) -> float:
        """Return the seconds before the next attempt: exponential backoff with jitter.

        At least what the service asked for; more later, since overloaded services may ask for 0.
        """
        backoff: float = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (num_tries - 1))
        jittered = backoff * random.uniform(0.5, 1.0)
        if self.retry_after is None:
            return jittered
        return max(jittered, self.retry_after + random.uniform(0, FIRST_BACKOFF))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After (RFC 9110, section 10.2.3) or retry-after-ms, None if invalid."""
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
