"""Queries with candidates, graded by their exact similarity to the query."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from operator import attrgetter
from random import Random

from synthbench.sandbox.events import Event, similarity
from synthbench.sandbox.realisation import Register
from synthbench.sandbox.sampling import Relation
from synthbench.sandbox.streams import Distinct, Scope, draw_until

# Of ten candidates; the first two make a ranking already, with a candidate that is right and one that is not.
MIX = (
    Relation.PARAPHRASE,
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.UNRELATED,
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.UNRELATED,
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.UNRELATED,
)
RELEVANT = 0.9


@dataclass(frozen=True, slots=True)
class SandboxRanking:
    """A query and different candidates in random order, all of one register, with grades in [0, 1]."""

    query: str
    candidates: tuple[str, ...]
    grades: tuple[float, ...]
    register: Register


def rankings(scope: Scope, num_candidates: int) -> Iterator[SandboxRanking]:
    """Yield rankings no two of which have the same query; their candidates are in the proportions of `MIX`.

    `num_candidates` is at least 2. A paraphrase has grade 1, all others have less than `RELEVANT`.
    """
    distinct = Distinct()
    for position in count():
        random = scope.random("rankings", position)
        yield distinct.draw(partial(_draw, scope, num_candidates, random), attrgetter("query"))


def _draw(scope: Scope, num_candidates: int, random: Random) -> SandboxRanking:
    while True:
        register = random.choice(scope.registers)
        event = scope.event(random)
        query = scope.tell(event, register, random)
        graded = _candidates(scope, event, query, register, num_candidates, random)
        if graded is not None:
            break
    # The order in which they were drawn would tell the paraphrases.
    order = random.sample(sorted(graded), len(graded))
    return SandboxRanking(query, tuple(order), tuple(graded[text] for text in order), register)


def _candidates(
    scope: Scope, event: Event, query: str, register: Register, num_candidates: int, random: Random
) -> dict[str, float] | None:
    """Return candidates with their grades; None if the query's event has too few other sentences."""
    graded: dict[str, float] = {}
    for number in range(num_candidates):
        other = _partner(scope, event, MIX[number % len(MIX)], random)
        text = scope.tell_anew(other, register, {query, *graded}, random)
        if text is None:
            return None
        graded[text] = similarity(event, other)
    return graded


def _partner(scope: Scope, event: Event, relation: Relation, random: Random) -> Event:
    """Draw an event in this relation; a related one may happen to be nearly the same, and is drawn again."""
    return draw_until(
        lambda: scope.partner(event, scope.possible(relation), random),
        lambda other: relation is Relation.PARAPHRASE or similarity(event, other) < RELEVANT,
    )
