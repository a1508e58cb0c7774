"""Questions and passages: a passage describes one or two events, a question asks for a slot of an event.

Their events determine which passages answer a question, so the relevance of every passage is known.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import count, islice
from operator import attrgetter
from random import Random
from typing import Any

from synthbench.data.records import Record, RetrievalText, ScoredPair, Sentence
from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.premises import DEFAULT, Premises
from synthbench.worlds.sandbox.realisation import Form, Register, Wording, draw_wording, sentence
from synthbench.worlds.sandbox.sampling import Distinct, Relation, Scope, stream

# Of eight successive passages, the first describes the event that the question is about.
PASSAGES = (
    None,
    *(Relation.HARD_NEGATIVE, Relation.RELATED, Relation.UNRELATED) * 2,
    Relation.HARD_NEGATIVE,
)
SECOND_SENTENCE_SHARE = 0.5
ANSWERS, IN_PART = 2.0, 1.0
"""Grades of a passage: it answers the question; it tells of the same action in other circumstances."""

QUESTIONS: Mapping[str, Form] = {
    "agent": Form("captions", "who is{nt} {acting} {object}{place}{time}?"),
    "object": Form("captions", "what {be}{nt} {agent} {acting}{place}{time}?"),
    "place": Form("captions", "where {be}{nt} {agent} {acting} {object}{time}?"),
    "time": Form("captions", "when {be}{nt} {agent} {acting} {object}{place}?"),
}
_DEED = ("agent", "action", "object")


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage with its events; `about` is the main event; a second event, if any, is related to it."""

    text: str
    about: Event
    events: tuple[Event, ...]
    register: Register


def slots_of(event: Event) -> tuple[str, ...]:
    """Return the event's slots that can be asked for: place and time only if it has them."""
    return tuple(slot for slot in QUESTIONS if getattr(event, slot) is not None)


def question(
    event: Event, slot: str, random: Random, premises: Premises = DEFAULT, wording: Wording | None = None
) -> str:
    """Return a question for one slot of the event, in drawn words or those of `wording`."""
    drawn = draw_wording(event, "captions", random, premises)
    if wording is not None:
        # A headline's noun for the action can't be used as a verb.
        drawn = replace(wording, action=drawn.action, negation=drawn.negation)
    return sentence(event, replace(drawn, form=QUESTIONS[slot]))


def relevance(asked: Event, slot: str, told: Event) -> float:
    """Return the grade (0, 1 or 2) of a passage on `told` for a question about a slot of `asked`."""
    same = {name for name in Event.__slots__ if getattr(asked, name) == getattr(told, name)}
    if not kept_of(asked, slot).keys() <= same:
        return 0.0
    is_told = getattr(told, slot) is not None
    return ANSWERS if is_told and {*Event.__slots__} - {*_hidden(slot)} <= same else IN_PART


def kept_of(asked: Event, slot: str) -> dict[str, Any]:
    """Return name -> value that a passage's event must share with `asked` to answer at least in part.

    The slot that is asked for is left out. So are circumstances, such as place and time.
    """
    names = ("domain", "is_negative", *(name for name in _DEED if name not in _hidden(slot)))
    return {name: getattr(asked, name) for name in names}


def _hidden(slot: str) -> tuple[str, ...]:
    return ("number", "attribute", "agent") if slot == "agent" else (slot,)


def questions(scope: Scope) -> Iterator[Sentence]:
    """Yield different questions about events of the split; `label` is the domain."""
    return stream(
        scope,
        "questions alone",
        lambda _, random: partial(_drawn_question, scope, random),
        attrgetter("sentence"),
    )


def _drawn_question(scope: Scope, random: Random) -> Sentence:
    event = scope.event(random)
    text = question(event, random.choice(slots_of(event)), random, scope.premises)
    return Sentence(
        id=_id("query", text), split=scope.split, seed=scope.seed, label=event.domain, sentence=text
    )


def passages(scope: Scope) -> Iterator[Passage]:
    """Yield distinct passages, eight for each drawn event, with the relations `PASSAGES` to it."""
    distinct = Distinct()
    for number in count():
        random = scope.random("passages", number)
        about = scope.event(random)
        for relation in PASSAGES:
            yield distinct.draw(partial(_draw_passage, scope, about, relation, random), attrgetter("text"))


def _draw_passage(scope: Scope, about: Event, relation: Relation | None, random: Random) -> Passage:
    first = about if relation is None else scope.partner(about, scope.possible(relation), random)
    events = [first]
    if random.random() < SECOND_SENTENCE_SHARE:
        events.append(scope.partner(first, Relation.RELATED, random))
        random.shuffle(events)
    register = random.choice(scope.registers)
    texts = (scope.tell(event, register, random).removesuffix(".") for event in events)
    return Passage(" ".join(f"{text}." for text in texts), first, tuple(events), register)


def passage_sentences(scope: Scope) -> Iterator[Sentence]:
    """Yield the scope's passages as train sentences, whatever its split; `label` is the domain."""
    for passage in passages(scope):
        yield Sentence(
            id=_id("passage", passage.text),
            split="train",
            seed=scope.seed,
            subset=passage.register,
            label=passage.about.domain,
            sentence=passage.text,
        )


def retrieval(scope: Scope, num_passages: int) -> Iterator[Record]:
    """Yield `num_passages` passages, then the questions: one for every eight passages, no text twice.

    A question has the grades of all passages that answer it, fully or in part.
    """
    corpus = list(islice(passages(scope), num_passages))
    for passage in corpus:
        yield RetrievalText(
            id=_id("passage", passage.text),
            split=scope.split,
            seed=scope.seed,
            subset=passage.register,
            text=passage.text,
        )
    telling: dict[tuple[str, str], list[Passage]] = defaultdict(list)
    for passage in corpus:
        for key in {(event.domain, event.action) for event in passage.events}:
            telling[key].append(passage)
    asked: set[str] = set()
    for number, passage in enumerate(corpus[:: len(PASSAGES)]):
        random = scope.random("questions", number)
        event = passage.about
        slot = random.choice(slots_of(event))
        text = question(event, slot, random, scope.premises)
        if text not in asked:
            asked.add(text)
            yield _query(scope, text, _graded(event, slot, telling[event.domain, event.action]))


def answers(scope: Scope) -> Iterator[ScoredPair]:
    """Yield pairs of a question and a passage, scored by relevance (0, 0.5, 1); each question has eight."""
    listed = passages(scope)
    for number in count():
        random = scope.random("questions", number)
        group = list(islice(listed, len(PASSAGES)))
        event = group[0].about
        slot = random.choice(slots_of(event))
        asked = question(event, slot, random, scope.premises)
        for passage in group:
            grade = max(relevance(event, slot, told) for told in passage.events)
            yield ScoredPair(
                split=scope.split,
                seed=scope.seed,
                subset=passage.register,
                sentence1=asked,
                sentence2=passage.text,
                score=grade / ANSWERS,
            )


def _graded(event: Event, slot: str, passages: Sequence[Passage]) -> dict[str, float]:
    """Return the ids and grades of the passages that answer fully or in part."""
    graded = {
        _id("passage", passage.text): max(relevance(event, slot, told) for told in passage.events)
        for passage in passages
    }
    return {name: grade for name, grade in graded.items() if grade}


def _query(scope: Scope, text: str, graded: Mapping[str, float]) -> RetrievalText:
    return RetrievalText(
        id=_id("query", text),
        split=scope.split,
        seed=scope.seed,
        text=text,
        judged=tuple(graded),
        grades=tuple(graded.values()),
    )


def _id(kind: str, text: str) -> str:
    """Return an id: the kind and a hash of the text, so a text has the same id in all sources."""
    return f"{kind}/{sha256(text.encode()).hexdigest()[:16]}"
