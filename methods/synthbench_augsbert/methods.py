"""AugSBERT's in-domain augmentation: silver pairs for a bi-encoder (Thakur et al. 2021, section 3.1)."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from synthbench.api import (
    ChatAmount,
    Expected,
    GeneratedData,
    GenerationContext,
    Need,
    Record,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    Unit,
    UserError,
    Work,
)
from synthbench_augsbert.gold import SENTENCES, GoldSentences, IndexPair, check_scores
from synthbench_augsbert.labelling import PairsToLabel, WithLabeller
from synthbench_augsbert.samplers import (
    BM25Sampler,
    BM25SemanticSampler,
    KDESampler,
    PairSampler,
    RandomSampler,
    SelectingSampler,
    SemanticSearchSampler,
    SemanticSettings,
)
from synthbench_augsbert.searching import OPTIONAL_SOURCES, SOURCES, FoundPairs, already_found


class AugSBERT(WithLabeller):
    """New pairs of gold sentences, labelled by a cross-encoder trained on gold, or by another labeller.

    If the role `sentences` has a source, the pairs are made of its sentences instead. Yields only the silver
    pairs; an experiment adds the gold pairs as another part of its data. All randomness, here and in the
    cross-encoder's training, follows from `seed`.
    """

    version = 2
    source_roles: ClassVar[Mapping[str, RecordKind]] = SOURCES
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = OPTIONAL_SOURCES

    sampler: Annotated[
        RandomSampler | KDESampler | BM25Sampler | SemanticSearchSampler | BM25SemanticSampler,
        Field(discriminator="name"),
    ] = Field(description="selects the new pairs of gold sentences, or of the role `sentences`, to label")

    def needs(self) -> Mapping[str, Need]:
        """Return the labeller's model, if it has one; for semantic search also the bi-encoder.

        The bi-encoder is trained on gold and, if the role "dev" has a source, selected on dev. A sampler
        that selects among other samplers' labelled pairs needs these pairs, but no model. Rows that use the
        other samplers share the pairs.
        """
        if isinstance(self.sampler, SelectingSampler):
            return {name: self._data_of(sampler) for name, sampler in self.sampler.others().items()}
        if isinstance(self.sampler, SemanticSearchSampler):
            return {**super().needs(), **self.sampler.needs(self.seed)}
        return super().needs()

    def version_in_use(self) -> int:
        """Return 2 for BM25, which formerly paired sentences without a common word; 1 for other samplers."""
        return self.version if isinstance(self.sampler, BM25Sampler) else 1

    def table_notes(self) -> tuple[str, ...]:
        """Return notes on how neighbours are counted and found, if there are any."""
        return self.sampler.table_notes

    def can_be_sharded(self) -> bool:
        """Return True unless the sampler only selects among labelled pairs, which takes seconds."""
        return not isinstance(self.sampler, SelectingSampler)

    def shared_by_shards(self) -> FoundPairs | None:
        """Return semantic search's pairs, found once for all shards; None for other samplers."""
        if isinstance(self.sampler, SemanticSearchSampler):
            return FoundPairs(sampler=self.sampler, seed=self.seed)
        return None

    def _data_of(self, sampler: Mapping[str, Any]) -> GeneratedData:
        settings = {**self.model_dump(mode="json"), "sampler": sampler}
        selects_on_dev = self._chosen.learns or "bi_encoder" in sampler
        roles = ("gold", "dev", SENTENCES) if selects_on_dev else ("gold", SENTENCES)
        return GeneratedData("augsbert", settings, sources={role: role for role in roles})

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if the role "dev" has a source but neither labeller nor sampler is trained."""
        if not isinstance(self.sampler, SemanticSettings):
            super().check_sources(given)

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return a line on the number of pairs to label; selecting among labelled pairs costs nothing."""
        if not isinstance(self.sampler, SelectingSampler):
            yield from self.labelling_cost(self._most_pairs(self.sampler, num_records))

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one record per pair.

        For a selecting sampler, also the amount of computation: one call per labelled pair.
        """
        if not isinstance(self.sampler, SelectingSampler):
            return Expected(self._most_pairs(self.sampler, num_records))
        sizes = [num_records.get(name) for name in self.sampler.others()]
        known = [size for size in sizes if size is not None]
        return Expected(sum(known) if len(known) == len(sizes) else None, Work("", 0.0, sum(known)))

    def needs_llm(self) -> bool:
        """Return whether this method asks an LLM: False for a selecting sampler, whose dependencies ask."""
        return super().needs_llm() and not isinstance(self.sampler, SelectingSampler)

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the requests to an LLM labeller, one per pair; None without an LLM or for unknown pairs."""
        if isinstance(self.sampler, SelectingSampler):
            return None
        return self.labelling_requests(self._most_pairs(self.sampler, num_records))

    @staticmethod
    def _most_pairs(sampler: PairSampler, num_records: Mapping[str, int]) -> int | None:
        return sampler.most_pairs(num_records.get(SENTENCES, 2 * num_records.get("gold", 0))) or None

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if needed gold or dev scores are all equal, or if there are too few new pairs."""
        if self._chosen.learns or not isinstance(self.sampler, RandomSampler | BM25Sampler):
            check_scores("augsbert", sources)
        pool = GoldSentences.of_sources(sources)
        if not pool.num_new_pairs:
            raise UserError(
                f"augsbert: every pair of the {len(pool.texts)} {pool.kind} sentences is a gold pair; none is"
                " new"
            )
        self.sampler.check(pool)

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        """Yield one unit per silver pair; the units' positions follow the sampler's order.

        A selecting sampler yields bare records, since selecting takes seconds. Raises UserError if the
        sentences can't give the requested pairs, or if no pair is left.
        """
        if isinstance(self.sampler, SelectingSampler):
            labelled = {name: context.records(name) for name in self.sampler.others()}
            return self.sampler.select(sources["gold"], labelled, self.seed, context)
        return self._label_new_pairs(GoldSentences.of_sources(sources), self.sampler, context)

    def _label_new_pairs(
        self, pool: GoldSentences, sampler: PairSampler, context: GenerationContext
    ) -> Iterator[Unit]:
        pairs = _sampled(pool, sampler, self.seed, context)
        to_label = PairsToLabel(
            len(pairs),
            texts=lambda index: (pool.texts[pairs[index][0]], pool.texts[pairs[index][1]]),
            key=lambda index: sampler.unit_key(index, pairs[index]),
            record=lambda index, score: self._record(pool, sampler.description, pairs[index], score),
        )
        return self.labelled(to_label, context)

    def _record(self, pool: GoldSentences, sampled: str, pair: IndexPair, score: float) -> ScoredPair:
        first, second = pair
        return ScoredPair(
            sentence1=pool.texts[first],
            sentence2=pool.texts[second],
            score=score,
            source_id=f"{pool.source_ids[first]}+{pool.source_ids[second]}",
            method="augsbert",
            generator="cross-encoder",
            instruction=sampled,
            seed=self.seed,
        )


def _sampled(
    pool: GoldSentences, sampler: PairSampler, seed: int, context: GenerationContext
) -> Sequence[IndexPair]:
    """Return the pairs to label, sampled or found by the shards' shared search; count dropped pairs.

    Raises UserError if no pair is left.
    """
    found = context.shared()
    candidates = (
        sampler.new_pairs(already_found(found, context), pool)
        if found is not None and isinstance(sampler, SemanticSearchSampler)
        else sampler.sample(pool, seed, context)
    )
    for reason, amount in candidates.dropped.items():
        context.count_dropped(reason, amount)
    if not candidates.pairs:
        reasons = ", ".join(
            f"{reason}: {amount:,}" for reason, amount in candidates.dropped.items() if amount
        )
        raise UserError(f"augsbert: sampler {sampler.description}: found no new pair ({reasons})")
    return candidates.pairs


SHARED = "shares a sentence with the source domain"
NOTHING_OF_ITS_OWN = (
    "augsbert-domain: the source 'target' has no pair in split 'train' whose sentences are not in 'gold'"
)


class AugSBERTDomain(WithLabeller):
    """The pairs of a target domain, labelled by a cross-encoder trained on a source domain's gold.

    Another labeller may replace the cross-encoder. The target pairs' own scores are ignored. An experiment
    trains the bi-encoder only on this data. Training on the source's gold gives the lower bound, on the
    target's gold the upper bound (section 3.2).
    """

    version = 1
    is_shardable = True
    source_roles: ClassVar[Mapping[str, RecordKind]] = {
        "gold": RecordKind.SCORED_PAIR,
        "target": RecordKind.SCORED_PAIR,
    }
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {"dev": RecordKind.SCORED_PAIR}

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the requests to an LLM labeller, one per pair; None without an LLM or for unknown pairs."""
        return self.labelling_requests(num_records.get("target"))

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return a line on the number of pairs that a model would label."""
        yield from self.labelling_cost(num_records.get("target"))

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one record per target pair."""
        return Expected(num_records.get("target"))

    def table_notes(self) -> tuple[str, ...]:
        """Return a note that, unlike in the paper, target pairs with a sentence of gold are dropped."""
        return (
            "augsbert-domain leaves out target pairs with a sentence of the source's gold pairs; the paper"
            " names no such step.",
        )

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if needed gold or dev scores are all equal, or if no target pair is left.

        Target pairs with a sentence of gold are dropped.
        """
        if self._chosen.learns:
            check_scores("augsbert-domain", sources)
        if not any(is_own for _, is_own in _target_pairs(sources)):
            raise UserError(NOTHING_OF_ITS_OWN)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per target pair in split "train"; the units' positions follow the target's order.

        Pairs with a sentence of gold are dropped and counted. Raises UserError if no pair is left.
        """
        found = list(_target_pairs(sources))
        pairs = [pair for pair, is_own in found if is_own]
        context.count_dropped(SHARED, len(found) - len(pairs))
        if not pairs:
            raise UserError(NOTHING_OF_ITS_OWN)
        to_label = PairsToLabel(
            len(pairs),
            texts=lambda index: (pairs[index].sentence1, pairs[index].sentence2),
            key=str,
            record=lambda index, score: self._record(pairs[index], score),
        )
        return self.labelled(to_label, context)

    def _record(self, pair: ScoredPair, score: float) -> ScoredPair:
        return ScoredPair(
            sentence1=pair.sentence1,
            sentence2=pair.sentence2,
            score=score,
            subset=pair.subset,
            source_id=pair.id,
            method="augsbert-domain",
            generator="cross-encoder",
            seed=self.seed,
        )


def _target_pairs(sources: Mapping[str, SyntheticDataset]) -> Iterator[tuple[ScoredPair, bool]]:
    """Yield each train pair of the target, and whether neither of its sentences is in gold."""
    known = set(sources["gold"].texts)
    for pair in sources["target"]:
        if pair.split == "train":
            yield pair, known.isdisjoint(pair.texts())
