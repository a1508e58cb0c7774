"""Samplers: select the new pairs that the cross-encoder labels (Thakur et al. 2021, section 3.1)."""

import math
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Annotated, Any, ClassVar, Literal, overload

from pydantic import BaseModel, ConfigDict, Field

from synthbench.api import (
    GenerationContext,
    Need,
    Record,
    Records,
    SyntheticDataset,
    UserError,
    added_field,
    nearest_by_words,
    trained_on_gold,
    words_between_spaces,
)
from synthbench_augsbert.gold import GoldSentences, IndexPair

HOW_K_COUNTS = (
    "k counts a sentence's neighbours without the sentence itself, as the semantic search of AugSBERT's"
    " authors does; their BM25 search counts it, so that their k = 3 is k = 2 here."
)
WHICH_BM25 = (
    "BM25 is rank-bm25's Okapi over lower-cased words, in scripts without blanks over pairs of letters; the"
    " paper's is Elasticsearch's."
)
NO_COMMON_WORD = "neighbour without a common word"
LABELLED = "labelled"
BI_ENCODER = "sampler.bi_encoder"


@dataclass(frozen=True)
class Candidates:
    """Distinct new pairs of indices; and reason -> number of dropped pairs.

    A pair is (lower, higher), unless the sampler's pairs are directed.
    """

    pairs: Sequence[IndexPair]
    dropped: Mapping[str, int] = field(default_factory=dict)


class SamplerConfig(BaseModel):
    """Settings of all samplers."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    table_notes: ClassVar[tuple[str, ...]] = ()
    """Notes for tables with results of this sampler's pairs."""

    def unit_key(self, position: int, pair: IndexPair) -> str:
        """Return a pair's unit key: its position, since all runs sample the same pairs in the same order."""
        return str(position)


class NeighbourSampler(SamplerConfig):
    """Settings of samplers that pair a sentence with its neighbours."""

    directed: bool = added_field(
        False,
        description="two sentences that are neighbours of each other are two pairs, (a, b) and (b, a), as in "
        "the authors' examples; false: one pair",
    )

    @property
    def remark(self) -> str:
        """The end of `description`: " directed" if pairs are directed, else ""."""
        return " directed" if self.directed else ""

    def new_pairs(self, pairs: Iterable[IndexPair], pool: GoldSentences) -> Candidates:
        """Return each pair once, in order of appearance, without gold pairs in either order.

        Pairs are (lower, higher) indices, unless `directed`. Dropped pairs are counted.
        """
        found = list(pairs) if self.directed else [(min(pair), max(pair)) for pair in pairs]
        distinct = dict.fromkeys(found)
        new = tuple(pair for pair in distinct if (min(pair), max(pair)) not in pool.pairs)
        dropped = {
            "neighbours of each other, kept once": len(found) - len(distinct),
            "gold pair": len(distinct) - len(new),
        }
        return Candidates(new, dropped)


class SelectingSampler(SamplerConfig, ABC):
    """A sampler that selects from the labelled pairs of other samplers."""

    @abstractmethod
    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return name -> settings of each other sampler; the name identifies its labelled data."""

    @abstractmethod
    def select(
        self, gold: SyntheticDataset, labelled: Mapping[str, Records], seed: int, context: GenerationContext
    ) -> Iterator[Record]:
        """Yield the selected pairs in order, and count the dropped pairs.

        `labelled` holds the labelled pairs of each sampler, by its name in `others`.
        """


class RandomSampler(SamplerConfig):
    """Draws `size` pairs uniformly, without replacement, from all new pairs."""

    name: Literal["random"] = "random"
    size: int = Field(ge=1, description="number of pairs")

    @property
    def description(self) -> str:
        """The sampler's name, stored with every pair; leaves out `size`."""
        return self.name

    def check(self, pool: GoldSentences) -> None:
        """Raise UserError if there are fewer than `size` new pairs."""
        check_size(self.size, pool)

    def sample(self, pool: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Draw `size` distinct pairs that are not gold.

        Raises UserError as `check` does.
        """
        self.check(pool)
        taken = sorted(_pair_number(pair) for pair in pool.pairs)
        skipped = [number - rank for rank, number in enumerate(taken)]
        drawn = Random(seed).sample(range(pool.num_new_pairs), self.size)
        return Candidates(NumberedPairs(number + bisect_right(skipped, number) for number in drawn))

    def most_pairs(self, num_sentences: int) -> int:
        """Return the number of pairs: `size`."""
        return self.size


class KDESampler(SelectingSampler):
    """Selects from `size` labelled random pairs so that their scores are distributed like gold's.

    Thakur et al. 2021, section 3.1: a pair of score s is kept with probability min(1, gold's density at s /
    silver's). If gold has classes (scores 0 and 1), all pairs scored 0.5 or more are kept, and random pairs
    below 0.5 up to gold's ratio of negatives to positives. The draw depends only on the seed and the two
    sentences.
    """

    name: Literal["kde"] = "kde"
    size: int = Field(200_000, ge=2, description="number of random pairs to label and select from")
    bandwidth: Literal["scott"] | Annotated[float, Field(gt=0, le=1)] = Field(
        "scott",
        description="bandwidth of the score densities; scott: standard deviation of the n scores (gold's or "
        "silver's) times n^(-1/5)",
    )

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"kde size={self.size} bandwidth={self.bandwidth}"

    def check(self, pool: GoldSentences) -> None:
        """Raise UserError if there are fewer than `size` new pairs."""
        check_size(self.size, pool)

    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings of a random sampler of `size` pairs."""
        return {LABELLED: {"name": "random", "size": self.size}}

    def select(
        self, gold: SyntheticDataset, labelled: Mapping[str, Records], seed: int, context: GenerationContext
    ) -> Iterator[Record]:
        """Yield the kept labelled pairs, in order, and count the others.

        Memory holds a score and a random number per labelled pair, not the pairs. Raises UserError if all
        silver scores are equal, or none is kept. Gold's scores must differ.
        """
        import numpy as np

        from synthbench_augsbert.kde import choose, draws

        gold_scores = np.array([record.score for record in gold if record.split == "train"])
        pairs = labelled[LABELLED]
        silver_scores = np.array(pairs.column("score"))
        selection = choose(gold_scores, silver_scores, draws(pairs, seed), self.bandwidth)
        context.progress.say(f"  kde: {selection.remark}")
        for name, value in selection.measured.items():
            context.measure(name, value)
        context.count_dropped(
            "kde: too many pairs of such a score", len(selection.kept) - int(selection.kept.sum())
        )
        for record, is_kept in zip(pairs, selection.kept.tolist(), strict=True):
            if is_kept:
                yield replace(record, id="", instruction=self.description)


class BM25Sampler(NeighbourSampler):
    """Pairs each sentence with its `k` nearest sentences by BM25.

    The sentence itself is not among its k neighbours. Neighbours that are gold pairs, or share no word with
    the sentence, are dropped, not replaced.
    """

    table_notes: ClassVar[tuple[str, ...]] = (HOW_K_COUNTS, WHICH_BM25)
    name: Literal["bm25"] = "bm25"
    k: int = Field(ge=1, description="neighbours per sentence")

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"bm25 k={self.k}{self.remark}"

    def check(self, pool: GoldSentences) -> None:
        """Raise UserError if there are at most `k` sentences, or no two share a word."""
        check_k(self.name, "k", self.k, pool)
        words = (word for text in pool.texts for word in {*words_between_spaces(text)})
        if max(Counter(words).values()) < 2:
            raise UserError(
                f"augsbert: sampler {self.name}: no two of the {len(pool.texts)} {pool.kind} sentences share"
                " a word, so none has a neighbour; `semantic-search` compares sentences by their vectors"
            )

    def sample(self, pool: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Return each sentence's neighbours, nearest first, without repeated pairs.

        `seed` is unused, since nothing is random. Raises UserError as `check` does.
        """
        self.check(pool)
        neighbours = nearest_by_words(pool.texts, self.k)
        found = self.new_pairs(with_neighbours(neighbours.indices), pool)
        return replace(found, dropped={**found.dropped, NO_COMMON_WORD: neighbours.num_lacking})

    def most_pairs(self, num_sentences: int) -> int:
        """Return the maximum number of pairs: `k` per sentence."""
        return self.k * num_sentences


def check_size(size: int, pool: GoldSentences) -> None:
    """Raise UserError if there are fewer than `size` new pairs."""
    if size > pool.num_new_pairs:
        raise UserError(
            f"augsbert: sampler.size {size} is more than the {pool.num_new_pairs} pairs "
            f"of the {len(pool.texts)} {pool.kind} sentences that are not gold pairs"
        )


def check_k(sampler: str, key: str, k: int, pool: GoldSentences) -> None:
    """Raise UserError if there are at most `k` sentences."""
    if k >= len(pool.texts):
        raise UserError(
            f"augsbert: sampler {sampler}: {key} {k} needs more than {k} distinct {pool.kind} sentences, "
            f"there are {len(pool.texts)}"
        )


def with_neighbours(neighbours: Sequence[Sequence[int]]) -> Iterator[IndexPair]:
    """Yield the index pairs of each sentence with its neighbours."""
    return ((query, other) for query, row in enumerate(neighbours) for other in row)


class NumberedPairs(Sequence[IndexPair]):
    """Pairs, each stored in eight bytes as its index in the list of all pairs; there may be a million."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = array("Q", numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> IndexPair: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[IndexPair]: ...

    def __getitem__(self, index: int | slice) -> IndexPair | Sequence[IndexPair]:
        if isinstance(index, slice):
            return NumberedPairs(self._numbers[index])
        return _pair_of(self._numbers[index])


def _pair_number(pair: IndexPair) -> int:
    """Return the index of (lower, higher) in the list (0, 1), (0, 2), (1, 2), (0, 3) ..."""
    lower, higher = pair
    return math.comb(higher, 2) + lower


def _pair_of(number: int) -> IndexPair:
    """Return the pair at that index: the inverse of `_pair_number`."""
    higher = (1 + math.isqrt(8 * number + 1)) // 2
    return number - math.comb(higher, 2), higher


class SemanticSettings(NeighbourSampler):
    """Settings of samplers with a bi-encoder."""

    bi_encoder: dict[str, Any] = Field(
        description="the bi-encoder: settings of the trainer `bi-encoder`, such as `base: {model: ...}`, "
        "and optionally `seed_optimization`, as in `train`"
    )
    exact_up_to: int = Field(
        100_000,
        ge=1,
        description="up to this number of sentences, each is compared with all; beyond, an inverted file "
        "finds the neighbours, and its recall is reported",
    )


class SemanticSearchSampler(SemanticSettings):
    """Pairs each sentence with its `k` nearest by the cosine of a bi-encoder trained on gold.

    The sentence itself is no neighbour. Neighbours that are gold pairs are dropped, not replaced.
    """

    table_notes: ClassVar[tuple[str, ...]] = (HOW_K_COUNTS,)
    name: Literal["semantic-search"] = "semantic-search"
    k: int = Field(ge=1, description="neighbours per sentence")

    @property
    def description(self) -> str:
        """Name and settings, as stored with every pair."""
        return f"semantic-search k={self.k}{self.remark}"

    def needs(self, seed: int) -> Mapping[str, Need]:
        """Return the bi-encoder, trained on gold and, if the role "dev" has a source, selected on dev."""
        return {BI_ENCODER: trained_on_gold("bi-encoder", self.bi_encoder, seed)}

    def unit_key(self, position: int, pair: IndexPair) -> str:
        """Return a pair's unit key: its indices, since positions may change.

        With another number of threads, the encoder may round differently, which may change a neighbour.
        """
        return f"{pair[0]}-{pair[1]}"

    def check(self, pool: GoldSentences) -> None:
        """Raise UserError if there are at most `k` sentences."""
        check_k(self.name, "k", self.k, pool)

    def sample(self, pool: GoldSentences, seed: int, context: GenerationContext) -> Candidates:
        """Return each sentence's neighbours, nearest first, without repeated pairs.

        Reports the recall. Raises UserError as `check` does.
        """
        return self.new_pairs(self.search(pool, seed, context), pool)

    def search(self, pool: GoldSentences, seed: int, context: GenerationContext) -> Iterator[IndexPair]:
        """Return index pairs of each sentence with its neighbours, nearest first; report the recall."""
        from synthbench_augsbert.neighbours import nearest

        self.check(pool)
        vectors = context.encoder(BI_ENCODER).encode(pool.texts)
        threads = context.runtime.threads
        found = nearest(vectors, self.k, exact_up_to=self.exact_up_to, seed=seed, threads=threads)
        context.progress.say(
            f"  semantic search: {self.k} neighbours of {len(vectors):,} sentences ({found.how}), "
            f"recall {found.recall:.3f}"
        )
        context.measure("semantic search: recall", found.recall)
        return with_neighbours(found.indices.tolist())

    def most_pairs(self, num_sentences: int) -> int:
        """Return the maximum number of pairs: `k` per sentence."""
        return self.k * num_sentences


PairSampler = RandomSampler | BM25Sampler | SemanticSearchSampler
"""Selects new pairs: no sentence with itself, no gold pair in either order, none twice.

`check` is quick and raises UserError if the sentences can't give the requested pairs. The order of `sample`'s
candidates depends only on the sentences, the settings and the seed.
"""


class BM25SemanticSampler(SemanticSettings, SelectingSampler):
    """The labelled pairs of BM25 and of semantic search; a pair found by both is kept once."""

    table_notes: ClassVar[tuple[str, ...]] = (HOW_K_COUNTS, WHICH_BM25)
    name: Literal["bm25+semantic-search"] = "bm25+semantic-search"
    k: int = Field(ge=1, description="neighbours per sentence, by BM25 and by the bi-encoder")
    semantic_k: int | None = Field(
        None, ge=1, description="neighbours per sentence by the bi-encoder alone. Default: `k`"
    )

    def check(self, pool: GoldSentences) -> None:
        """Raise UserError if there are too few sentences for the requested neighbours."""
        check_k(self.name, "k", self.k, pool)
        check_k(self.name, "semantic_k", self.semantic_k or self.k, pool)

    def others(self) -> Mapping[str, Mapping[str, Any]]:
        """Return name -> settings, for the samplers of BM25 and of semantic search."""
        semantic = SemanticSearchSampler(
            k=self.semantic_k or self.k,
            bi_encoder=self.bi_encoder,
            exact_up_to=self.exact_up_to,
            directed=self.directed,
        )
        both = (BM25Sampler(k=self.k, directed=self.directed), semantic)
        return {sampler.name: sampler.model_dump(mode="json") for sampler in both}

    def select(
        self, gold: SyntheticDataset, labelled: Mapping[str, Records], seed: int, context: GenerationContext
    ) -> Iterator[Record]:
        """Yield BM25's pairs, then the additional ones of semantic search."""
        found: set[tuple[str, ...]] = set()
        num_again = 0
        for records in labelled.values():
            for record in records:
                if record.texts() in found:
                    num_again += 1
                    continue
                found.add(record.texts())
                yield replace(record, id="")
        context.count_dropped("found in both ways, kept once", num_again)
