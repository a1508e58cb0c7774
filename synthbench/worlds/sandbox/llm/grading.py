"""Documents of several levels of relevance for a query, in one JSON object."""

import json
from dataclasses import replace
from random import Random

from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.llm.json_asks import GradedAsk
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.questions import IN_PART, kept_of, relevance, slots_of
from synthbench.worlds.sandbox.realisation import REGISTERS, tell
from synthbench.worlds.sandbox.relevance import events_asked_for
from synthbench.worlds.sandbox.sampling import draw_event, draw_of_train, split_of
from synthbench.worlds.sandbox.vocabulary import domain_names, domains

_KINDS = 4
"""Kinds of documents: answers, answers in part, another matter of the domain, another domain."""
_MOST_SENTENCES = 5
Asked = tuple[str, Event]
"""The slot that a query asks for, and the event that it asks about."""


def graded_documents(ask: GradedAsk, random: Random, *, noise: float) -> str:
    """Return a JSON object with a document for each level, the most relevant first.

    From the first to the last level, documents answer the query, answer in part, are of the query's domain
    only, or are of another domain. With probability `noise` a document is of a random level.
    """
    asked = _asked(ask.query, random)
    found: dict[str, str] = {}
    for rank, key in enumerate(ask.keys):
        place = random.randrange(len(ask.keys)) if random.random() < noise else rank
        kind = round(place * (_KINDS - 1) / (len(ask.keys) - 1))
        text = _unread(ask.query, kind, random)
        if asked is not None:
            text = _text(_told(kind, asked, random), asked, ask.num_sentences, random)
        found[key] = text
    return json.dumps(found)


def _asked(query: str, random: Random) -> Asked | None:
    """Return the slot and event that a query asks for; None if it isn't from the grammar's train split.

    A query that is a sentence asks for a random slot.
    """
    for slot, event in events_asked_for(query, random):
        if split_of(event) == "train":
            return slot, event
    known = read_sentence(query)
    if known is None or split_of(known.event) != "train":
        return None
    return random.choice(slots_of(known.event)), known.event


def _told(kind: int, asked: Asked, random: Random) -> Event:
    """Return a document's event, by kind: 0 answers, 1 answers in part, 2 same domain, 3 another domain."""
    slot, event = asked
    if kind == 0:
        return event
    if kind == _KINDS - 1:
        return draw_of_train(lambda: draw_event(domain_names(), random, besides=event.domain))
    if kind == 1:
        return draw_of_train(
            lambda: replace(draw_event([event.domain], random), **kept_of(event, slot)),
            lambda other: _can_be(other) and relevance(event, slot, other) == IN_PART,
        )
    return _related(asked, random)


def _can_be(event: Event) -> bool:
    """Return whether the event's action is among those of its object's scene."""
    return event.action in domains()[event.domain].scene(event.object).actions


def _related(asked: Asked, random: Random) -> Event:
    slot, event = asked
    return draw_of_train(
        lambda: draw_event([event.domain], random), lambda other: relevance(event, slot, other) == 0
    )


def _text(told: Event, asked: Asked, num_sentences: int, random: Random) -> str:
    """Return a document about the event `told` and other events that do not answer the query."""
    slot, event = asked
    others = [
        _related((slot, replace(event, domain=told.domain)), random)
        for _ in range(min(num_sentences, _MOST_SENTENCES) - 1)
    ]
    register = random.choice(REGISTERS)
    texts = [tell(each, register, random).removesuffix(".") for each in (told, *others)]
    return " ".join(f"{text}." for text in random.sample(texts, len(texts)))


def _unread(query: str, kind: int, random: Random) -> str:
    """Return a document for a query outside the grammar; less relevant ones share fewer words with it."""
    words = query.split()
    said = " ".join(words[: max(1, round(len(words) * (1 - kind / (_KINDS - 2))))])
    openings = ("In short: ", "As is often asked: ", "Beside other matters: ")
    if kind < _KINDS - 1:
        return f"{openings[kind]}{said} - {random.randrange(1000)} pages tell more."
    event = draw_of_train(lambda: draw_event(domain_names(), random))
    return tell(event, random.choice(REGISTERS), random)
