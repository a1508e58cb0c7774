from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from wording import refused

from synthbench.api import length_sorted_units, symmetric_scores


class LengthDifference:
    """Scores (a, b) by len(a) - 2 len(b), which depends on the order."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([len(first) - 2.0 * len(second) for first, second in pairs])


@given(st.lists(st.integers(0, 500)), st.integers(1, 20))
def test_units_hold_every_text_once_in_order_of_length(lengths: list[int], unit_size: int) -> None:
    units = length_sorted_units(lengths, unit_size)
    order = [index for unit in units for index in unit]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[index] for index in order] == sorted(lengths)
    assert all(len(unit) == unit_size for unit in units[:-1])


def test_units_break_ties_by_position() -> None:
    assert length_sorted_units([5, 3, 5, 3], 3) == [[1, 3, 0], [2]]


def test_a_unit_size_of_zero_is_refused() -> None:
    with refused("1", kind=ValueError):
        length_sorted_units([1], 0)


def test_symmetric_scores_are_the_mean_of_both_orders() -> None:
    scores = symmetric_scores(LengthDifference(), [("aaa", "b"), ("b", "aaa"), ("cc", "cc")])
    # (3 - 2, 1 - 6) -> -2; the same pair turned round; (2 - 4, 2 - 4) -> -2
    assert scores.tolist() == [-2.0, -2.0, -2.0]


def test_an_empty_list_of_pairs_gives_no_scores() -> None:
    assert symmetric_scores(LengthDifference(), []).shape == (0,)
