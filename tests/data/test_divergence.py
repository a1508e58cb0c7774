"""Divergence of one histogram from another, by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.api import kl_divergence

COUNTS = st.lists(st.integers(0, 40), min_size=3, max_size=3).filter(any)


@pytest.mark.parametrize(("reference", "share"), [([9, 0, 0], 9.5 / 10.5), ([0, 9, 0], 0.5 / 10.5)])
def test_half_a_count_is_added_to_each_bin_of_the_reference(reference: list[int], share: float) -> None:
    assert kl_divergence([4, 0, 0], reference) == pytest.approx(math.log(1 / share))


@given(COUNTS, COUNTS, st.integers(2, 50))
def test_divergence_does_not_depend_on_the_number_of_counts(
    counts: list[int], reference: list[int], times: int
) -> None:
    many = [count * times for count in counts]
    assert kl_divergence(many, reference) == pytest.approx(kl_divergence(counts, reference), abs=1e-12)
