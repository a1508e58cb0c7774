"""embeddings-benchmark/mteb #4901: test pairs of STSb are training pairs, some in the other order.

Whatever compares pairs across data sets takes (a, b) and (b, a) for the same: the test sets that lose gold
pairs, the step that drops the test sets' pairs from training data, and the count of shared pairs.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, cast

from synthbench.data.contamination import TestIndex, drop_pairs_in, search
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.preparing.drops import DropOverlap

if TYPE_CHECKING:
    from synthbench.plugins.contracts import StepContext

TEST = [("A dog runs.", "A cat sleeps."), ("It rains.", "It snows.")]
TRAIN = [("a cat sleeps", "A dog  runs!"), ("It rains.", "A cat sleeps.")]


def pairs(texts: list[tuple[str, str]]) -> SyntheticDataset:
    return SyntheticDataset.create(
        RecordKind.SCORED_PAIR,
        [ScoredPair(sentence1=first, sentence2=second, score=0.5) for first, second in texts],
    )


class Context:
    """Knows the test set."""

    sources: ClassVar[Mapping[str, SyntheticDataset]] = {"test": pairs(TEST)}

    def source(self, name: str) -> SyntheticDataset | None:
        return self.sources.get(name)


def test_a_test_set_loses_gold_pairs_in_either_order() -> None:
    kept = drop_pairs_in(pairs(TEST), [pairs([("A cat sleeps.", "A dog runs."), ("It rains.", "Sun.")])])
    assert kept.column("sentence1") == ["It rains."]


def test_training_data_lose_test_pairs_in_either_order() -> None:
    step = DropOverlap(sources=("test",), by="pair")
    kept = step.apply(list(pairs(TRAIN)), cast("StepContext", Context()))
    assert [one.texts() for one in kept] == [TRAIN[1]]


def test_shared_pairs_are_counted_in_either_order() -> None:
    index = TestIndex({"test": TEST})
    (found,) = search([TRAIN], index).overlaps(index)
    assert found.items_as_pairs == 1
