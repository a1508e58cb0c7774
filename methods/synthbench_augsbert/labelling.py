"""Labelling pairs with a cross-encoder, resumable in the middle."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from synthbench.api import (
    GenerationContext,
    PairScorer,
    ScoredPair,
    Unit,
    length_sorted_units,
    symmetric_scores,
)

BATCH_PAIRS = 1024  # scored in one call; all that a killed run has to score again


@dataclass(frozen=True)
class PairsToLabel:
    """Pairs by their places 0, 1, ...: their texts, the key of each as a unit, and the record of a score."""

    number: int
    texts: Callable[[int], tuple[str, str]]
    key: Callable[[int], str]
    record: Callable[[int, float], ScoredPair]


def labelled(
    pairs: PairsToLabel, scorer: PairScorer, context: GenerationContext, *, both_orders: bool
) -> Iterator[Unit]:
    """Yield one unit per pair, in its place, scored in batches of like length.

    A label is the score, cut to [0, 1]; with `both_orders` the mean of (a, b)'s and (b, a)'s.
    """
    lengths = [sum(map(len, pairs.texts(place))) for place in range(pairs.number)]
    finished = context.finished_units
    with context.progress.task("labelling silver pairs", pairs.number) as task:
        for batch in length_sorted_units(lengths, BATCH_PAIRS):
            if any(pairs.key(place) not in finished for place in batch):
                units = _scored(pairs, batch, scorer, both_orders=both_orders)
                yield from (unit for unit in units if unit.key not in finished)
            task.advance(len(batch))


def _scored(
    pairs: PairsToLabel, batch: Sequence[int], scorer: PairScorer, *, both_orders: bool
) -> Iterator[Unit]:
    """Score a batch, the finished pairs in it too: the last bits of a score depend on its batch."""
    texts = [pairs.texts(place) for place in batch]
    scores = symmetric_scores(scorer, texts) if both_orders else scorer.score(texts)
    for place, score in zip(batch, scores.clip(0.0, 1.0).tolist(), strict=True):
        yield Unit(key=pairs.key(place), position=place, records=(pairs.record(place, score),))
