"""Whether a passage answers a question, from their texts alone."""

import re
from collections.abc import Iterator
from functools import cache
from random import Random

from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.parsing import ReadSentence, read_sentence, readings, token_pattern
from synthbench.worlds.sandbox.questions import ANSWERS, QUESTIONS, relevance
from synthbench.worlds.sandbox.realisation import QUANTITIES, object_phrase, place_phrase, tell
from synthbench.worlds.sandbox.sampling import draw_event
from synthbench.worlds.sandbox.vocabulary import domains

_TRIES = 200
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def relevance_of(passage: str, question: str) -> float | None:
    """Return a passage's relevance for a question, in [0, 1]: 1 if it answers, 0.5 if in part.

    None if the question, or every sentence of the passage, is outside the grammar.
    """
    told = [known for text in _SENTENCE_END.split(passage) if (known := read_sentence(text)) is not None]
    words = _lowered(question)
    if not told or not any(
        _pattern(domain, slot).fullmatch(words) for domain in domains() for slot in QUESTIONS
    ):
        return None
    grades = (relevance(asked, slot, each.event) for each in told for slot, asked in _asked(words, each))
    return max(grades, default=0.0) / ANSWERS


def events_asked_for(question: str, random: Random) -> Iterator[tuple[str, Event]]:
    """Yield slots that a question may ask for, and events that fill them: what it hides is drawn.

    Nothing for texts outside the grammar.
    """
    words = _lowered(question)
    for domain in domains():
        if any(_pattern(domain, slot).fullmatch(words) for slot in QUESTIONS):
            for _ in range(_TRIES):
                told = read_sentence(tell(draw_event([domain], random), "captions", random))
                assert told is not None
                found = _asked(words, told)
                yield from ((slot, event) for slot, event in found if getattr(event, slot) is not None)


def _lowered(question: str) -> str:
    """Return a question on one line, with a small first letter."""
    words = " ".join(question.split())
    return words[:1].lower() + words[1:]


def _asked(question: str, told: ReadSentence) -> Iterator[tuple[str, Event]]:
    """Yield the slot and the event that a question asks about, its hidden words being those of `told`."""
    for slot, form in QUESTIONS.items():
        match = _pattern(told.event.domain, slot).fullmatch(question)
        if match is not None:
            found = {**_words(told, slot), **match.groupdict()}
            yield from ((slot, event) for event, _ in readings(domains()[told.event.domain], form, found))


def _words(told: ReadSentence, slot: str) -> dict[str, str | None]:
    """Return the words of the slot that a question hides, as in a caption."""
    wording = told.wording
    if slot == "agent":
        quantity = QUANTITIES["captions"][told.event.number][0]
        return {"quantity": quantity, "attribute": None, "agent": wording.agent}
    if slot == "object":
        return {"object": object_phrase(wording.object, "captions")}
    if slot == "place":
        return {"place": place_phrase(wording.place, "captions") if told.event.place else None}
    return {"time": wording.time if told.event.time else None}


@cache
def _pattern(domain: str, slot: str) -> re.Pattern[str]:
    pieces = QUESTIONS[slot].pieces
    return re.compile(
        "".join(
            re.escape(piece) if position % 2 == 0 else token_pattern(domain, "captions", piece)
            for position, piece in enumerate(pieces)
        )
    )
