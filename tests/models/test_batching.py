from hypothesis import given
from hypothesis import strategies as st

from synthbench.models.batching import length_batches

LENGTHS = st.lists(st.integers(1, 300), max_size=200)
BATCH_TOKENS = st.integers(16, 2048)


@given(LENGTHS, BATCH_TOKENS)
def test_every_text_is_in_exactly_one_batch(lengths: list[int], batch_tokens: int) -> None:
    batches = list(length_batches(lengths, batch_tokens))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))


@given(LENGTHS, BATCH_TOKENS)
def test_batches_stay_within_the_budget_unless_one_text_alone_exceeds_it(
    lengths: list[int], batch_tokens: int
) -> None:
    for batch in length_batches(lengths, batch_tokens):
        padded = len(batch) * max(lengths[index] for index in batch)
        assert padded <= batch_tokens or len(batch) == 1


@given(LENGTHS, BATCH_TOKENS)
def test_at_most_a_tenth_of_a_batch_is_padding(lengths: list[int], batch_tokens: int) -> None:
    for batch in length_batches(lengths, batch_tokens):
        tokens = [lengths[index] for index in batch]
        assert 10 * (len(batch) * max(tokens) - sum(tokens)) <= len(batch) * max(tokens)


def test_equal_lengths_fill_batches_in_order() -> None:
    assert list(length_batches([4] * 5, 16)) == [[0, 1, 2, 3], [4]]


def test_lengths_are_mixed_only_while_a_batch_is_small() -> None:
    assert list(length_batches([20, 20, 19], 40)) == [[0, 1], [2]]
    assert list(length_batches([20, 20, 19], 400)) == [[0, 1, 2]]
    assert list(length_batches([20] * 6 + [19], 400)) == [[0, 1, 2, 3, 4, 5], [6]]
