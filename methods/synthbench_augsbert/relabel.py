"""New scores for existing pairs, by a labeller."""

import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from synthbench.api import (
    ChatAmount,
    Expected,
    Failure,
    GeneratedData,
    GenerationContext,
    Labeller,
    Method,
    Need,
    Record,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    Unit,
    UserError,
    Verdict,
    Work,
    convert,
)
from synthbench_augsbert.gold import check_scores

PAIRS, UNSCORED, TRIPLETS = "pairs", "unscored", "triplets"
LABELLED_ROLES = (PAIRS, UNSCORED, TRIPLETS)
LABELLER = "labeller"
SCORES = "scores"
ROUNDING = 1e-9
AGREES = 0.2
"""Scores agree if they differ by at most this: one grade of STS's scale."""


class Relabel(Method):
    """The pairs of one role with new scores in [0, 1] by a labeller.

    Texts, split, subset, label and source are unchanged. A triplet gives two pairs, with former scores 1 and
    0; the former score of an unscored pair is 1. The agreement of new and former scores is measured.
    """

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {
        PAIRS: RecordKind.SCORED_PAIR,
        UNSCORED: RecordKind.PAIR,
        TRIPLETS: RecordKind.TRIPLET,
        "gold": RecordKind.SCORED_PAIR,
        "dev": RecordKind.SCORED_PAIR,
    }

    labeller: Labeller = Field(description="the labeller that gives the new scores")
    share: float = Field(
        1.0,
        gt=0,
        le=1,
        description="weight of the new score against the former; 1: only the new",
    )
    within: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="keep only pairs whose new and former scores differ by at most this; null: all",
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the labeller's training")

    def needs_llm(self) -> bool:
        """Return whether this method asks an LLM: False for mixing or filtering, whose dependency asks."""
        return self.labeller.uses_llm and not self._is_derived

    def needs(self) -> Mapping[str, Need]:
        """Return the labeller's model; for mixing or filtering, a data set of new scores that rows share."""
        if not self._is_derived:
            return self.labeller.needs(LABELLER, self.seed)
        settings = {**self.model_dump(mode="json"), "share": 1.0, "within": None}
        roles = {role: role for role in self.optional_source_roles}
        return {SCORES: GeneratedData("relabel", settings, sources=roles)}

    def can_be_sharded(self) -> bool:
        """True for labelling, by batch or request; mixing scores takes seconds."""
        return not self._is_derived

    @property
    def _is_derived(self) -> bool:
        return self.share < 1 or self.within is not None

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError unless exactly one role has pairs to label.

        Also raises UserError if an untrained labeller gets gold or dev.
        """
        labelled = [role for role in LABELLED_ROLES if role in given]
        if len(labelled) != 1:
            found = f"has {' and '.join(labelled)}" if labelled else "has none of them"
            raise UserError(f"relabel: needs one of the roles {', '.join(LABELLED_ROLES)}; {found}")
        for role in ("gold", "dev"):
            if role in given and not self.labeller.learns:
                raise UserError(f"relabel: the labeller `{self.labeller.kind}` learns nothing from '{role}'")

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if the labeller would learn from equal scores."""
        if self.labeller.learns:
            check_scores("relabel", sources)

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return a line on the number of pairs that a local model would label; for an LLM see `asks`."""
        base, number = self.labeller.base, _num_pairs(num_records)
        if base is not None and not self._is_derived:
            amount = "unknown until they are made" if number is None else f"{number:,}"
            yield f"pairs to label with {base.model}: {amount}"

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one record per pair.

        For mixing or filtering, also the amount of computation: one call per pair.
        """
        number = _num_pairs(num_records)
        return Expected(number, Work("", 0.0, number) if number and self._is_derived else None)

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the requests to an LLM judge, one per pair; None without an LLM or if pairs are unknown."""
        number = _num_pairs(num_records)
        return None if number is None or self._is_derived else self.labeller.asks(number)

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        """Yield one unit per pair, with its index as position; a Failure if an LLM gave no clear answer.

        Mixing and filtering take seconds, so they yield bare records. The agreement of new and former scores
        is measured on all pairs with a new score.
        """
        given = next(sources[role] for role in LABELLED_ROLES if role in sources)
        pairs = [pair for pair in convert(given, RecordKind.SCORED_PAIR) if isinstance(pair, ScoredPair)]
        if self._is_derived:
            return self._derived(pairs, context)
        return self._relabelled(pairs, context)

    def _relabelled(self, pairs: Sequence[ScoredPair], context: GenerationContext) -> Iterator[Unit]:
        agreement = _Agreement([pair.score for pair in pairs])
        for key, records in context.finished_records():
            for record in records:
                if isinstance(record, ScoredPair):
                    agreement.add(int(key), record.score)
        found = self.labeller.verdicts(
            len(pairs),
            lambda index: (pairs[index].sentence1, pairs[index].sentence2),
            LABELLER,
            context,
            lambda index: str(index) in context.finished_units,
        )
        for index, verdict in found:
            if verdict.value is not None:
                agreement.add(index, verdict.value)
            yield Unit(str(index), index, (self._labelled(pairs[index], verdict, context),))
        agreement.measure(context)

    def _derived(self, pairs: Sequence[ScoredPair], context: GenerationContext) -> Iterator[Record]:
        """Yield the pairs with mixed scores, without pairs whose scores differ too much."""
        known = {record.texts(): record for record in context.records(SCORES)}
        agreement = _Agreement([pair.score for pair in pairs])
        for index, pair in enumerate(pairs):
            new = known.get(pair.texts())
            if new is None:
                context.count_dropped("no clear answer")
                continue
            agreement.add(index, new.score)
            if self.within is not None and abs(new.score - pair.score) > self.within + ROUNDING:
                context.count_dropped(f"new and former score differ by more than {self.within:g}")
                continue
            score = self.share * new.score + (1 - self.share) * pair.score
            yield replace(
                pair,
                id="",
                score=score,
                source_id=pair.source_id or pair.id,
                method="relabel",
                generator=new.generator,
                seed=self.seed,
            )
        agreement.measure(context)

    def _labelled(
        self, pair: ScoredPair, verdict: Verdict, context: GenerationContext
    ) -> ScoredPair | Failure:
        source = pair.source_id or pair.id
        if verdict.value is None:
            return Failure(reason=verdict.reason, raw_text=verdict.answered, source_id=source)
        return replace(
            pair,
            id="",
            score=verdict.value,
            source_id=source,
            method="relabel",
            generator=self.labeller.generator(context),
            seed=self.seed,
        )


class _Agreement:
    """The former and the new score of each pair, by index; a new one is NaN until known."""

    def __init__(self, former: Sequence[float]) -> None:
        self._former = array("d", former)
        self._new = array("d", [math.nan]) * len(self._former)

    def add(self, index: int, score: float) -> None:
        """Record a new score."""
        self._new[index] = score

    def measure(self, context: GenerationContext) -> None:
        """Measure the agreement on pairs with a new score; the correlation only if both scores vary."""
        for name, value in self._figures():
            context.measure(name, value)

    def _figures(self) -> Iterator[tuple[str, float]]:
        import numpy as np
        from scipy.stats import spearmanr

        new, former = np.array(self._new), np.array(self._former)
        known = ~np.isnan(new)
        new, former = new[known], former[known]
        if not len(new):
            return
        yield "relabel: mean of the former scores", float(former.mean())
        yield "relabel: mean of the new scores", float(new.mean())
        yield f"relabel: share within {AGREES:g}", float((abs(new - former) <= AGREES + ROUNDING).mean())
        if np.ptp(new) and np.ptp(former):
            yield "relabel: Spearman of new and former", float(spearmanr(new, former).statistic)


def _num_pairs(num_records: Mapping[str, int]) -> int | None:
    """Return the number of pairs to label, None if unknown; a triplet gives two."""
    if TRIPLETS in num_records:
        return 2 * num_records[TRIPLETS]
    return next((num_records[role] for role in (PAIRS, UNSCORED) if role in num_records), None)
