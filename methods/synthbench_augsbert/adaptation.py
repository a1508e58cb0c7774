"""AugSBERT's domain adaptation: labels of one domain for another's pairs (Thakur et al. 2021, s. 3.2)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from synthbench.api import (
    Expected,
    GenerationContext,
    Method,
    Need,
    RecordKind,
    ScoredPair,
    SyntheticDataset,
    Unit,
    UserError,
)
from synthbench_augsbert.gold import check_scores
from synthbench_augsbert.labelling import CROSS_ENCODER, PairsToLabel, WithLabeller

SHARED = "shares a sentence with the source domain"
NOTHING_OF_ITS_OWN = (
    "augsbert-domain: the source 'target' has no pair in split 'train' whose sentences are not in 'gold'"
)


class AugSBERTDomain(WithLabeller, Method):
    """The pairs of a target domain, labelled by a cross-encoder that was trained on a source domain's gold.

    Whatever scores the target's pairs have are not looked at. An experiment trains the bi-encoder on what
    comes of it alone; trained on the source's gold it is the lower bound, on the target's the upper one.
    """

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = {
        "gold": RecordKind.SCORED_PAIR,
        "target": RecordKind.SCORED_PAIR,
    }
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {"dev": RecordKind.SCORED_PAIR}

    def needs(self) -> Mapping[str, Need]:
        """Return the cross-encoder, trained on gold and, if the role "dev" is given, selected on dev."""
        return {CROSS_ENCODER: self.labeller()}

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Tell how many pairs the cross-encoder would label."""
        yield self.labelling_cost(num_records.get("target"))

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return a record for each pair of the target, at most, and the labelling."""
        return self.expected_labels(num_records.get("target"))

    def table_notes(self) -> tuple[str, ...]:
        """Tell that pairs of the target are left out; the paper does not say that it left out any."""
        return (
            "augsbert-domain leaves out target pairs with a sentence of the source's gold pairs; the paper"
            " names no such step.",
        )

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if gold's or dev's scores are all equal, or the target has no pair of its own."""
        check_scores("augsbert-domain", sources)
        if not any(is_own for _, is_own in _target_pairs(sources)):
            raise UserError(NOTHING_OF_ITS_OWN)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per pair of the target in split "train", in its order.

        Pairs with a sentence of the source domain are left out and counted. Raises UserError if none is left.
        """
        found = list(_target_pairs(sources))
        pairs = [pair for pair, is_own in found if is_own]
        context.count_dropped(SHARED, len(found) - len(pairs))
        if not pairs:
            raise UserError(NOTHING_OF_ITS_OWN)
        to_label = PairsToLabel(
            len(pairs),
            texts=lambda place: (pairs[place].sentence1, pairs[place].sentence2),
            key=str,
            record=lambda place, score: self._record(pairs[place], score),
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
    """Yield the target's pairs of split "train", and whether none of their sentences stands in gold."""
    known = set(sources["gold"].texts)
    for pair in sources["target"]:
        if pair.split == "train":
            yield pair, known.isdisjoint(pair.texts())
