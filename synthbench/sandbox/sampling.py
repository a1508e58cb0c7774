"""Drawing events, and events in a known relation to another."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from random import Random
from typing import Any, Literal

from synthbench.sandbox import VERSION
from synthbench.sandbox.events import NUMBERS, Event
from synthbench.sandbox.premises import DEFAULT, Origin, Premises
from synthbench.sandbox.vocabulary import Concepts, domain_names, domains, times

Split = Literal["train", "dev", "test"]

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
    domain = domains()[story.domain]
    scene = domain.scene(story.object)
    other = replace(
        _event(story.domain, random),
        action=random.choice(list(scene.actions)),
        object=random.choice(list(scene.objects)),
    )
    slots = ("number", "attribute", "agent", "action", "object", "place", "time")
    kept = {slot: getattr(story, slot) for slot in slots if random.random() >= retelling}
    return replace(other, **kept)


def _event(name: str, random: Random) -> Event:
    domain = domains()[name]
    scene = random.choice(domain.scenes)
    return Event(
        domain=domain.name,
        number=random.choices(NUMBERS, NUMBER_WEIGHTS)[0],
        attribute=_draw_optional(domain.attributes, ATTRIBUTE_SHARE, random),
        agent=random.choice(list(domain.agents)),
        action=random.choice(list(scene.actions)),
        object=random.choice(list(scene.objects)),
        place=_draw_optional(domain.places, PLACE_SHARE, random),
        time=_draw_optional(times(), TIME_SHARE, random),
        is_negative=random.random() < NEGATIVE_SHARE,
    )


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
