"""Differences of rows over seeds, and over seeds and items."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import nct, t, ttest_1samp, ttest_ind, ttest_rel

from synthbench.statistics.differences import (
    Difference,
    Noise,
    SeedScores,
    effect_size,
    least_detectable,
    over_seeds,
)

VALUES = st.lists(st.integers(0, 10_000).map(lambda value: value / 10_000), min_size=3, max_size=6)


def sample(*values: float, is_seeded: bool = True) -> SeedScores:
    return SeedScores(values, is_seeded, tuple(range(len(values))))


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=3, max_size=6))
def test_rows_that_share_redrawn_data_are_paired(pairs: list[tuple[int, int]]) -> None:
    one, other = ([value / 1000 for value in values] for values in zip(*pairs, strict=True))
    if len({first - second for first, second in pairs}) == 1:
        return
    expected = ttest_rel(one, other)

    found = over_seeds(sample(*one), sample(*other), is_paired=True)

    assert found is not None
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    low, high = expected.confidence_interval(0.95)
    assert found.half_width == pytest.approx((high - low) / 2, rel=1e-6)


def test_pairs_are_matched_by_seed_not_position() -> None:
    row = SeedScores((0.5, 0.7, 0.6), seeds=(0, 1, 2))
    other = SeedScores((0.6, 0.4, 0.4), seeds=(1, 0, 2))

    found = over_seeds(row, other, is_paired=True)

    assert found is not None
    assert found.p_value == pytest.approx(ttest_rel((0.5, 0.7, 0.6), (0.4, 0.6, 0.4)).pvalue)


def test_rows_of_unknown_seeds_cant_be_paired() -> None:
    row = SeedScores((0.5, 0.7, 0.6))
    for other in (row, sample(0.5, 0.7, 0.6)):
        with pytest.raises(ValueError, match="unknown ones"):
            over_seeds(row, other, is_paired=True)


@pytest.mark.parametrize("other", [(0, 1), (0, 1, 2, 3), (0, 1, 3)])
def test_rows_of_different_seeds_cant_be_paired(other: tuple[int, ...]) -> None:
    values = (0.5, 0.7, 0.6, 0.9)

    with pytest.raises(ValueError, match="different seeds"):
        over_seeds(sample(*values[:3]), SeedScores(values[: len(other)], seeds=other), is_paired=True)


@given(VALUES, VALUES)
def test_other_rows_are_compared_by_welchs_test(one: list[float], other: list[float]) -> None:
    if len(set(one)) == 1 or len(set(other)) == 1:
        return

    found = over_seeds(sample(*one), sample(*other))

    assert found is not None
    expected = ttest_ind(one, other, equal_var=False)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6)
    assert found.whole.degrees_of_freedom == pytest.approx(expected.df, rel=1e-6)


def test_a_row_without_seeds_is_a_constant() -> None:
    values = (0.70, 0.71, 0.73)

    found = over_seeds(sample(*values), sample(0.7, is_seeded=False))

    assert found is not None
    assert found.p_value == pytest.approx(ttest_1samp(values, 0.7).pvalue)


@pytest.mark.parametrize(
    ("row", "other"),
    [
        (sample(0.9), sample(0.1, 0.2)),
        (sample(0.9), sample(0.1)),
        (sample(0.9), sample(0.1, is_seeded=False)),
        (sample(0.9, math.nan), sample(0.1, 0.2)),
        (sample(0.9, 0.8), sample(0.1, math.inf)),
        (sample(0.3, 0.3, 0.3), sample(0.2, 0.2)),
        (sample(0.3, 0.3 + 1e-16), sample(0.2, is_seeded=False)),
    ],
)
def test_unknown_noise_stays_unknown(row: SeedScores, other: SeedScores) -> None:
    assert over_seeds(row, other) is None


def test_equal_differences_of_paired_seeds_do_not_show_the_noise() -> None:
    """Accuracies over 100 items: both seeds gain exactly three items, which is not rare."""
    row, other = sample(0.74, 0.76), sample(0.71, 0.73)

    assert over_seeds(row, other, is_paired=True) is None
    assert over_seeds(row, other) is not None


def test_items_widen_the_interval_and_add_their_own_degrees_of_freedom() -> None:
    # Errors of 1 and 8 with 2 and 200 degrees: 81 / (1 / 2 + 64 / 200) = 98.78.
    found = Difference(1.0, (Noise(1.0, 2.0),)).with_items([Noise(8.0, 200.0)])

    assert found.whole.degrees_of_freedom == pytest.approx(98.78, abs=0.01)
    assert found.half_width == pytest.approx(3.0 * t.ppf(0.975, 98.78), rel=1e-4)
    assert found.p_value == pytest.approx(2 * t.sf(1 / 3, 98.78), rel=1e-4)


@given(st.floats(0.01, 100), st.floats(0, 100), st.floats(1, 20), st.floats(20, 5000), st.floats(-9, 9))
def test_more_noise_never_narrows_an_interval(
    seeds: float, items: float, freedom: float, more_freedom: float, value: float
) -> None:
    less = Difference(value, (Noise(seeds, freedom),))
    more = less.with_items([Noise(items, more_freedom)])

    assert more.half_width >= less.half_width or math.isclose(more.half_width, less.half_width)
    assert more.p_value >= less.p_value or math.isclose(more.p_value, less.p_value)
    # Interval and p value agree on significance.
    assert (abs(value) > more.half_width) == (more.p_value < 0.05) or math.isclose(more.p_value, 0.05)


def test_one_source_of_noise_keeps_its_degrees_of_freedom() -> None:
    assert Difference(1.0, (Noise(3.0, 2.0), Noise(0.0, 9.0))).whole.degrees_of_freedom == pytest.approx(2.0)
    assert Difference(1.0, (Noise(0.0, 2.0), Noise(3.0, 9.0))).whole.degrees_of_freedom == pytest.approx(9.0)


def test_a_difference_without_noise_is_certain() -> None:
    assert Difference(0.1, ()).p_value == 0.0
    assert Difference(0.0, ()).p_value == 1.0
    assert Difference(0.1, ()).half_width == 0.0


def test_the_effect_size_equals_a_value_worked_out_by_hand() -> None:
    # Deviation 1 in both, difference 2, four degrees: 2 * (1 - 3 / 15).
    assert effect_size(sample(2.0, 3.0, 4.0), sample(0.0, 1.0, 2.0)) == pytest.approx(1.6)
    # A constant row has no deviation: two degrees are left, 1 - 3 / 7.
    assert effect_size(sample(2.0, 3.0, 4.0), sample(1.0, is_seeded=False)) == pytest.approx(2 * 4 / 7)
    assert effect_size(sample(1.0, 1.0), sample(0.0, 0.0)) is None
    assert effect_size(sample(1.0), sample(0.0, 0.1)) is None
    # Squares of 2 and 18 with two and one degrees are pooled to 20 / 3, not to the mean of 1 and 18.
    expected = (1 - 3 / 11) * 3.0 / math.sqrt(20 / 3)
    assert effect_size(sample(5.0, 6.0, 7.0), sample(0.0, 6.0)) == pytest.approx(expected)


def test_rounding_errors_are_no_deviation_and_one_degree_of_freedom_gives_no_effect_size() -> None:
    assert effect_size(sample(0.3, 0.3 + 1e-16), sample(0.2, 0.2)) is None
    assert effect_size(sample(0.3, 0.4), sample(0.2, is_seeded=False)) is None
    assert effect_size(sample(0.3, is_seeded=False), sample(0.2, is_seeded=False)) is None


@given(st.floats(-9, 9), st.floats(0.01, 9), st.floats(1, 99), st.floats(0.0001, 0.2))
def test_an_interval_of_any_level_excludes_0_if_the_p_value_is_below_it(
    value: float, error: float, freedom: float, level: float
) -> None:
    found = Difference(value, (Noise(error, freedom),))

    excludes = abs(value) > found.half_width_at(level)
    assert excludes == (found.p_value < level) or math.isclose(found.p_value, level)


def test_the_minimum_detectable_difference_has_80_percent_power() -> None:
    differences = [Difference(value, (Noise(0.04, 4.0),)) for value in (0.0, 1.0)]

    shift = least_detectable(differences)

    assert shift is not None
    needed = t.ppf(0.975, 4)
    assert nct.sf(needed, 4, shift / 0.2) == pytest.approx(0.8)
    assert least_detectable([Difference(0.3, ())]) is None
