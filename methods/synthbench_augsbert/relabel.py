"""New scores for pairs that are there already, by a labeller."""

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
    GenerationContext,
    Labeller,
    Method,
    Need,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    Unit,
    UserError,
    Verdict,
    convert,
)
from synthbench_augsbert.gold import check_scores

PAIRS, UNSCORED, TRIPLETS = "pairs", "unscored", "triplets"
LABELLED_ROLES = (PAIRS, UNSCORED, TRIPLETS)
LABELLER = "labeller"
DECIMALS = 9
AGREES = 0.2
"""Scores that differ by no more than this agree: one grade of STS's scale."""


class Relabel(Method):
    """The pairs of one role with new scores in [0, 1], given by a labeller.

    Texts, split, subset, label and source stay. Triplets give two pairs each, scored 1 and 0 before; pairs
    without a score count as 1. How far new and former scores agree is measured.
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

    labeller: Labeller = Field(description="what gives the new scores")
    share: float = Field(
        1.0, gt=0, le=1, description="the new score's weight in the mean with the former one; 1: it alone"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="of the labeller's training")

    def needs_llm(self) -> bool:
        """Tell whether the labeller is an LLM."""
        return self.labeller.uses_llm

    def needs(self) -> Mapping[str, Need]:
        """Return the labeller's model."""
        return self.labeller.needs(LABELLER, self.seed)

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError unless one role has the pairs; and if gold pairs would train nothing."""
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
        """Say how many pairs a model would label; an LLM's costs are told by `asks`."""
        base, number = self.labeller.base, _num_pairs(num_records)
        if base is not None:
            amount = "unknown until they are made" if number is None else f"{number:,}"
            yield f"pairs to label with {base.model}: {amount}"

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return a record for each pair, and the labelling."""
        number = _num_pairs(num_records)
        return Expected() if number is None else Expected(number, self.labeller.work(number))

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the requests of an LLM as judge."""
        number = _num_pairs(num_records)
        return None if number is None else self.labeller.asks(number)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each pair, in its order; a Failure where an LLM gave no clear answer."""
        given = next(sources[role] for role in LABELLED_ROLES if role in sources)
        pairs = [pair for pair in convert(given, RecordKind.SCORED_PAIR) if isinstance(pair, ScoredPair)]
        agreement = _Agreement([pair.score for pair in pairs])
        for key, records in context.finished_records():
            for record in records:
                if isinstance(record, ScoredPair):
                    former = pairs[int(key)].score
                    agreement.add(int(key), (record.score - (1 - self.share) * former) / self.share)
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
        for name, value in agreement.measured():
            context.measure(name, value)

    def _labelled(
        self, pair: ScoredPair, verdict: Verdict, context: GenerationContext
    ) -> ScoredPair | Failure:
        source = pair.source_id or pair.id
        if verdict.value is None:
            return Failure(reason=verdict.reason, raw_text=verdict.answered, source_id=source)
        base = self.labeller.base
        return replace(
            pair,
            id="",
            score=self.share * verdict.value + (1 - self.share) * pair.score,
            source_id=source,
            method="relabel",
            generator=context.llm.model if base is None else f"{self.labeller.kind} {base.model}",
            seed=self.seed,
        )


class _Agreement:
    """Former scores, and the new ones by index, NaN as long as there is none."""

    def __init__(self, former: Sequence[float]) -> None:
        self._former = array("d", former)
        self._new = array("d", [math.nan]) * len(self._former)

    def add(self, index: int, score: float) -> None:
        """Note a new score; rounded, as one that was read from a weighted mean is off in its last bits."""
        self._new[index] = round(score, DECIMALS)

    def measured(self) -> Iterator[tuple[str, float]]:
        """Yield figures of the pairs that have a new score; the correlation only where both scores vary."""
        import numpy as np
        from scipy.stats import spearmanr

        new, former = np.array(self._new), np.array(self._former)
        known = ~np.isnan(new)
        new, former = new[known], former[known]
        if not len(new):
            return
        yield "relabel: mean of the former scores", float(former.mean())
        yield "relabel: mean of the new scores", float(new.mean())
        yield f"relabel: share within {AGREES:g}", float((abs(new - former) <= AGREES + 1e-9).mean())
        if np.ptp(new) and np.ptp(former):
            yield "relabel: Spearman of new and former", float(spearmanr(new, former).statistic)


def _num_pairs(num_records: Mapping[str, int]) -> int | None:
    """Return how many pairs the given role has, None if its size is unknown."""
    if TRIPLETS in num_records:
        return 2 * num_records[TRIPLETS]
    return next((num_records[role] for role in (PAIRS, UNSCORED) if role in num_records), None)
