"""AugSBERT's in-domain augmentation: silver pairs for a bi-encoder (Thakur et al. 2021, section 3.1)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from synthbench.api import (
    GenerationContext,
    Method,
    Need,
    PairScorer,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    TrainedModel,
    Unit,
    UserError,
    length_sorted_units,
    symmetric_scores,
)
from synthbench_augsbert.gold import GoldSentences, IndexPair
from synthbench_augsbert.samplers import BM25Sampler, Candidates, RandomSampler

BATCH_PAIRS = 1024  # scored in one call; all that a killed run has to score again


class AugSBERT(Method):
    """New pairs of gold sentences, labelled by a cross-encoder that was trained on the gold pairs.

    Yields the silver pairs only; an experiment adds the gold pairs as another part of its data. Everything
    drawn at random, here and in the cross-encoder's training, follows from `seed`.
    """

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = {"gold": RecordKind.SCORED_PAIR}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {"dev": RecordKind.SCORED_PAIR}

    sampler: Annotated[RandomSampler | BM25Sampler, Field(discriminator="name")] = Field(
        description="which new pairs of gold sentences are labelled"
    )
    cross_encoder: dict[str, Any] = Field(
        description="the labeller: the settings of the trainer `cross-encoder`, such as `base: {model: ...}`"
    )
    both_orders: bool = Field(
        True, description="label with the mean score of (a, b) and (b, a); false: of (a, b) only"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="of the sampling and of the cross-encoder's training")

    def needs(self) -> Mapping[str, Need]:
        """Return the cross-encoder, trained on gold and, if the role "dev" is given, selected on dev."""
        trained = TrainedModel(
            trainer="cross-encoder",
            config=self.cross_encoder,
            data=("gold",),
            seed=self.seed,
            evaluator="sts",
            selection="dev",
        )
        return {"cross_encoder": trained}

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per silver pair, placed in the sampler's order, scored in batches of like length.

        Raises UserError if the gold data can't give the pairs asked for, or none is left.
        """
        gold = GoldSentences.of(sources["gold"])
        pairs = self._sample(gold, context).pairs
        lengths = [len(gold.texts[first]) + len(gold.texts[second]) for first, second in pairs]
        scorer = context.pair_scorer("cross_encoder")
        finished = context.finished_units
        with context.progress.task("labelling silver pairs", len(pairs)) as task:
            for batch in length_sorted_units(lengths, BATCH_PAIRS):
                if any(str(position) not in finished for position in batch):
                    units = self._label(gold, pairs, batch, scorer)
                    yield from (unit for unit in units if unit.key not in finished)
                task.advance(len(batch))

    def _sample(self, gold: GoldSentences, context: GenerationContext) -> Candidates:
        candidates = self.sampler.sample(gold, self.seed)
        for reason, amount in candidates.dropped.items():
            context.count_dropped(reason, amount)
        if not candidates.pairs:
            raise UserError(f"augsbert: sampler {self.sampler.description}: every pair found is a gold pair")
        return candidates

    def _label(
        self, gold: GoldSentences, pairs: Sequence[IndexPair], batch: Sequence[int], scorer: PairScorer
    ) -> Iterator[Unit]:
        """Score a batch, the finished pairs in it too: the last bits of a score depend on its batch."""
        texts = [(gold.texts[first], gold.texts[second]) for first, second in (pairs[i] for i in batch)]
        scores = symmetric_scores(scorer, texts) if self.both_orders else scorer.score(texts)
        for position, score in zip(batch, scores.clip(0.0, 1.0).tolist(), strict=True):
            record = self._record(gold, pairs[position], score)
            yield Unit(key=str(position), position=position, records=(record,))

    def _record(self, gold: GoldSentences, pair: IndexPair, score: float) -> ScoredPair:
        first, second = pair
        return ScoredPair(
            sentence1=gold.texts[first],
            sentence2=gold.texts[second],
            score=score,
            source_id=f"{gold.source_ids[first]}+{gold.source_ids[second]}",
            method="augsbert",
            generator="cross-encoder",
            instruction=self.sampler.description,
            seed=self.seed,
        )
