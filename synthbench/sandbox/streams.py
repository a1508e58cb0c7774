"""Endless streams of sentences and scored pairs: the first n of a stream are the same for every n."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random

from synthbench.sandbox import VERSION
from synthbench.sandbox.events import Event, similarity
from synthbench.sandbox.forms import Register
from synthbench.sandbox.realisation import draw_wording, sentence
from synthbench.sandbox.sampling import Relation, Split, draw_event, draw_partner, split_of

# Of ten pairs in a row, so that even a small set has all relations in these proportions.
MIX = (
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.PARAPHRASE,
    Relation.UNRELATED,
    Relation.HARD_NEGATIVE,
    Relation.RELATED,
    Relation.HARD_NEGATIVE,
    Relation.PARAPHRASE,
    Relation.UNRELATED,
    Relation.RELATED,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What a stream draws from: a split, registers (each pair stays within one) and at least one domain."""

    split: Split
    seed: int
    registers: tuple[Register, ...]
    domains: tuple[str, ...]

    def random(self, purpose: str, position: int) -> Random:
        """Return the source of randomness of one item."""
        names = ",".join((*self.registers, *self.domains))
        return Random(f"sandbox/{VERSION}/{purpose}/{self.split}/{self.seed}/{names}/{position}")


@dataclass(frozen=True, slots=True)
class SandboxPair:
    """Two different sentences of one register, their relation and exact similarity in [0, 1]."""

    sentence1: str
    sentence2: str
    score: float
    relation: Relation
    register: Register
    events: tuple[Event, Event]


def pairs(scope: Scope) -> Iterator[SandboxPair]:
    """Yield distinct pairs in the proportions of `MIX`.

    Where there is one domain only, pairs that would be unrelated are related ones.
    """
    seen: set[tuple[str, str]] = set()
    for position in count():
        relation = MIX[position % len(MIX)]
        if relation is Relation.UNRELATED and len(scope.domains) == 1:
            relation = Relation.RELATED
        random = scope.random("pairs", position)
        while True:
            pair = _draw_pair(scope, relation, random)
            texts = (pair.sentence1, pair.sentence2)
            if texts[0] != texts[1] and texts not in seen:
                break
        seen.update((texts, texts[::-1]))
        yield pair


def sentences(scope: Scope) -> Iterator[tuple[str, Register, Event]]:
    """Yield distinct sentences with their register and event."""
    seen: set[str] = set()
    for position in count():
        random = scope.random("sentences", position)
        register = random.choice(scope.registers)
        while True:
            event = _draw_inside(scope, scope.domains, random)
            text = _tell(event, register, random)
            if text not in seen:
                break
        seen.add(text)
        yield text, register, event


def _draw_pair(scope: Scope, relation: Relation, random: Random) -> SandboxPair:
    register = random.choice(scope.registers)
    first = _draw_inside(scope, scope.domains, random)
    second = draw_partner(first, relation, scope.domains, random)
    while split_of(second) != scope.split:
        second = draw_partner(first, relation, scope.domains, random)
    return SandboxPair(
        sentence1=_tell(first, register, random),
        sentence2=_tell(second, register, random),
        score=similarity(first, second),
        relation=relation,
        register=register,
        events=(first, second),
    )


def _draw_inside(scope: Scope, names: Sequence[str], random: Random) -> Event:
    """Draw until an event is of the split."""
    while True:
        event = draw_event(names, random)
        if split_of(event) == scope.split:
            return event


def _tell(event: Event, register: Register, random: Random) -> str:
    return sentence(event, draw_wording(event, register, random))
