"""Whether a passage answers a question, from their texts alone."""

from collections.abc import Iterator
from random import Random

from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.parsing import form_pattern, read_sentence, readings, sentences_told
from synthbench.worlds.sandbox.questions import ANSWERS, QUESTIONS, relevance
from synthbench.worlds.sandbox.realisation import QUANTITIES, WordedEvent, tell
from synthbench.worlds.sandbox.sampling import draw_event
from synthbench.worlds.sandbox.vocabulary import domains

_TRIES = 200


def relevance_of(passage: str, question: str) -> float | None:
    """Return a passage's relevance for a question, in [0, 1]: 1 if it answers, 0.5 if in part.

    None if the question, or every sentence of the passage, is outside the grammar.
    """
    told, words = sentences_told(passage), _lowered(question)
    if not told or not any(_is_question(words, domain) for domain in domains()):
        return None
    grades = (relevance(asked, slot, each.event) for each in told for slot, asked in _asked(words, each))
    return max(grades, default=0.0) / ANSWERS


def events_asked_for(question: str, random: Random) -> Iterator[tuple[str, Event]]:
    """Yield drawn answers to a question, each as the slot asked for and an event with a value in that slot.

    Yields nothing if the question is outside the grammar.
    """
    words = _lowered(question)
    for domain in domains():
        if _is_question(words, domain):
            for _ in range(_TRIES):
                told = read_sentence(tell(draw_event([domain], random), "captions", random))
                assert told is not None
                found = _asked(words, told)
                yield from ((slot, event) for slot, event in found if getattr(event, slot) is not None)


def _lowered(question: str) -> str:
    """Return a question on one line, with a lower-case first letter."""
    words = " ".join(question.split())
    return words[:1].lower() + words[1:]


def _is_question(words: str, domain: str) -> bool:
    return any(form_pattern(domain, form).fullmatch(words) for form in QUESTIONS.values())


def _asked(question: str, told: WordedEvent) -> Iterator[tuple[str, Event]]:
    """Yield the slot that a question asks for, and the question's event with that slot filled from `told`."""
    for slot, form in QUESTIONS.items():
        match = form_pattern(told.event.domain, form).fullmatch(question)
        if match is not None:
            found = {**_words(told, slot), **match.groupdict()}
            readable = readings(domains()[told.event.domain], form, found)
            yield from ((slot, each.event) for each in readable)


def _words(told: WordedEvent, slot: str) -> dict[str, str | None]:
    """Return `told`'s words for the slot that a question asks for, as a caption has them."""
    words = told.wording
    if slot == "agent":
        quantity = QUANTITIES["captions"][told.event.number][0]
        return {"quantity": quantity, "attribute": None, "agent": words.agent}
    return {slot: getattr(words, slot) or None}
