"""Label pairs with a cross-encoder trained on gold; resumable in the middle."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from synthbench.api import (
    Component,
    GenerationContext,
    ScoredPair,
    TrainedModel,
    Unit,
    scored_batches,
    trained_on_gold,
)

CROSS_ENCODER = "cross_encoder"


class WithLabeller(Component):
    """Settings of methods that label with a cross-encoder, their dependency CROSS_ENCODER."""

    cross_encoder: dict[str, Any] = Field(
        description="the labeller: settings of the trainer `cross-encoder`, such as `base: {model: ...}`, "
        "and optionally `seed_optimization`, as in `train`"
    )
    both_orders: bool = Field(
        True, description="true: label with the mean score of (a, b) and (b, a); false: only (a, b)"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the cross-encoder's training")

    def labeller(self) -> TrainedModel:
        """Return the cross-encoder, trained on gold and, if the role "dev" has a source, selected on dev."""
        return trained_on_gold("cross-encoder", self.cross_encoder, self.seed)

    def labelling_cost(self, most_pairs: int | None) -> str:
        """Return a line on the maximum number of pairs to label, if known."""
        model = self.cross_encoder["base"]["model"]
        if most_pairs is None:
            return f"pairs to label with {model}: unknown until the sources are read"
        num_inputs = most_pairs * (2 if self.both_orders else 1)
        return f"at most {most_pairs:,} pairs to label, {num_inputs:,} inputs of {model}"

    def labelled(self, pairs: "PairsToLabel", context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per pair, positioned by its index, scored in batches of similar length.

        The label is the score, clipped to [0, 1].
        """
        finished = context.finished_units
        with context.progress.task("labelling silver pairs", pairs.number) as task:
            for batch, scores in scored_batches(
                lambda: context.pair_scorer(CROSS_ENCODER),
                pairs.number,
                pairs.texts,
                both_orders=self.both_orders,
                is_due=lambda piece, batch: (
                    context.is_mine(piece) and any(pairs.key(index) not in finished for index in batch)
                ),
            ):
                labels = zip(batch, scores.clip(0.0, 1.0).tolist(), strict=True) if len(scores) else ()
                units = (
                    Unit(key=pairs.key(index), position=index, records=(pairs.record(index, score),))
                    for index, score in labels
                )
                yield from (unit for unit in units if unit.key not in finished)
                task.advance(len(batch))


@dataclass(frozen=True)
class PairsToLabel:
    """Pairs by index 0, 1, ...: their texts, each pair's unit key, and the record for a score."""

    number: int
    texts: Callable[[int], tuple[str, str]]
    key: Callable[[int], str]
    record: Callable[[int, float], ScoredPair]
