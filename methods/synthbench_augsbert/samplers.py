"""Which new pairs of gold sentences the cross-encoder labels (Thakur et al. 2021, section 3.1)."""

import math
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar, Literal, Protocol, overload

from pydantic import BaseModel, ConfigDict, Field

from synthbench.api import GenerationContext, Record, Records, SyntheticDataset, UserError
from synthbench_augsbert.gold import GoldSentences, IndexPair

HOW_K_COUNTS = (
    "k counts a sentence's neighbours without the sentence itself, as the semantic search of AugSBERT's"
    " authors does; their BM25 search counts it, so that their k = 3 is k = 2 here."
)
WHICH_BM25 = "BM25 is rank-bm25's Okapi over lower-cased words; the paper's is Elasticsearch's."


@dataclass(frozen=True)
class Candidates:
    """New pairs as (lower index, higher index), each once, and how many were dropped for which reason."""

    pairs: Sequence[IndexPair]
    dropped: Mapping[str, int] = field(default_factory=dict)


class Sampler(Protocol):
    """Chooses new pairs: never a sentence with itself, never a gold pair in either order, none twice."""

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""

    def check(self, gold: GoldSentences) -> None:
        """Raise UserError if the gold sentences can't give what the settings ask for; quick."""

    def sample(self, gold: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Return the candidates in an order that depends on `gold`, the settings and `seed` only.

        Raises UserError as `check` does.
        """

    def unit_key(self, position: int, pair: IndexPair) -> str:
        """Return the key under which a candidate's label is journalled."""

    def most_pairs(self, num_sentences: int) -> int:
        """Return how many pairs there can be at most of so many sentences."""


class SamplerConfig(BaseModel):
    """What the configurations of all samplers share."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    table_notes: ClassVar[tuple[str, ...]] = ()
    """What must be known beside every table of such pairs."""

    def unit_key(self, position: int, pair: IndexPair) -> str:
        """The place: what is sampled is the same on every run."""
        return str(position)


class ChoosingSampler(SamplerConfig, ABC):
    """What samplers share that choose from pairs which others found, and which are labelled already."""

    @abstractmethod
    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings of the samplers that find the pairs, by names for their data."""

    @abstractmethod
    def select(
        self, gold: SyntheticDataset, labelled: Mapping[str, Records], seed: int, context: GenerationContext
    ) -> Iterator[Record]:
        """Yield the pairs that are chosen, in their order; all else is counted. `labelled` has the names."""


class RandomSampler(SamplerConfig):
    """`size` pairs, uniform without replacement among all new pairs."""

    name: Literal["random"] = "random"
    size: int = Field(ge=1, description="number of pairs")

    @property
    def description(self) -> str:
        """The name alone: a pair drawn is the same pair whatever the number of the others."""
        return self.name

    def check(self, gold: GoldSentences) -> None:
        """Raise UserError if there are fewer than `size` new pairs."""
        check_size(self.name, self.size, gold)

    def sample(self, gold: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Number all pairs, draw among the numbers that are not gold.

        Raises UserError as `check` does.
        """
        self.check(gold)
        taken = sorted(_pair_number(pair) for pair in gold.pairs)
        skipped = [number - rank for rank, number in enumerate(taken)]
        drawn = Random(seed).sample(range(gold.num_new_pairs), self.size)
        return Candidates(NumberedPairs(number + bisect_right(skipped, number) for number in drawn))

    def most_pairs(self, num_sentences: int) -> int:
        """Return their number, whatever that of the sentences."""
        return self.size


class BM25Sampler(SamplerConfig):
    """The `k` sentences nearest by BM25 to each sentence.

    k counts neighbours without the sentence itself. Neighbours that are gold pairs are dropped, not replaced.
    """

    table_notes: ClassVar[tuple[str, ...]] = (HOW_K_COUNTS, WHICH_BM25)
    name: Literal["bm25"] = "bm25"
    k: int = Field(ge=1, description="neighbours of each sentence")

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"bm25 k={self.k}"

    def check(self, gold: GoldSentences) -> None:
        """Raise UserError if there are not more than `k` sentences."""
        check_k(self.name, "k", self.k, gold)

    def sample(self, gold: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Return sentence by sentence its neighbours, nearest first, leaving out pairs that came before.

        Nothing is drawn, so `seed` changes nothing.
        Raises UserError as `check` does.
        """
        from synthbench_augsbert.bm25 import BM25Index

        self.check(gold)
        neighbours, _ = BM25Index(gold.texts).nearest(self.k)
        return new_pairs(unordered(neighbours.tolist()), gold)

    def most_pairs(self, num_sentences: int) -> int:
        """Return how many pairs there can be."""
        return self.k * num_sentences


def check_size(sampler: str, size: int, gold: GoldSentences) -> None:
    """Raise UserError unless there are so many new pairs."""
    if size > gold.num_new_pairs:
        raise UserError(
            f"augsbert: sampler.size {size} is more than the {gold.num_new_pairs} pairs "
            f"of the {len(gold.texts)} gold sentences that are not gold pairs"
        )


def check_k(sampler: str, key: str, k: int, gold: GoldSentences) -> None:
    """Raise UserError unless every gold sentence has so many others."""
    if k >= len(gold.texts):
        raise UserError(
            f"augsbert: sampler {sampler}: {key} {k} needs more than {k} distinct gold sentences, "
            f"there are {len(gold.texts)}"
        )


def unordered(neighbours: Sequence[Sequence[int]]) -> list[IndexPair]:
    """Return the pairs of each sentence with its neighbours, as (lower, higher); a pair may come twice."""
    directed = ((query, other) for query, row in enumerate(neighbours) for other in row)
    return [(min(pair), max(pair)) for pair in directed]


def new_pairs(found: Sequence[IndexPair], gold: GoldSentences) -> Candidates:
    """Return each pair that was found once, in order of appearance, without gold pairs; count the others."""
    distinct = dict.fromkeys(found)
    new = tuple(pair for pair in distinct if pair not in gold.pairs)
    dropped = {
        "neighbours of each other, kept once": len(found) - len(distinct),
        "gold pair": len(distinct) - len(new),
    }
    return Candidates(new, dropped)


class NumberedPairs(Sequence[IndexPair]):
    """Pairs in eight bytes each, by their places in the list of all: there may be a million."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = array("Q", numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberedPairs) and self._numbers == other._numbers

    def __hash__(self) -> int:
        return hash(self._numbers.tobytes())

    @overload
    def __getitem__(self, place: int) -> IndexPair: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[IndexPair]: ...

    def __getitem__(self, place: int | slice) -> IndexPair | Sequence[IndexPair]:
        if isinstance(place, slice):
            return NumberedPairs(self._numbers[place])
        return _pair_of(self._numbers[place])


def _pair_number(pair: IndexPair) -> int:
    """Return the place of (lower, higher) in the list (0, 1), (0, 2), (1, 2), (0, 3) ..."""
    lower, higher = pair
    return math.comb(higher, 2) + lower


def _pair_of(number: int) -> IndexPair:
    """Return the pair at that place: the inverse of `_pair_number`."""
    higher = (1 + math.isqrt(8 * number + 1)) // 2
    return number - math.comb(higher, 2), higher
