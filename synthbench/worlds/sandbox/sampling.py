"""Drawing events, events in a known relation to another, and sentences that tell them."""

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any, Literal, TypeVar

from synthbench.base.errors import UserError
from synthbench.worlds.sandbox import VERSION
from synthbench.worlds.sandbox.events import DECIMALS, NUMBERS, Event
from synthbench.worlds.sandbox.premises import DEFAULT, Origin, Premises
from synthbench.worlds.sandbox.realisation import Register, Told, draw_wording
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
# What a hard negative changes: one or two slots without which the event is another one, or its truth.
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
    """How the second event of a pair came from the first."""

    PARAPHRASE = "paraphrase"
    HARD_NEGATIVE = "hard negative"
    RELATED = "related"
    UNRELATED = "unrelated"


def split_of(event: Event) -> Split:
    """Return the split that an event, and so every sentence that tells it, belongs to."""
    digest = hashlib.sha256(f"split/{event.key()}".encode()).digest()
    return split_at(int.from_bytes(digest[:4]) % 100)


def split_at(percentile: int) -> Split:
    """Return the split of the item in this place, 0 to 99, of a hundred."""
    if percentile < SPLIT_SHARES["train"]:
        return "train"
    return "dev" if percentile < SPLIT_SHARES["train"] + SPLIT_SHARES["dev"] else "test"


def draw_event(
    names: Sequence[str], random: Random, premises: Premises = DEFAULT, *, besides: str | None = None
) -> Event:
    """Draw an event of a domain other than `besides`: a variation of one of its stories, if there are any."""
    is_foreign = premises.foreign > 0 and random.random() < premises.foreign
    name = random.choice([each for each in (domain_names() if is_foreign else names) if each != besides])
    if premises.stories == 0:
        return _event(name, random)
    return _variation(
        _story(premises.origin, name, random.randrange(premises.stories)), premises.retelling, random
    )


@cache
def _story(origin: Origin, name: str, number: int) -> Event:
    """Return the event that a story is about; the first n stories of a domain are the same for every n."""
    return _event(name, Random(f"{origin}/{VERSION}/story/{name}/{number}"))


def _variation(story: Event, retelling: float, random: Random) -> Event:
    """Draw each slot anew with this chance, object and action within the scene; the polarity always."""
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

    An unrelated event is of another domain: of `names`, where there must be one, or any if it is foreign.
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
    """Draw another event of the domain that shares some circumstances, seldom the action."""
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
    """What a stream draws from: a split, registers (each record stays within one) and at least one domain."""

    split: Split
    seed: int
    registers: tuple[Register, ...]
    domains: tuple[str, ...]
    premises: Premises = DEFAULT

    def random(self, purpose: str, position: int) -> Random:
        """Return the source of randomness of one item."""
        names = ",".join((*self.registers, *self.domains))
        return Random(f"sandbox/{VERSION}/{purpose}/{self.split}/{self.seed}/{names}/{position}")

    def event(self, random: Random) -> Event:
        """Draw an event of the split."""
        return draw_until(lambda: draw_event(self.domains, random, self.premises), self.holds)

    def holds(self, event: Event) -> bool:
        """Say whether an event is of the split."""
        return split_of(event) == self.split

    def possible(self, relation: Relation) -> Relation:
        """Return the relation, or related for unrelated where there is one domain only."""
        has_others = len(self.domains) > 1
        return relation if has_others or relation is not Relation.UNRELATED else Relation.RELATED

    def partner(self, event: Event, relation: Relation, random: Random) -> Event:
        """Draw an event of the split in this relation to the given one."""
        return draw_until(
            lambda: draw_partner(event, relation, self.domains, random, self.premises), self.holds
        )

    def tell(self, event: Event, register: Register, random: Random) -> str:
        """Draw one of the event's sentences."""
        return self.told(event, register, random).text

    def told(self, event: Event, register: Register, random: Random) -> Told:
        """Draw how the event is told."""
        return Told(event, draw_wording(event, register, random, self.premises))

    def tell_anew(
        self, event: Event, register: Register, known: Collection[str], random: Random
    ) -> str | None:
        """Draw one of the event's sentences that is not among those known, None if none is found.

        Where all sentences in usual words are known, any words will do.
        """
        freely = replace(self, premises=self.premises.without("usual_words"))
        drawn = (scope.tell(event, register, random) for scope in (self, freely) for _ in range(MAX_WORDINGS))
        return next((text for text in drawn if text not in known), None)

    def told_beside(self, event: Event, first: Told, register: Register, random: Random) -> Told:
        """Draw how a second event is told.

        Of another meaning, it may be the first sentence, edited; of the same one, no words are usual.
        """
        if event == first.event:
            return Told(event, draw_wording(event, register, random, self.premises.without("usual_words")))
        like = first if random.random() < self.premises.edits else None
        return Told(event, draw_wording(event, register, random, self.premises, like))

    def annotated(self, score: float, random: Random) -> float:
        """Return the score as its annotators give it, with their error; of the test split, the truth."""
        error = self.premises.gold_noise
        if self.split == "test" or not error:
            return score
        return round(min(1.0, max(0.0, random.gauss(score, error))), DECIMALS)


def draw_until(draw: Callable[[], Event], suits: Callable[[Event], bool]) -> Event:
    """Draw until an event suits.

    Raises UserError if none does: of a few stories that are never retold, a split may hold none.
    """
    for _ in range(MAX_DRAWS):
        event = draw()
        if suits(event):
            return event
    raise UserError(
        f"the sandbox's world has no suitable event among {MAX_DRAWS:,}: "
        "give it more stories or more retelling, or draw from more domains"
    )


class Distinct:
    """Draws what was not drawn before."""

    def __init__(self) -> None:
        self._seen: set[Hashable] = set()

    def draw(self, draw: Callable[[], Drawn], key: Callable[[Drawn], Hashable]) -> Drawn:
        """Draw until there is something whose key is new.

        Raises UserError if that does not happen, since there is nothing else any more.
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
