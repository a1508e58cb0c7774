"""What a sentence is about, one of six domains, told of things that no training sentence names.

In all six anybody may act, and several of their actions are common to some: the thing that something is done
to tells the most. No such thing stands in two splits, so that words learnt by heart are of little use.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import count
from operator import itemgetter
from random import Random

from synthbench.sandbox.events import Event
from synthbench.sandbox.premises import Premises
from synthbench.sandbox.realisation import Register
from synthbench.sandbox.sampling import Split, draw_event, split_at, split_of
from synthbench.sandbox.streams import Distinct, Scope, draw_until
from synthbench.sandbox.vocabulary import domains, people

CLASSES = ("cooking", "farming", "household", "sea", "sport", "traffic")


def six_classes(scope: Scope) -> Iterator[tuple[str, Register, str]]:
    """Yield distinct sentences with register and class, the classes in turn.

    The classes are the domains: those of the scope do not matter.
    """
    distinct = Distinct()
    for position in count():
        random = scope.random("six classes", position)
        register = random.choice(scope.registers)
        label = CLASSES[position % len(CLASSES)]
        yield distinct.draw(partial(_draw, scope, label, register, random), itemgetter(0))


@cache
def object_splits(domain: str) -> dict[str, Split]:
    """Return the one split in which each of a domain's objects stands; every scene has some in all three."""
    found: dict[str, Split] = {}
    for scene in domains()[domain].scenes:
        ordered = sorted(scene.objects, key=lambda name: hashlib.sha256(name.encode()).digest())
        for rank, name in enumerate(ordered):
            found[name] = split_at(rank * 100 // len(ordered))
    return found


def _draw(scope: Scope, label: str, register: Register, random: Random) -> tuple[str, Register, str]:
    event = draw_until(
        lambda: _event(label, random, scope.premises),
        lambda event: object_splits(label)[event.object] == split_of(event) == scope.split,
    )
    return scope.tell(event, register, random), register, label


def _event(label: str, random: Random, premises: Premises) -> Event:
    event = draw_event([label], random, premises.without("foreign"))
    return replace(event, agent=random.choice(list(people())))
