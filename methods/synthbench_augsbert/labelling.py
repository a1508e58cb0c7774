"""Label pairs with a cross-encoder trained on gold, or any labeller; resumable in the middle."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic import Field, model_validator

from synthbench.api import (
    Failure,
    GenerationContext,
    Labeller,
    Method,
    Need,
    RecordKind,
    ScoredPair,
    Unit,
    UserError,
    added_field,
    scored_batches,
    trained_on_gold,
)

CROSS_ENCODER, LABELLER = "cross_encoder", "labeller"


class WithLabeller(Method):
    """Settings of methods that label with a cross-encoder, their dependency, or with another labeller."""

    record_kind = RecordKind.SCORED_PAIR
    cross_encoder: dict[str, Any] | None = added_field(
        None,
        description="the labeller: settings of the trainer `cross-encoder`, such as `base: {model: ...}`, "
        "and optionally `seed_optimization`, as in `train`",
    )
    labeller: Labeller | None = added_field(
        None,
        description="any other labeller, instead of `cross_encoder`",
    )
    both_orders: bool = Field(
        True,
        description="for `cross_encoder`: label with the mean score of (a, b) and (b, a); false: only (a, b)",
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of all draws, and of the cross-encoder's training")

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.cross_encoder is None) == (self.labeller is None):
            raise ValueError("needs either `cross_encoder` or `labeller`")
        return self

    def needs(self) -> Mapping[str, Need]:
        """Return the labeller's model, if it has one.

        A cross-encoder is trained on gold and, if the role "dev" has a source, selected on dev.
        """
        if self.labeller is not None:
            return self.labeller.needs(LABELLER, self.seed)
        return {CROSS_ENCODER: trained_on_gold("cross-encoder", self.cross_encoder or {}, self.seed)}

    def needs_llm(self) -> bool:
        """Return whether an LLM labels."""
        return self.labeller is not None and self.labeller.uses_llm

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if the labeller would learn nothing from the role dev."""
        if "dev" in given and self.labeller is not None and not self.labeller.learns:
            raise UserError(f"the labeller `{self.labeller.kind}` learns nothing from 'dev'")

    def labelling_cost(self, most_pairs: int | None) -> Iterator[str]:
        """Yield a line on the maximum number of pairs to label with a model, if known."""
        model, both_orders = "", self.both_orders
        if self.cross_encoder is not None:
            model = self.cross_encoder["base"]["model"]
        elif self.labeller is not None and self.labeller.base is not None:
            model, both_orders = self.labeller.base.model, self.labeller.reads_both_orders
        if model and most_pairs is None:
            yield f"pairs to label with {model}: unknown until the sources are read"
        elif model and most_pairs is not None:
            num_inputs = most_pairs * (2 if both_orders else 1)
            yield f"at most {most_pairs:,} pairs to label, {num_inputs:,} inputs of {model}"

    def labelled(self, pairs: "PairsToLabel", context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per pair, positioned by its index, scored in batches of similar length.

        The label is the score, clipped to [0, 1]; without a clear one, the unit has a Failure.
        """
        finished = context.finished_units
        if self.labeller is not None:
            yield from self._by_labeller(self.labeller, pairs, context)
            return
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

    @staticmethod
    def _by_labeller(labeller: Labeller, pairs: "PairsToLabel", context: GenerationContext) -> Iterator[Unit]:
        generator = context.llm.model if labeller.base is None else f"{labeller.kind} {labeller.base.model}"
        found = labeller.verdicts(
            pairs.number,
            pairs.texts,
            LABELLER,
            context,
            lambda index: pairs.key(index) in context.finished_units,
        )
        for index, verdict in found:
            record: ScoredPair | Failure
            if verdict.value is None:
                source = pairs.record(index, 0.0).source_id
                record = Failure(reason=verdict.reason, raw_text=verdict.answered, source_id=source)
            else:
                record = replace(pairs.record(index, verdict.value), generator=generator)
            yield Unit(key=pairs.key(index), position=index, records=(record,))


@dataclass(frozen=True)
class PairsToLabel:
    """Pairs by index 0, 1, ...: their texts, each pair's unit key, and the record for a score."""

    number: int
    texts: Callable[[int], tuple[str, str]]
    key: Callable[[int], str]
    record: Callable[[int, float], ScoredPair]
