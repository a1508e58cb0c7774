"""Label pairs with a cross-encoder trained on gold, or another labeller; an interrupted run resumes."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from pydantic import Field, model_validator

from synthbench.api import (
    ChatAmount,
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
)

LABELLER = "labeller"


class WithLabeller(Method):
    """Settings of methods that label pairs, by a cross-encoder trained for them or by another labeller."""

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
        if self.labeller is not None and not self.both_orders:
            raise ValueError("both_orders is `cross_encoder`'s; with `labeller` write labeller.both_orders")
        return self

    @property
    def _chosen(self) -> Labeller:
        return self.labeller or Labeller(cross_encoder=self.cross_encoder, both_orders=self.both_orders)

    @property
    def _need(self) -> str:
        return "" if self.labeller is None else LABELLER

    def needs(self) -> Mapping[str, Need]:
        """Return the labeller's model, if it has one.

        A cross-encoder is trained on gold and, if the role "dev" has a source, selected on dev.
        """
        return self._chosen.needs(self._need, self.seed)

    def needs_llm(self) -> bool:
        """Return whether an LLM labels."""
        return self._chosen.uses_llm

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if the role "dev" has a source but the labeller is not trained."""
        if "dev" in given and not self._chosen.learns:
            raise UserError(f"the labeller `{self._chosen.kind}` learns nothing from 'dev'")

    def labelling_cost(self, most_pairs: int | None) -> Iterator[str]:
        """Yield a line on the number of pairs to label with a local model; nothing for an LLM."""
        base = self._chosen.base
        if base is not None and most_pairs is None:
            yield f"pairs to label with {base.model}: unknown until the sources are read"
        elif base is not None and most_pairs is not None:
            num_inputs = most_pairs * (2 if self._chosen.reads_both_orders else 1)
            yield f"at most {most_pairs:,} pairs to label, {num_inputs:,} inputs of {base.model}"

    def labelling_requests(self, most_pairs: int | None) -> ChatAmount | None:
        """Return the requests to an LLM, one per pair; None if no LLM labels or `most_pairs` is None."""
        return None if most_pairs is None else self._chosen.asks(most_pairs)

    def labelled(self, pairs: "PairsToLabel", context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per unfinished pair, in any order; the unit's position is the pair's index.

        The record has the labeller's score, clipped to [0, 1]; without a clear score, it is a Failure.
        """
        generator = None if self.labeller is None else self.labeller.generator(context)
        found = self._chosen.verdicts(
            pairs.number,
            pairs.texts,
            self._need,
            context,
            lambda index: pairs.key(index) in context.finished_units,
        )
        for index, verdict in found:
            record: ScoredPair | Failure = pairs.record(index, verdict.value or 0.0)
            if verdict.value is None:
                record = Failure(reason=verdict.reason, raw_text=verdict.answered, source_id=record.source_id)
            elif generator is not None:
                record = replace(record, generator=generator)
            yield Unit(key=pairs.key(index), position=index, records=(record,))


@dataclass(frozen=True)
class PairsToLabel:
    """Pairs by index (0, 1, ...): the texts and unit key of each, and its record for a given score."""

    number: int
    texts: Callable[[int], tuple[str, str]]
    key: Callable[[int], str]
    record: Callable[[int, float], ScoredPair]
