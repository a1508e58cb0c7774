"""huggingface/sentence-transformers #2791: losses read columns in their order, and another one trained amiss.

Here exported columns are in the order that losses read: the anchor before what is compared with it.
"""

import pytest

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, Record, RecordKind, ScoredPair, Triplet
from synthbench.exporting.dataset import tables_of


@pytest.mark.parametrize(
    ("record", "columns"),
    [
        (Pair(split="train", positive="b", anchor="a"), ["anchor", "positive"]),
        (Triplet(split="train", negative="c", positive="b", anchor="a"), ["anchor", "positive", "negative"]),
        (
            ScoredPair(split="train", score=1.0, sentence2="b", sentence1="a"),
            ["sentence1", "sentence2", "score"],
        ),
    ],
)
def test_columns_are_in_the_order_that_losses_expect(record: Record, columns: list[str]) -> None:
    data = SyntheticDataset.create(RecordKind(record.kind), [record])
    assert tables_of(data)["default"]["train"].column_names == columns
