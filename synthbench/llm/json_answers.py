"""Read the JSON in an LLM's answer; missing or unusable parts get a reason, and are never guessed."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from synthbench.base.patterns import linear_pattern
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.tables.characters import is_invisible

EMPTY = "empty"
REFUSAL = "refusal"
NO_JSON = "no JSON"
NO_OBJECT = "no JSON object"
CUT_OFF = "JSON that ends too early"
_DECODER = json.JSONDecoder(strict=False)
_OPENING = linear_pattern(r"[\[{]")
_CONTENT = linear_pattern(r"[^\W_]")
_READINGS = 20
_LEAST_READ = 1_000_000
"""Parsing stops once failed attempts (brackets that begin no JSON) have read this number of characters plus
20 times the answer's length."""
_ENDS = " .!?…\"'“”‘’"


class AnswerError(ValueError):
    """Reason why an answer can't be used."""


def json_values(answer: str) -> Sequence[Any]:
    """Return the JSON objects and lists in an answer, in order; raises AnswerError if there is none.

    Text around them, such as remarks, fences and thoughts, is skipped.
    """
    if not _CONTENT.search(answer):
        raise AnswerError(EMPTY)
    found = list(_decoded(answer))
    if found:
        return found
    if _OPENING.search(answer) is None:
        raise AnswerError(REFUSAL if looks_like_a_refusal(answer) else NO_JSON)
    raise AnswerError(CUT_OFF if answer.rstrip()[-1:] not in ("]", "}", "`") else NO_JSON)


def json_object(answer: str, keys: Collection[str]) -> Mapping[str, Any]:
    """Return the JSON object with the most of these keys (the first if several tie).

    An object inside a list or another object counts only if it is the only object there. Raises AnswerError
    if no object counts.
    """
    objects = []
    for value in json_values(answer):
        items = list(value.values()) if isinstance(value, dict) else value
        inner = [item for item in items if isinstance(item, dict)]
        objects += [value] * isinstance(value, dict) + inner * (len(inner) == 1)
    if not objects:
        raise AnswerError(NO_OBJECT)
    return max(objects, key=lambda each: sum(key in each for key in keys))


def text_under(found: Mapping[str, Any], key: str) -> str:
    """Return the text under a key, on one line.

    Raises AnswerError if it is missing, empty, a refusal or not a text.
    """
    if key not in found:
        raise AnswerError(f"{key}: missing")
    value = found[key]
    if not isinstance(value, str):
        raise AnswerError(f"{key}: no text")
    text = " ".join(value.split())
    if is_invisible(text) or not _CONTENT.search(text):
        raise AnswerError(f"{key}: {EMPTY}")
    if looks_like_a_refusal(text):
        raise AnswerError(f"{key}: {REFUSAL}")
    return text


def has_content(text: str) -> bool:
    """Return whether a text has a letter or digit."""
    return _CONTENT.search(text) is not None


def same_text(text: str) -> str:
    """Return a text for comparison: in lower case, with single spaces, without punctuation at its ends."""
    return " ".join(text.casefold().split()).strip(_ENDS)


def _decoded(answer: str) -> Iterator[Any]:
    start, num_left = 0, _READINGS * len(answer) + _LEAST_READ
    while num_left > 0 and (match := _OPENING.search(answer, start)):
        try:
            value, start = _DECODER.raw_decode(answer, match.start())
        except json.JSONDecodeError as error:
            start = match.end()
            num_left -= _num_read(error)
        except (ValueError, RecursionError):
            return
        else:
            yield value


def _num_read(error: json.JSONDecodeError) -> int:
    """Return how many characters a failed parse has read: up to the fault, or all for an unclosed string."""
    return len(error.doc) if error.msg.startswith("Unterminated") else error.pos + 1
