"""Log-probabilities of an answer's tokens, as OpenAI's chat API reports them (vLLM does, too)."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from synthbench.data.records import is_unicode

MOST_ALTERNATIVES = 20
"""Maximum number of alternative tokens that the API gives at each position."""
_IMPOSSIBLE = -9999.0
"""The API's log-probability of a token that can't come."""


@dataclass(frozen=True)
class TokenLogprob:
    """A token of an answer: its text, its log-probability, and the likeliest tokens at its position.

    `top` maps the texts of these tokens, and of the token itself, to log-probabilities. Tokens with the same
    text count together.
    """

    token: str
    logprob: float
    top: Mapping[str, float] = field(default_factory=dict)


def read_logprobs(choice: Mapping[str, Any]) -> tuple[TokenLogprob, ...] | None:
    """Return the log-probabilities in a reply's choice; None without any, or if one is invalid."""
    found = choice.get("logprobs")
    rows = found.get("content") if isinstance(found, dict) else None
    tokens = [_token(row) for row in rows] if isinstance(rows, list) else []
    return tuple(each for each in tokens if each is not None) if tokens and None not in tokens else None


def _token(row: Any) -> TokenLogprob | None:  # noqa: ANN401 - whatever came
    own = _one(row)
    if own is None:
        return None
    listed = row.get("top_logprobs")
    others = [_one(each) for each in listed] if isinstance(listed, list) else []
    top: dict[str, float] = {}
    for each in others:
        if each is not None:
            top[each[0]] = _sum(top[each[0]], each[1]) if each[0] in top else each[1]
    return TokenLogprob(*own, {own[0]: own[1], **top})


def _one(row: Any) -> tuple[str, float] | None:  # noqa: ANN401 - whatever came
    """Return a token's text, and its log-probability (at most 0); None if one is missing or invalid."""
    if not isinstance(row, dict):
        return None
    text, value = row.get("token"), row.get("logprob")
    if not isinstance(text, str) or not isinstance(value, int | float) or math.isnan(value):
        return None
    return text if is_unicode(text) else "\ufffd", float(min(max(value, _IMPOSSIBLE), 0.0))


def _sum(first: float, second: float) -> float:
    """Return the logarithm of the sum of two probabilities, which are given as logarithms."""
    larger, smaller = max(first, second), min(first, second)
    return min(larger + math.log1p(math.exp(smaller - larger)), 0.0)


def as_text(tokens: tuple[TokenLogprob, ...]) -> str:
    """Return log-probabilities as text for the cache."""
    return json.dumps([[each.token, each.logprob, dict(each.top)] for each in tokens], separators=(",", ":"))


def from_text(text: str) -> tuple[TokenLogprob, ...]:
    """Return log-probabilities from the cache's text."""
    return tuple(TokenLogprob(*each) for each in json.loads(text))
