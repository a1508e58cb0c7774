"""Draw events, events in a given relation to another, and sentences that describe them."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import count
from random import Random
from typing import Any, Literal, TypeVar

from synthbench.base.errors import UserError
from synthbench.worlds.sandbox import VERSION
from synthbench.worlds.sandbox.events import DECIMALS, NUMBERS, Event
from synthbench.worlds.sandbox.premises import DEFAULT, Origin, Premises
from synthbench.worlds.sandbox.realisation import Register, WordedEvent, draw_wording
from synthbench.worlds.sandbox.vocabulary import Concepts, domain_names, domains, times

Split = Literal["train", "dev", "test"]
Drawn = TypeVar("Drawn")
MAX_DRAWS = 10_000
MAX_WORDINGS = 100

SPLIT_SHARES: Mapping[Split, int] = {"train": 60, "dev": 20, "test": 20}
NUMBER_WEIGHTS = (55, 15, 10, 20)
ATTRIBUTE_SHARE = 0.5
PLACE_SHARE = 0.6
TIME_SHARE = 0.3
NEGATIVE_SHARE = 0.08
# The slots that a hard negative changes: one or two that define the event, or its polarity.
DECISIVE_CHANGES: tuple[tuple[str, ...], ...] = (
    ("action",),
    ("object",),
    ("agent",),
    ("action", "object"),
    ("agent", "object"),
    ("polarity",),
)
KEPT_CIRCUMSTANCE_SHARE = 0.5
KEPT_ACTION_SHARE = 0.3


class Relation(StrEnum):
    """The relation of a pair's second event to the first."""

    PARAPHRASE = "paraphrase"
    HARD_NEGATIVE = "hard negative"
    RELATED = "related"
    UNRELATED = "unrelated"


def split_of(event: Event) -> Split:
    """Return the split of an event, and so of every sentence that describes it."""
    digest = hashlib.sha256(f"split/{event.key()}".encode()).digest()
    return split_at(int.from_bytes(digest[:4]) % 100)


def split_at(percentile: int) -> Split:
    """Return the split of a percentile, 0 to 99."""
    if percentile < SPLIT_SHARES["train"]:
        return "train"
    return "dev" if percentile < SPLIT_SHARES["train"] + SPLIT_SHARES["dev"] else "test"


def draw_event(
    names: Sequence[str], random: Random, premises: Premises = DEFAULT, *, besides: str | None = None
) -> Event:
    """Draw an event of one of the domains `names`, other than the domain `besides`.

    With probability `premises.foreign`, the domain is drawn from all domains instead of `names`.
    If `premises.stories` is not 0, the event is a variation of a story.
    """
    is_foreign = premises.foreign > 0 and random.random() < premises.foreign
    name = random.choice([each for each in (domain_names() if is_foreign else names) if each != besides])
    if premises.stories == 0:
        return _event(name, random)
    return _variation(
        _story(premises.origin, name, random.randrange(premises.stories)), premises.retelling, random
    )


@cache
def _story(origin: Origin, name: str, number: int) -> Event:
    """Return a story's event; the first n stories of a domain are the same for every n."""
    return _event(name, Random(f"{origin}/{VERSION}/story/{name}/{number}"))


def _variation(story: Event, retelling: float, random: Random) -> Event:
    """Return a story's event, with each slot drawn anew with probability `retelling`, polarity always.

    A new action or object is from the story's scene.
    """
    scene = domains()[story.domain].scene(story.object)
    drawn = _slots(story.domain, random)
    drawn["action"] = random.choice(list(scene.actions))
    drawn["object"] = random.choice(list(scene.objects))
    for slot in ("number", "attribute", "agent", "action", "object", "place", "time"):
        if random.random() >= retelling:
            drawn[slot] = getattr(story, slot)
    return Event(**drawn)


def _event(name: str, random: Random) -> Event:
    return Event(**_slots(name, random))


def _slots(name: str, random: Random) -> dict[str, Any]:
    domain = domains()[name]
    scene = random.choice(domain.scenes)
    return {
        "domain": domain.name,
        "number": random.choices(NUMBERS, NUMBER_WEIGHTS)[0],
        "attribute": _draw_optional(domain.attributes, ATTRIBUTE_SHARE, random),
        "agent": random.choice(list(domain.agents)),
        "action": random.choice(list(scene.actions)),
        "object": random.choice(list(scene.objects)),
        "place": _draw_optional(domain.places, PLACE_SHARE, random),
        "time": _draw_optional(times(), TIME_SHARE, random),
        "is_negative": random.random() < NEGATIVE_SHARE,
    }


def draw_partner(
    event: Event, relation: Relation, names: Sequence[str], random: Random, premises: Premises = DEFAULT
) -> Event:
    """Draw an event in this relation to the given one.

    An unrelated event is of another domain: drawn from `names`, or with probability `premises.foreign` from
    all domains. `names` must contain a domain other than the event's.
    """
    if relation is Relation.PARAPHRASE:
        return event
    if relation is Relation.HARD_NEGATIVE:
        return _hard_negative(event, random)
    if relation is Relation.RELATED:
        return _related(event, random, premises)
    return draw_event(names, random, premises, besides=event.domain)


def _hard_negative(event: Event, random: Random) -> Event:
    domain = domains()[event.domain]
    scene = domain.scene(event.object)
    changed = random.choice(DECISIVE_CHANGES)
    if changed == ("polarity",):
        return replace(event, is_negative=not event.is_negative)
    choices = {"action": scene.actions, "object": scene.objects, "agent": domain.agents}
    values: dict[str, Any] = {
        slot: _draw_other(choices[slot], getattr(event, slot), random) for slot in changed
    }
    return replace(event, **values)


def _related(event: Event, random: Random, premises: Premises) -> Event:
    """Draw another event of the domain that shares some circumstances, rarely the action."""
    other = draw_event([event.domain], random, premises.without("foreign"))
    slots = ("number", "attribute", "agent", "place", "time")
    kept = {slot: getattr(event, slot) for slot in slots if random.random() < KEPT_CIRCUMSTANCE_SHARE}
    scene = domains()[event.domain].scene(other.object)
    if event.action in scene.actions and random.random() < KEPT_ACTION_SHARE:
        kept["action"] = event.action
    return replace(other, **kept)


def _draw_other(concepts: Concepts, name: str, random: Random) -> str:
    return random.choice([other for other in concepts if other != name])


def _draw_optional(concepts: Concepts, share: float, random: Random) -> str | None:
    return random.choice(list(concepts)) if random.random() < share else None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a stream of records draws from: a split, registers (one per record), at least one domain."""

    split: Split
    seed: int
    registers: tuple[Register, ...]
    domains: tuple[str, ...]
    premises: Premises = DEFAULT

    def random(self, purpose: str, position: int) -> Random:
        """Return the generator of random numbers for one item of a stream."""
        names = ",".join((*self.registers, *self.domains))
        return Random(f"sandbox/{VERSION}/{purpose}/{self.split}/{self.seed}/{names}/{position}")

    def event(self, random: Random) -> Event:
        """Draw an event of the split."""
        return draw_until(lambda: draw_event(self.domains, random, self.premises), self.holds)

    def holds(self, event: Event) -> bool:
        """Return whether an event is of the split."""
        return split_of(event) == self.split

    def possible(self, relation: Relation) -> Relation:
        """Return the relation, or `RELATED` instead of `UNRELATED` if the scope has only one domain."""
        has_others = len(self.domains) > 1
        return relation if has_others or relation is not Relation.UNRELATED else Relation.RELATED

    def partner(self, event: Event, relation: Relation, random: Random) -> Event:
        """Draw an event of the split in this relation to the given one."""
        return draw_until(
            lambda: draw_partner(event, relation, self.domains, random, self.premises), self.holds
        )

    def tell(self, event: Event, register: Register, random: Random) -> str:
        """Draw one of the event's sentences."""
        return self.worded(event, register, random).text

    def worded(self, event: Event, register: Register, random: Random) -> WordedEvent:
        """Draw a wording of the event."""
        return WordedEvent(event, draw_wording(event, register, random, self.premises))

    def tell_anew(
        self, event: Event, register: Register, known: Collection[str], random: Random
    ) -> str | None:
        """Draw a sentence for the event that is not in `known`, None if none is found.

        If all sentences in usual words are known, any words may be used.
        """
        freely = replace(self, premises=self.premises.without("usual_words"))
        drawn = (scope.tell(event, register, random) for scope in (self, freely) for _ in range(MAX_WORDINGS))
        return next((text for text in drawn if text not in known), None)

    def worded_beside(
        self, event: Event, first: WordedEvent, register: Register, random: Random
    ) -> WordedEvent:
        """Draw a wording of a pair's second event.

        If the events differ, the form and words of `first` are kept where they fit, with probability
        `premises.edits`. If the events are equal, usual words are not preferred.
        """
        if event == first.event:
            return WordedEvent(
                event, draw_wording(event, register, random, self.premises.without("usual_words"))
            )
        like = first if random.random() < self.premises.edits else None
        return WordedEvent(event, draw_wording(event, register, random, self.premises, like))

    def annotated(self, score: float, random: Random) -> float:
        """Return the score with an annotator's error; for the test split, the exact score."""
        error = self.premises.gold_noise
        if self.split == "test" or not error:
            return score
        return round(min(1.0, max(0.0, random.gauss(score, error))), DECIMALS)


def draw_until(draw: Callable[[], Event], suits: Callable[[Event], bool]) -> Event:
    """Draw until an event suits.

    Raises UserError if none of 10,000 does: with few, hardly varied stories, a split may have no events.
    """
    for _ in range(MAX_DRAWS):
        event = draw()
        if suits(event):
            return event
    raise UserError(
        f"the sandbox's world has no suitable event among {MAX_DRAWS:,}: "
        "give it more stories or more retelling, or draw from more domains"
    )


def draw_of_train(draw: Callable[[], Event], suits: Callable[[Event], bool] = lambda _: True) -> Event:
    """Draw a suitable event of the train split, so that no text describes a test event."""
    return draw_until(draw, lambda event: split_of(event) == "train" and suits(event))


def stream(
    scope: Scope,
    purpose: str,
    drawer: Callable[[int, Random], Callable[[], Drawn]],
    key: Callable[[Drawn], Hashable],
) -> Iterator[Drawn]:
    """Yield endless items with distinct keys; `drawer` returns a draw function per position 0, 1, ..."""
    distinct = Distinct()
    for position in count():
        yield distinct.draw(drawer(position, scope.random(purpose, position)), key)


class Distinct:
    """Draws items without repetition."""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()

    def draw(self, draw: Callable[[], Drawn], key: Callable[[Drawn], Hashable]) -> Drawn:
        """Draw until an item has a new key.

        Raises UserError if 10,000 draws give none: all items seem to have been drawn.
        """
        for _ in range(MAX_DRAWS):
            drawn = draw()
            if key(drawn) not in self._seen:
                self._seen.add(key(drawn))
                return drawn
        raise UserError(
            f"the sandbox has only about {len(self._seen):,} different records of this kind: "
            "ask for fewer, or draw from more domains and registers"
        )
