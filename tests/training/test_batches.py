import math

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from synthbench.training.trainers import DistinctBatches, ShuffledBatches


def batches(
    kind: type[ShuffledBatches], rows: list[tuple[str, str]], batch_size: int, epoch: int = 0
) -> list[list[int]]:
    columns = dict(zip(("anchor", "positive"), map(list, zip(*rows, strict=True)), strict=True))
    sampler = kind(Dataset.from_dict(columns), batch_size, drop_last=False, seed=7)
    sampler.set_epoch(epoch)
    made = list(sampler)
    assert len(made) == len(sampler)
    return made


words = st.sampled_from("abcdefghij")


@settings(max_examples=50)
@given(rows=st.lists(st.tuples(words, words), min_size=1, max_size=40), batch_size=st.integers(1, 6))
def test_no_text_stands_in_two_records_of_a_batch(rows: list[tuple[str, str]], batch_size: int) -> None:
    made = batches(DistinctBatches, rows, batch_size)
    assert len(made) == math.ceil(len(rows) / batch_size)
    used = [row for batch in made for row in batch]
    assert len(used) == len(set(used))
    for batch in made:
        assert 1 <= len(batch) <= batch_size
        texts = [text for row in batch for text in set(rows[row])]
        assert len(texts) == len(set(texts))


def test_records_without_common_texts_come_as_they_would_anyway() -> None:
    rows = [(f"anchor {number}", f"positive {number}") for number in range(10)]
    assert batches(DistinctBatches, rows, 4) == batches(ShuffledBatches, rows, 4)


def test_a_record_waits_for_the_next_batch_and_then_comes_first() -> None:
    rows = [("same", f"positive {number}") for number in range(2)]
    rows += [(f"anchor {number}", f"positive {number}") for number in range(2, 4)]
    made = batches(DistinctBatches, rows, 2)
    assert sorted(row for batch in made for row in batch) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [ShuffledBatches, DistinctBatches])
def test_every_epoch_has_its_own_order(kind: type[ShuffledBatches]) -> None:
    rows = [(f"anchor {number}", f"positive {number}") for number in range(20)]
    assert batches(kind, rows, 4, epoch=0) != batches(kind, rows, 4, epoch=1)
    assert batches(kind, rows, 4, epoch=1) == batches(kind, rows, 4, epoch=1)
