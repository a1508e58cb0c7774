"""Endless streams of sentences and scored pairs: the first n of a stream are the same for every n."""

from collections.abc import Callable, Collection, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from operator import itemgetter
from random import Random
from typing import TypeVar

from synthbench.errors import UserError
from synthbench.sandbox import VERSION
from synthbench.sandbox.events import DECIMALS, Event, similarity
from synthbench.sandbox.premises import DEFAULT, Premises
from synthbench.sandbox.realisation import Register, Told, draw_wording
from synthbench.sandbox.sampling import Relation, Split, draw_event, draw_partner, split_of

Drawn = TypeVar("Drawn")
MAX_DRAWS = 10_000
MAX_WORDINGS = 100

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
            f"the sandbox has hardly more than {len(self._seen):,} different records of this kind: "
            "ask for fewer, or draw from more domains and registers"
        )


@dataclass(frozen=True, slots=True)
class SandboxPair:
    """Two different sentences of one register, their relation, and their score in [0, 1].

    Of the test split the score is the exact similarity, of others that with the annotators' error.
    """

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
    distinct = Distinct()
    for position in count():
        relation = scope.possible(MIX[position % len(MIX)])
        random = scope.random("pairs", position)
        yield distinct.draw(partial(_draw_pair, scope, relation, random), _texts)


def sentences(scope: Scope) -> Iterator[tuple[str, Register, Event]]:
    """Yield distinct sentences with their register and event."""
    distinct = Distinct()
    for position in count():
        random = scope.random("sentences", position)
        register = random.choice(scope.registers)
        yield distinct.draw(partial(_draw_sentence, scope, register, random), itemgetter(0))


def _draw_pair(scope: Scope, relation: Relation, random: Random) -> SandboxPair:
    while True:
        register = random.choice(scope.registers)
        first = scope.event(random)
        second = scope.partner(first, relation, random)
        told = scope.told(first, register, random)
        sentence1, sentence2 = told.text, scope.told_beside(second, told, register, random).text
        if sentence1 != sentence2:
            break
    score = scope.annotated(similarity(first, second), random)
    return SandboxPair(sentence1, sentence2, score, relation, register, (first, second))


def _texts(pair: SandboxPair) -> frozenset[str]:
    return frozenset((pair.sentence1, pair.sentence2))


def _draw_sentence(scope: Scope, register: Register, random: Random) -> tuple[str, Register, Event]:
    event = scope.event(random)
    return scope.tell(event, register, random), register, event
