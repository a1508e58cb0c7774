"""Labelling pairs with a cross-encoder that was trained on gold, resumable in the middle."""

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
    """The settings of a method that labels with a cross-encoder, its dependency CROSS_ENCODER."""

    cross_encoder: dict[str, Any] = Field(
        description="the labeller: the settings of the trainer `cross-encoder`, such as `base: {model: ...}`;"
        " `seed_optimization`, as `train` has it, may be given beside them"
    )
    both_orders: bool = Field(
        True, description="label with the mean score of (a, b) and (b, a); false: of (a, b) only"
    )
    seed: int = Field(
        0, ge=0, lt=2**32, description="of all that is drawn, and of the cross-encoder's training"
    )

    def labeller(self) -> TrainedModel:
        """Return the cross-encoder, trained on gold and, if the role "dev" is given, selected on dev."""
        return trained_on_gold("cross-encoder", self.cross_encoder, self.seed)

    def labelling_cost(self, most_pairs: int | None) -> str:
        """Say how many pairs would be labelled at most, as far as amounts tell."""
        model = self.cross_encoder["base"]["model"]
        if most_pairs is None:
            return f"pairs to label with {model}: unknown until the sources are read"
        num_inputs = most_pairs * (2 if self.both_orders else 1)
        return f"at most {most_pairs:,} pairs to label, {num_inputs:,} inputs of {model}"

    def labelled(self, pairs: "PairsToLabel", context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per pair, positioned by its index, scored in batches of like length.

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
    """Pairs by index 0, 1, ...: their texts, the key of each as a unit, and the record of a score."""

    number: int
    texts: Callable[[int], tuple[str, str]]
    key: Callable[[int], str]
    record: Callable[[int, float], ScoredPair]
