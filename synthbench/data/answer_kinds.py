"""Kinds of LLM answers: only complete answers become data; the others are failures, counted by kind."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum


class AnswerKind(StrEnum):
    """How an LLM's answer ended."""

    WHOLE = "whole"
    CUT_OFF = "cut off"
    EMPTY = "empty answer"
    REFUSED = "refused"
    FAULTY = "faulty answer"


_UNFINISHED = {kind.value for kind in AnswerKind} - {AnswerKind.WHOLE}


def reason_of(kind: AnswerKind, detail: str = "") -> str:
    """Return a failure's reason: the kind and any detail, such as "cut off: limit on tokens"."""
    return f"{kind}: {detail}" if detail else str(kind)


def kind_in(reason: str) -> AnswerKind | None:
    """Return the kind in a failure's reason, even after a label ("negative: cut off"); None if absent."""
    return next((AnswerKind(part) for part in reason.split(": ")[:2] if part in _UNFINISHED), None)


def unfinished_answers(reasons: Iterable[str]) -> dict[str, int]:
    """Count failures whose LLM answer was incomplete, by kind."""
    counts = Counter(kind for reason in reasons if (kind := kind_in(reason)))
    return dict(sorted((kind.value, number) for kind, number in counts.items()))
