"""Triplets as of natural language inference: an anchor, what it entails, and what it does not."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import attrgetter
from random import Random

from synthbench.sandbox.realisation import Register
from synthbench.sandbox.sampling import Relation
from synthbench.sandbox.streams import Distinct, Scope


@dataclass(frozen=True, slots=True)
class SandboxTriplet:
    """Three different sentences of one register: an anchor, a paraphrase, and a hard negative."""

    anchor: str
    positive: str
    negative: str
    register: Register


def triplets(scope: Scope) -> Iterator[SandboxTriplet]:
    """Yield triplets no two of which have the same anchor."""
    distinct = Distinct()
    for position in count():
        random = scope.random("triplets", position)
        yield distinct.draw(partial(_draw, scope, random), attrgetter("anchor"))


def _draw(scope: Scope, random: Random) -> SandboxTriplet:
    while True:
        register = random.choice(scope.registers)
        event = scope.event(random)
        told = scope.told(event, register, random)
        positive = scope.tell_anew(event, register, [told.text], random)
        if positive is not None:
            other = scope.partner(event, Relation.HARD_NEGATIVE, random)
            negative = scope.told_beside(other, told, register, random).text
            return SandboxTriplet(told.text, positive, negative, register)
