import math

import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from synthbench.base.errors import UserError
from synthbench.training.joint import SharedBatches
from synthbench.training.trainers import DistinctBatches, ShuffledBatches


def table(rows: list[tuple[str, str]]) -> Dataset:
    columns = dict(zip(("anchor", "positive"), map(list, zip(*rows, strict=True)), strict=True))
    return Dataset.from_dict(columns)


def batches(
    kind: type[ShuffledBatches], rows: list[tuple[str, str]] | Dataset, batch_size: int, epoch: int = 0
) -> list[list[int]]:
    data = table(rows) if isinstance(rows, list) else rows
    sampler = kind(data, batch_size, drop_last=False, seed=7)
    sampler.set_epoch(epoch)
    made = list(sampler)
    assert len(made) == len(sampler)
    return made


words = st.sampled_from("abcdefghij")


@settings(max_examples=50)
@given(rows=st.lists(st.tuples(words, words), min_size=1, max_size=40), batch_size=st.integers(1, 6))
def test_no_text_occurs_in_two_records_of_a_batch(rows: list[tuple[str, str]], batch_size: int) -> None:
    made = batches(DistinctBatches, rows, batch_size)
    assert len(made) == math.ceil(len(rows) / batch_size)
    used = [row for batch in made for row in batch]
    assert len(used) == len(set(used))
    for batch in made:
        assert 1 <= len(batch) <= batch_size
        texts = [text for row in batch for text in set(rows[row])]
        assert len(texts) == len(set(texts))


def test_records_without_common_texts_keep_their_ordinary_order() -> None:
    rows = [(f"anchor {number}", f"positive {number}") for number in range(10)]
    assert batches(DistinctBatches, rows, 4) == batches(ShuffledBatches, rows, 4)


def test_a_postponed_record_is_the_first_of_the_next_batch() -> None:
    rows = [("same", f"positive {number}") for number in range(2)]
    rows += [(f"anchor {number}", f"positive {number}") for number in range(2, 4)]
    made = batches(DistinctBatches, rows, 2)
    assert sorted(row for batch in made for row in batch) == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [ShuffledBatches, DistinctBatches])
def test_every_epoch_has_its_own_order(kind: type[ShuffledBatches]) -> None:
    rows = [(f"anchor {number}", f"positive {number}") for number in range(20)]
    assert batches(kind, rows, 4, epoch=0) != batches(kind, rows, 4, epoch=1)
    assert batches(kind, rows, 4, epoch=1) == batches(kind, rows, 4, epoch=1)


def one_after_another(rows: list[tuple[str, str]], order: list[int], batch_size: int) -> list[list[int]]:
    """The rule in its plainest form: each batch looks at all records that wait, in their order."""
    waiting, made = list(order), []
    for _ in range(math.ceil(len(rows) / batch_size)):
        batch: list[int] = []
        seen: set[str] = set()
        for row in waiting:
            if len(batch) < batch_size and seen.isdisjoint(rows[row]):
                batch.append(row)
                seen.update(rows[row])
        waiting = [row for row in waiting if row not in batch]
        made.append(batch)
    return made


few = st.sampled_from("abcde")


@settings(max_examples=200)
@given(rows=st.lists(st.tuples(few, words), min_size=1, max_size=60), batch_size=st.integers(1, 8))
def test_batches_equal_those_of_an_exhaustive_search(rows: list[tuple[str, str]], batch_size: int) -> None:
    data = table(rows)
    order = [row for batch in batches(ShuffledBatches, data, batch_size) for row in batch]
    assert batches(DistinctBatches, data, batch_size) == one_after_another(rows, order, batch_size)


def test_a_text_in_thousands_of_records_does_not_slow_the_search() -> None:
    """A record is inspected for the batch that it joins, not for each batch that it is deferred to."""
    rows = [(f"anchor {number % 4}", f"positive {number}") for number in range(20_000)]
    columns = dict(zip(("anchor", "positive"), map(list, zip(*rows, strict=True)), strict=True))
    sampler = DistinctBatches(Dataset.from_dict(columns), 8, drop_last=False, seed=7)

    class Counting(list[tuple[str, ...]]):
        looks = 0

        def __getitem__(self, row: object) -> tuple[str, ...]:
            Counting.looks += 1
            return super().__getitem__(row)  # type: ignore[index,no-any-return]

    sampler._texts = Counting(sampler._texts)
    made = list(sampler)
    assert {len(batch) for batch in made} == {4}
    assert Counting.looks < 4 * len(rows)


def test_records_left_out_of_an_epoch_are_counted() -> None:
    rows = [("same", f"positive {number}") for number in range(10)]
    columns = dict(zip(("anchor", "positive"), map(list, zip(*rows, strict=True)), strict=True))
    assert DistinctBatches(Dataset.from_dict(columns), 4, drop_last=False, seed=7).num_left_out() == 7


@given(rows=st.lists(st.tuples(words, words), min_size=6, max_size=40), num_shares=st.integers(2, 3))
def test_all_processes_get_equal_shares_without_duplicate_texts(
    rows: list[tuple[str, str]], num_shares: int
) -> None:
    columns = dict(zip(("anchor", "positive"), map(list, zip(*rows, strict=True)), strict=True))
    whole = DistinctBatches(Dataset.from_dict(columns), 2 * num_shares, drop_last=False, seed=7)
    sampler = SharedBatches(whole, num_shares)
    try:
        shares = list(sampler)
    except UserError as error:
        assert "no text in common" in str(error)
        return
    assert len(shares) == len(sampler)
    for start in range(0, len(shares), num_shares):
        together = shares[start : start + num_shares]
        assert len({len(share) for share in together}) == 1
        assert len(together[0]) >= 1
        texts = [text for share in together for row in share for text in set(rows[row])]
        assert len(texts) == len(set(texts))
