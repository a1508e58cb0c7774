"""Extract the query from an LLM's answer, without the text that chat models put around it."""

import re

from synthbench.api import is_invisible, linear_pattern, looks_like_a_refusal

REFUSED, NO_QUERY, TOO_LONG, IS_PASSAGE, REPEATED = (
    "refusal",
    "no query",
    "query too long",
    "query is the passage",
    "repeated query",
)
MOST_WORDS = 64
"""GPL's generator stops after 64 tokens."""
_LABEL = linear_pattern(
    r"^\W*(?:(?:search|the|my|possible|user)\s++)?(?:question|query)\s*+\d*+\W*:\s*", re.IGNORECASE
)
_NUMBER = linear_pattern(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+")
_PREAMBLE = linear_pattern(
    r"^(?:sure|certainly|of course|here (?:is|are)|here's|okay|ok)\b.*:\s*$", re.IGNORECASE
)
_DECLINED = linear_pattern(r"\bi(?:'m|\s?am)? ?(?:cannot|can't|won't|unable to|not able to)\b", re.IGNORECASE)
_TASK = linear_pattern(r"\b(?:question|quer(?:y|ies)|passage)\b", re.IGNORECASE)
"""Objects of refusals in this task, in addition to those of every method."""
_QUOTES = "\"'“”„«»`*"


def query_in(answer: str) -> str:
    """Return an answer's query: its first line that is no preamble, without label, number and quotes.

    "" if there is none.
    """
    for line in answer.splitlines():
        text = _NUMBER.sub("", line.strip())
        if not text or _PREAMBLE.match(text):
            continue
        bare = _LABEL.sub("", text).strip().strip(_QUOTES).strip()
        if bare:
            return bare
    return ""


def fault_of(query: str, passage: str) -> str:
    """Return why a query can't be used, "" if it can."""
    if is_invisible(query) or not any(map(str.isalnum, query)):
        return NO_QUERY
    if looks_like_a_refusal(query) or _declines(query.replace("\u2019", "'")):
        return REFUSED
    if len(query.split()) > MOST_WORDS:
        return TOO_LONG
    return IS_PASSAGE if query.lower().rstrip(".?") == passage.lower().rstrip(".?") else ""


def _declines(line: str) -> bool:
    declined = _DECLINED.search(line)
    return declined is not None and _TASK.search(line, declined.end()) is not None
