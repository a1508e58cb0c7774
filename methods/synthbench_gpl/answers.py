"""Extract the query from an LLM's answer, without the text that chat models put around it."""

import math
import re
from collections.abc import Sequence

from synthbench.api import TokenLogprob, is_invisible, linear_pattern, looks_like_a_refusal

REFUSED, NO_QUERY, TOO_LONG, IS_PASSAGE, REPEATED = (
    "refusal",
    "no query",
    "query too long",
    "query is the passage",
    "repeated query",
)
MOST_WORDS = 64
"""Maximum length of a query; GPL's generator stops after 64 tokens."""
_LABEL = linear_pattern(
    r"^\W*(?:(?:search|the|my|possible|user|mögliche)\s++|搜索)?"
    r"(?:question|query|frage|anfrage|suchanfrage|suchfrage|问题|查询)\s*+\d*+\W*[:：]\s*",
    re.IGNORECASE,
)
_NUMBER = linear_pattern(r"^\s*(?:\d{1,2}[.)]|[-*•])\s+")
_OPENING = (
    r"(?:(?:sure|certainly|of course|here (?:is|are)|here['’]s|okay|ok|hier (?:ist|sind)|natürlich|gerne?)\b"
    r"|以下是|下面是|(?:好的|当然)(?=[，！。]|$))"
)
_NAME = r"(?:\b(?:question|query|frage|anfrage|suchanfrage)\b|问题|查询)"
_PREAMBLE = linear_pattern(rf"^{_OPENING}(?:[!.！。]*$|.*[:：]\s*$)", re.IGNORECASE)
_ANNOUNCED = linear_pattern(
    rf"^\*{{0,2}}(?:{_OPENING}[^:：?？]{{0,80}}{_NAME}[^:：?？]{{0,40}}"
    rf"|[^:：?？]{{0,80}}{_NAME}(?: (?:for|about) [^:?]{{0,40}})? (?:is|would be|could be|ist|lautet|wäre))"
    r"[:：]\**\s*(?=\S)",
    re.IGNORECASE,
)
"""An announcement before the query on its line, such as "Sure, here is a question:"."""
_DECLINED = linear_pattern(
    r"\bi(?:'m|\s?am)? ?(?:cannot|can't|won't|unable to|not able to)\b"
    r"|我(?:不能|无法).{0,20}(?:写|生成|提出)",
    re.IGNORECASE,
)
_TASK = linear_pattern(r"\b(?:question|quer(?:y|ies)|passage)\b|问题|查询", re.IGNORECASE)
"""Nouns that make "I cannot ..." a refusal here, besides those that all methods know."""
_QUOTES = "\"'“”„«»`*"


def query_in(answer: str) -> str:
    """Return an answer's query: its first line that is no preamble, without label, number and quotes.

    "" if there is none. A line that ends in a colon is a preamble if another line follows.
    """
    return answer[_place_in(answer)]


def _place_in(answer: str) -> slice:
    start, end = 0, len(answer.rstrip())
    for line in answer.splitlines(keepends=True):
        text = _NUMBER.sub("", line.strip())
        is_last = start + len(line) >= end
        if text and not _PREAMBLE.match(text) and (is_last or not text.rstrip(_QUOTES).endswith((":", "："))):
            bare = _LABEL.sub("", _ANNOUNCED.sub("", text)).strip().strip(_QUOTES).strip()
            if bare:
                at = start + line.rindex(bare)
                return slice(at, at + len(bare))
        start += len(line)
    return slice(0, 0)


def likelihood(answer: str, tokens: Sequence[TokenLogprob]) -> float:
    """Return the geometric mean of the probabilities of the tokens that hold a character of the query.

    The tokens of thoughts, preamble, label, quotes and later text don't count. 0 if the answer has no query,
    or if the tokens' texts don't add up to the answer: some APIs escape characters of several tokens.
    """
    offset = "".join(each.token for each in tokens).rfind(answer)
    place = _place_in(answer)
    first, last = offset + place.start, offset + place.stop
    counted: list[float] = []
    end = 0
    for each in tokens:
        start, end = end, end + len(each.token)
        if start < last and end > first:
            counted.append(each.logprob)
    return math.exp(math.fsum(counted) / len(counted)) if counted and offset >= 0 else 0.0


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
