"""Variances over items that share sentences, against sums written out item by item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.statistics.shared_sentences import SharedSentences, degrees_of_freedom

Sets = list[set[int]]


def shared(sets: Sets) -> SharedSentences:
    entries = [(item, sentence) for item, held in enumerate(sets) for sentence in held]
    items, sentences = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return SharedSentences(items, sentences, len(sets))


def written_out(sets: Sets, values: np.ndarray) -> np.ndarray:
    neighbours = np.array([[float(one is other or bool(one & other)) for other in sets] for one in sets])
    return values @ neighbours @ values.T


ITEMS = st.lists(st.sets(st.integers(0, 9), max_size=3), min_size=1, max_size=25)


@given(ITEMS, st.integers(0, 2**32 - 1))
def test_covariances_are_the_double_sum_over_items_that_share_a_sentence(sets: Sets, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(3, len(sets)))

    assert shared(sets).covariances(values) == pytest.approx(written_out(sets, values), abs=1e-9)


@given(ITEMS, ITEMS, st.integers(0, 2**32 - 1))
def test_a_union_of_test_sets_shares_sentences_across_them(one: Sets, other: Sets, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(2, len(one) + len(other)))

    union = SharedSentences.union([shared(one), shared(other)])

    assert union.covariances(values) == pytest.approx(written_out([*one, *other], values), abs=1e-9)


def test_pairs_follow_the_sum_over_sentences_less_the_sum_over_repeated_pairs() -> None:
    """The published form for pairs: sum of S_s^2 over sentences minus that of D_p^2 over distinct pairs."""
    pairs = [(1, 2), (2, 1), (2, 3), (3, 4), (5, 5), (6, 7)]
    values = np.array([1.0, 2.0, -3.0, 4.0, 5.0, -6.0])
    of_sentences = [1 + 2, 1 + 2 - 3, -3 + 4, 4, 5, -6, -6]
    of_pairs = [1 + 2, -3, 4, -6]

    found = shared([set(pair) for pair in pairs]).covariances(values[None])

    assert found[0, 0] == sum(each**2 for each in of_sentences) - sum(each**2 for each in of_pairs)


def test_a_chain_of_shared_sentences_is_one_component() -> None:
    sets: Sets = [{1, 2}, {2, 3}, {3, 4}, {5}, set()]

    sums = shared(sets).sums_by_component(np.array([[1.0, 2.0, 4.0, 8.0, 16.0]]))

    assert sorted(sums[0].tolist()) == [7.0, 8.0, 16.0]


def test_a_large_set_of_items_is_gone_through_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sets: Sets = [{item % 7, 10 + item % 11} for item in range(60)]
    values = np.random.default_rng(1).normal(size=(2, 60))
    whole = shared(sets).covariances(values)

    monkeypatch.setattr("synthbench.statistics.shared_sentences.ENTRIES", 200)

    assert shared(sets).covariances(values) == pytest.approx(whole)


@pytest.mark.parametrize(
    ("sums", "expected"),
    [([1.0] * 10, 28.0), ([1.0, 0.0, 0.0], 1.0), ([0.0, 0.0], 1.0), ([2.0, 1.0], 3 * 25 / 17 - 2)],
)
def test_degrees_of_freedom_by_hand(sums: list[float], expected: float) -> None:
    assert degrees_of_freedom(np.array([sums]))[0] == pytest.approx(expected)
