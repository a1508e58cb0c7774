"""Pairs that are duplicates or not, each within one topic, as of a forum's questions."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random

from synthbench.sandbox.events import Event
from synthbench.sandbox.realisation import Register
from synthbench.sandbox.sampling import Relation
from synthbench.sandbox.streams import Distinct, Scope, draw_until
from synthbench.sandbox.vocabulary import domains

# Of four pairs; half of those that are no duplicates differ in little.
MIX = (Relation.PARAPHRASE, Relation.HARD_NEGATIVE, Relation.PARAPHRASE, Relation.RELATED)


@dataclass(frozen=True, slots=True)
class SandboxDuplicate:
    """Two different sentences of one register and topic, and whether they tell the same event."""

    sentence1: str
    sentence2: str
    is_duplicate: bool
    topic: str
    register: Register


def topic_of(event: Event) -> str:
    """Return an event's topic: a scene of its domain, named after its first object ("cooking/potatoes")."""
    scene = domains()[event.domain].scene(event.object)
    return f"{event.domain}/{next(iter(scene.objects))}"


def duplicates(scope: Scope) -> Iterator[SandboxDuplicate]:
    """Yield distinct pairs, as many duplicates as others; both sentences are of one topic."""
    distinct = Distinct()
    for position in count():
        relation = MIX[position % len(MIX)]
        random = scope.random("duplicates", position)
        yield distinct.draw(partial(_draw, scope, relation, random), _texts)


def _draw(scope: Scope, relation: Relation, random: Random) -> SandboxDuplicate:
    while True:
        register = random.choice(scope.registers)
        first = scope.event(random)
        second = _partner(scope, first, relation, random)
        sentence1 = scope.tell(first, register, random)
        sentence2 = scope.tell_anew(second, register, [sentence1], random)
        if sentence2 is not None:
            return SandboxDuplicate(sentence1, sentence2, first == second, topic_of(first), register)


def _partner(scope: Scope, event: Event, relation: Relation, random: Random) -> Event:
    """Draw an event of the same topic, and another event unless a paraphrase is wanted."""
    return draw_until(
        lambda: scope.partner(event, relation, random),
        lambda other: (
            topic_of(other) == topic_of(event) and (other == event) == (relation is Relation.PARAPHRASE)
        ),
    )


def _texts(pair: SandboxDuplicate) -> frozenset[str]:
    return frozenset((pair.sentence1, pair.sentence2))
