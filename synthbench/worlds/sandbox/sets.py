"""The sandbox's data sets: endless streams of records, whose first n are the same for every n."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from random import Random
from typing import Any, Literal

from synthbench.base.errors import UserError
from synthbench.data.records import Ranking, Record, ScoredPair, Sentence, Triplet
from synthbench.worlds.sandbox.events import Event, similarity
from synthbench.worlds.sandbox.premises import Premises
from synthbench.worlds.sandbox.questions import answers, passage_sentences, questions
from synthbench.worlds.sandbox.realisation import Register
from synthbench.worlds.sandbox.sampling import (
    Relation,
    Scope,
    Split,
    draw_event,
    draw_until,
    split_at,
    split_of,
    stream,
)
from synthbench.worlds.sandbox.vocabulary import Scene, domains, people

PARAPHRASE, HARD_NEGATIVE = Relation.PARAPHRASE, Relation.HARD_NEGATIVE
RELATED, UNRELATED = Relation.RELATED, Relation.UNRELATED
# Per ten successive pairs, so that even a small set has all relations in these proportions.
PAIRS = (
    *(HARD_NEGATIVE, RELATED, PARAPHRASE, UNRELATED, HARD_NEGATIVE),
    *(RELATED, HARD_NEGATIVE, PARAPHRASE, UNRELATED, RELATED),
)
# Per ten candidates; the first two already make a ranking, with a right and a wrong candidate.
CANDIDATES = (PARAPHRASE, *(HARD_NEGATIVE, RELATED, UNRELATED) * 3)
RELEVANT = 0.9
# Per four pairs; half of the non-duplicates differ only a little.
DUPLICATES = (PARAPHRASE, HARD_NEGATIVE, PARAPHRASE, RELATED)

News = Literal["good news", "bad news"]
NEWS: tuple[News, News] = ("good news", "bad news")
DENIED_SHARE = 0.25
GOOD_ACTIONS = {
    "sport": {"win", "celebrate"},
    "sea": {"repair", "tow"},
    "construction": {"build", "renovate"},
    "education": {"attend", "prepare"},
    "politics": {"approve", "sign", "appoint", "praise"},
    "business": {"open", "expand", "launch", "produce"},
    "science": {"repair", "install"},
}
BAD_ACTIONS = {
    "sport": {"lose", "interrupt"},
    "sea": {"abandon"},
    "construction": {"demolish"},
    "education": {"cancel", "skip"},
    "politics": {"reject", "criticize", "delay", "dismiss", "accuse"},
    "business": {"close", "recall"},
    "science": {"switch off"},
}
SIX_CLASSES = ("cooking", "farming", "household", "sea", "sport", "traffic")


def records(name: str, scope: Scope, num_candidates: int) -> Iterator[Record]:
    """Yield the endless records of the named set; `num_candidates` is for rankings only."""
    if name == "rankings":
        return rankings(scope, num_candidates)
    streams: Mapping[str, Callable[[Scope], Iterator[Record]]] = {
        "pairs": lambda scope: (pair for pair, _ in pairs(scope)),
        "sentences": lambda scope: (sentence for sentence, _ in sentences(scope)),
        "triplets": triplets,
        "duplicates": duplicates,
        "two-classes": two_classes,
        "six-classes": six_classes,
        "passages": passage_sentences,
        "questions": questions,
        "answers": answers,
    }
    return streams[name](scope)


def _shared(scope: Scope, *texts: str) -> dict[str, Any]:
    """Return split, seed and id of a record: equal sentences have the same id in every source."""
    digest = hashlib.sha256("\x1f".join(texts).encode()).hexdigest()
    return {"id": f"sandbox/{digest[:16]}", "split": scope.split, "seed": scope.seed}


def _scored_pair(
    scope: Scope, texts: tuple[str, str], score: float, *, subset: str, label: str
) -> ScoredPair:
    return ScoredPair(
        **_shared(scope, *texts),
        subset=subset,
        label=label,
        sentence1=texts[0],
        sentence2=texts[1],
        score=score,
    )


def _sentence(scope: Scope, event: Event, register: Register, label: str, random: Random) -> Sentence:
    text = scope.tell(event, register, random)
    return Sentence(**_shared(scope, text), subset=register, label=label, sentence=text)


# Scored pairs.


def pairs(scope: Scope) -> Iterator[tuple[ScoredPair, tuple[Event, Event]]]:
    """Yield pairs of different sentences in one register, with their events, in the proportions of `PAIRS`.

    Scores are exact similarities in the test split, and have annotators' errors in others. With only one
    domain, related pairs replace unrelated ones.
    """

    def drawer(position: int, random: Random) -> Callable[[], tuple[ScoredPair, tuple[Event, Event]]]:
        return partial(_draw_pair, scope, scope.possible(PAIRS[position % len(PAIRS)]), random)

    return stream(scope, "pairs", drawer, lambda drawn: frozenset(drawn[0].texts()))


def _draw_pair(scope: Scope, relation: Relation, random: Random) -> tuple[ScoredPair, tuple[Event, Event]]:
    while True:
        register = random.choice(scope.registers)
        first = scope.event(random)
        second = scope.partner(first, relation, random)
        worded = scope.worded(first, register, random)
        texts = worded.text, scope.worded_beside(second, worded, register, random).text
        if texts[0] != texts[1]:
            break
    score = scope.annotated(similarity(first, second), random)
    return _scored_pair(scope, texts, score, subset=register, label=relation.value), (first, second)


# Sentences.


def sentences(scope: Scope) -> Iterator[tuple[Sentence, Event]]:
    """Yield distinct sentences, each with the event it tells; its label is the event's domain."""

    def drawer(_: int, random: Random) -> Callable[[], tuple[Sentence, Event]]:
        return partial(_draw_sentence, scope, random.choice(scope.registers), random)

    return stream(scope, "sentences", drawer, lambda drawn: drawn[0].sentence)


def _draw_sentence(scope: Scope, register: Register, random: Random) -> tuple[Sentence, Event]:
    event = scope.event(random)
    return _sentence(scope, event, register, event.domain, random), event


# Triplets as in natural language inference: an anchor, a sentence it entails, one it contradicts.


def triplets(scope: Scope) -> Iterator[Triplet]:
    """Yield a sentence, a paraphrase and a hard negative in one register; anchors are distinct."""
    return stream(
        scope, "triplets", lambda _, random: partial(_draw_triplet, scope, random), attrgetter("anchor")
    )


def _draw_triplet(scope: Scope, random: Random) -> Triplet:
    while True:
        register = random.choice(scope.registers)
        event = scope.event(random)
        worded = scope.worded(event, register, random)
        positive = scope.tell_anew(event, register, [worded.text], random)
        if positive is None:
            continue
        other = scope.partner(event, HARD_NEGATIVE, random)
        negative = scope.worded_beside(other, worded, register, random).text
        return Triplet(
            **_shared(scope, worded.text, positive, negative),
            subset=register,
            anchor=worded.text,
            positive=positive,
            negative=negative,
        )


# Rankings: queries with candidates, graded by their exact similarity to the query.


def rankings(scope: Scope, num_candidates: int) -> Iterator[Ranking]:
    """Yield rankings of different queries; candidates are shuffled, in the proportions of `CANDIDATES`.

    `num_candidates` is at least 2. A paraphrase has grade 1, any other less than `RELEVANT`.
    """
    return stream(
        scope,
        "rankings",
        lambda _, random: partial(_draw_ranking, scope, num_candidates, random),
        attrgetter("query"),
    )


def _draw_ranking(scope: Scope, num_candidates: int, random: Random) -> Ranking:
    while True:
        register = random.choice(scope.registers)
        event = scope.event(random)
        query = scope.tell(event, register, random)
        graded = _graded(scope, event, query, register, num_candidates, random)
        if graded is not None:
            break
    # The order of drawing would reveal the paraphrases.
    order = random.sample(sorted(graded), len(graded))
    return Ranking(
        **_shared(scope, query, *order),
        subset=register,
        query=query,
        candidates=tuple(order),
        grades=tuple(graded[text] for text in order),
    )


def _graded(
    scope: Scope, event: Event, query: str, register: Register, num_candidates: int, random: Random
) -> dict[str, float] | None:
    """Return candidates with grades; None if the query's event has too few other sentences."""
    graded: dict[str, float] = {}
    for number in range(num_candidates):
        other = _candidate(scope, event, CANDIDATES[number % len(CANDIDATES)], random)
        text = scope.tell_anew(other, register, {query, *graded}, random)
        if text is None:
            return None
        graded[text] = similarity(event, other)
    return graded


def _candidate(scope: Scope, event: Event, relation: Relation, random: Random) -> Event:
    """Draw an event in this relation, with a similarity below `RELEVANT` unless it is a paraphrase."""
    return draw_until(
        lambda: scope.partner(event, scope.possible(relation), random),
        lambda other: relation is PARAPHRASE or similarity(event, other) < RELEVANT,
    )


# Duplicates: pairs within one topic, as questions in a forum, that describe the same event or not.


def topic_of(event: Event) -> str:
    """Return an event's topic: a scene of its domain, named after its first object ("cooking/potatoes")."""
    scene = domains()[event.domain].scene(event.object)
    return f"{event.domain}/{next(iter(scene.objects))}"


def duplicates(scope: Scope) -> Iterator[ScoredPair]:
    """Yield pairs of one register and topic, as many duplicates (score 1) as others (score 0)."""
    return stream(
        scope,
        "duplicates",
        lambda position, random: partial(
            _draw_duplicate, scope, DUPLICATES[position % len(DUPLICATES)], random
        ),
        lambda pair: frozenset(pair.texts()),
    )


def _draw_duplicate(scope: Scope, relation: Relation, random: Random) -> ScoredPair:
    while True:
        register = random.choice(scope.registers)
        first = scope.event(random)
        second = _of_the_topic(scope, first, relation, random)
        sentence1 = scope.tell(first, register, random)
        sentence2 = scope.tell_anew(second, register, [sentence1], random)
        if sentence2 is not None:
            break
    label = "duplicate" if first == second else "different"
    return _scored_pair(
        scope, (sentence1, sentence2), float(first == second), subset=topic_of(first), label=label
    )


def _of_the_topic(scope: Scope, event: Event, relation: Relation, random: Random) -> Event:
    """Draw an event of the same topic: an equal event for a paraphrase, else a different event."""
    return draw_until(
        lambda: scope.partner(event, relation, random),
        lambda other: topic_of(other) == topic_of(event) and (other == event) == (relation is PARAPHRASE),
    )


# Two classes that no single word reveals. The action decides together with its negation: to win a match is
# good news, not to win it is bad, to lose it is bad, not to lose it is good. Domain, scene, object, agent and
# circumstances are independent of the class. One sentence in four is negated, so a bag of words is right
# three times in four at best.


def news(event: Event) -> News | None:
    """Return whether an event is good or bad news; None if neither."""
    is_good = event.action in GOOD_ACTIONS.get(event.domain, ())
    if not is_good and event.action not in BAD_ACTIONS.get(event.domain, ()):
        return None
    return "good news" if is_good != event.is_negative else "bad news"


def two_classes(scope: Scope) -> Iterator[Sentence]:
    """Yield distinct sentences labelled "good news" and "bad news" in turn.

    Raises UserError if no domain of the scope has both.
    """
    names = [name for name in scope.domains if name in GOOD_ACTIONS]
    if not names:
        raise UserError(f"the sandbox has good and bad news of {', '.join(GOOD_ACTIONS)} only")

    def drawer(position: int, random: Random) -> Callable[[], Sentence]:
        register, label = random.choice(scope.registers), NEWS[position % len(NEWS)]
        event = partial(_news_event, names, label, random, scope.premises)
        return lambda: _sentence(scope, draw_until(event, scope.holds), register, label, random)

    return stream(scope, "two classes", drawer, attrgetter("sentence"))


def _news_event(names: list[str], label: News, random: Random, premises: Premises) -> Event:
    name = random.choice(names)
    scene = random.choice(_news_scenes(name))
    is_denied = random.random() < DENIED_SHARE
    kind = GOOD_ACTIONS if (label == "good news") != is_denied else BAD_ACTIONS
    return replace(
        draw_event([name], random, premises.without("foreign")),
        action=random.choice([action for action in scene.actions if action in kind[name]]),
        object=random.choice(list(scene.objects)),
        is_negative=is_denied,
    )


@cache
def _news_scenes(name: str) -> tuple[Scene, ...]:
    """Return the domain's scenes with both good and bad actions, so that the scene reveals nothing."""
    kinds = (GOOD_ACTIONS[name], BAD_ACTIONS[name])
    return tuple(
        scene for scene in domains()[name].scenes if all(kind & scene.actions.keys() for kind in kinds)
    )


# Six classes: six domains in which anybody may act. Some share actions, so the object says most about the
# class. No object is in two splits, so that memorised words are of little use.


def six_classes(scope: Scope) -> Iterator[Sentence]:
    """Yield distinct sentences labelled with `SIX_CLASSES` in turn; the scope's domains do not matter."""

    def drawer(position: int, random: Random) -> Callable[[], Sentence]:
        register, label = random.choice(scope.registers), SIX_CLASSES[position % len(SIX_CLASSES)]

        def suits(event: Event) -> bool:
            return object_splits(label)[event.object] == split_of(event) == scope.split

        event = partial(_anybodys_event, label, random, scope.premises)
        return lambda: _sentence(scope, draw_until(event, suits), register, label, random)

    return stream(scope, "six classes", drawer, attrgetter("sentence"))


@cache
def object_splits(domain: str) -> dict[str, Split]:
    """Return object -> the only split it occurs in; every scene of the domain has objects in all splits."""
    found: dict[str, Split] = {}
    for scene in domains()[domain].scenes:
        ordered = sorted(scene.objects, key=lambda name: hashlib.sha256(name.encode()).digest())
        for rank, name in enumerate(ordered):
            found[name] = split_at(rank * 100 // len(ordered))
    return found


def _anybodys_event(label: str, random: Random, premises: Premises) -> Event:
    event = draw_event([label], random, premises.without("foreign"))
    return replace(event, agent=random.choice(list(people())))
