"""Parse the JSON in an LLM's answer; missing or unusable parts get a reason, and are never guessed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synthbench.api import is_invisible, linear_pattern, looks_like_a_refusal
from synthbench_brainstorm.prompts import Keys

EMPTY = "empty"
REFUSAL = "refusal"
NO_JSON = "no JSON"
CUT_OFF = "JSON that ends too early"
NO_TASKS = "no list of tasks"
_DECODER = json.JSONDecoder(strict=False)
_OPENING = linear_pattern(r"[\[{]")
_CONTENT = linear_pattern(r"[^\W_]")
_READINGS = 20
_LEAST_READ = 1_000_000
"""Characters that failed parsing may read: 20 times the answer's, plus these; a bracket may begin no JSON."""
_ENDS = " .!?…\"'“”‘’"


class AnswerError(ValueError):
    """Reason why an answer can't be used."""


@dataclass(frozen=True, slots=True)
class TripletTexts:
    """The three texts of a record."""

    anchor: str
    positive: str
    negative: str


def tasks_in(answer: str) -> list[str]:
    """Return the tasks in an answer, each on one line; raises AnswerError without a list of texts.

    The list is the answer, or a value of a JSON object. Remarks around the JSON are ignored.
    """
    for value in _values(answer):
        lists = [value] if isinstance(value, list) else list(value.values())
        for found in lists:
            if isinstance(found, list) and found and all(isinstance(item, str) for item in found):
                return [task for task in map(_on_one_line, found) if _CONTENT.search(task)]
    raise AnswerError(NO_TASKS)


def texts_in(answer: str, keys: Keys) -> TripletTexts:
    """Return the texts of a record in an answer; raises AnswerError if one is missing, empty or repeated."""
    objects = [value for value in _values(answer) if isinstance(value, dict)]
    names = (keys.anchor, keys.positive, keys.negative)
    found = max(objects, key=lambda each: sum(name in each for name in names), default=None)
    if found is None:
        raise AnswerError("no JSON object")
    texts = [_text(found, name) for name in names]
    for position, name in enumerate(names):
        earlier = [same_text(text) for text in texts[:position]]
        if same_text(texts[position]) in earlier:
            raise AnswerError(f"{name}: equal to {names[earlier.index(same_text(texts[position]))]}")
    return TripletTexts(*texts)


def same_text(text: str) -> str:
    """Return a text for comparison: without case, extra white space and punctuation at its ends."""
    return " ".join(text.casefold().split()).strip(_ENDS)


def _text(found: Mapping[str, Any], name: str) -> str:
    if name not in found:
        raise AnswerError(f"{name}: missing")
    value = found[name]
    if not isinstance(value, str):
        raise AnswerError(f"{name}: no text")
    text = _on_one_line(value)
    if is_invisible(text) or not _CONTENT.search(text):
        raise AnswerError(f"{name}: {EMPTY}")
    if looks_like_a_refusal(text):
        raise AnswerError(f"{name}: {REFUSAL}")
    return text


def _values(answer: str) -> Sequence[Any]:
    """Return the JSON objects and lists in an answer, in order; raises AnswerError if there is none."""
    if not _CONTENT.search(answer):
        raise AnswerError(EMPTY)
    found = list(_decoded(answer))
    if found:
        return found
    if _OPENING.search(answer) is None:
        raise AnswerError(REFUSAL if looks_like_a_refusal(answer) else NO_JSON)
    raise AnswerError(CUT_OFF if answer.rstrip()[-1:] not in ("]", "}", "`") else NO_JSON)


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
    """Return the number of characters parsed before an error; it counts lines up to its position, too."""
    return len(error.doc) if error.msg.startswith("Unterminated") else error.pos + 1


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
