"""pmbaumgartner/setfit #2: drawing a partner for a sentence that has none goes on for ever.

Where there are too few partners, all there are are taken and the lack is said, or it is an error; nothing
draws until it finds what does not exist.
"""

from typing import TYPE_CHECKING, cast

import numpy as np
from wording import refused

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Record, RecordKind, ScoredPair
from synthbench.preparing.scores import AddRandomNegatives
from synthbench.training.trainers import DistinctBatches

if TYPE_CHECKING:
    from synthbench.plugins.contracts import StepContext

ONE = ScoredPair(id="a", sentence1="A dog runs.", sentence2="Dogs run.", score=1.0)
TWO = ScoredPair(id="b", sentence1="It rains.", sentence2="Rain falls.", score=1.0)
NO_CONTEXT = cast("StepContext", None)


def records(*pairs: Record) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs)


def test_a_single_group_without_partners_is_an_error() -> None:
    with refused("add-random-negatives"):
        list(AddRandomNegatives(per_group=1).apply(records(ONE), NO_CONTEXT))


def test_if_partners_are_too_few_all_are_used() -> None:
    step = AddRandomNegatives(per_group=5)
    found = list(step.apply(records(ONE, TWO), NO_CONTEXT))
    assert [one.texts() for one in found[2:]] == [("A dog runs.", "Rain falls."), ("It rains.", "Dogs run.")]
    assert step.remark(records(ONE, TWO), records(*found)).startswith("8 fewer than wanted")


def test_batching_of_equal_records_terminates() -> None:
    from datasets import Dataset

    same = Dataset.from_dict({"anchor": ["A dog runs."] * 9, "positive": ["Dogs run."] * 9})
    batches = DistinctBatches(same, batch_size=4, drop_last=False, seed=0)
    found = list(batches)
    assert [len(batch) for batch in found] == [1, 1, 1]
    assert len(np.unique(np.concatenate(found))) == 3
