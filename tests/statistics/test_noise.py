import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from synthbench.statistics.differences import SeedScores, interval_half_width, leads

SCORES = st.lists(
    st.floats(-1, 1, allow_nan=False).map(lambda value: round(value, 4)), min_size=2, max_size=6
)


def test_mean_and_deviation_equal_values_worked_out_by_hand() -> None:
    sample = SeedScores((0.70, 0.71, 0.72))

    assert math.isclose(sample.mean, 0.71)
    assert sample.standard_deviation is not None
    assert math.isclose(sample.standard_deviation, 0.01)
    assert sample.num_seeds == 3


def test_a_lead_must_exceed_the_standard_error_times_the_quantile() -> None:
    # Error sqrt(1 / 3 + 1 / 3) = 0.8165, four degrees of freedom, t = 2.7764: more than 2.267 is needed.
    other = SeedScores((-1.0, 0.0, 1.0))

    assert leads(SeedScores((1.27, 2.27, 3.27)), other)
    assert not leads(SeedScores((1.26, 2.26, 3.26)), other)


def test_an_interval_is_the_standard_error_times_the_quantile() -> None:
    # Two degrees of freedom: t = 4.303, standard error 1.5 / sqrt(3); one: t = 12.706, 2 / sqrt(2).
    assert interval_half_width(1.5, 3) == pytest.approx(4.303 * 1.5 / 3**0.5, abs=1e-3)
    assert interval_half_width(2.0, 2) == pytest.approx(12.706 * 2.0 / 2**0.5, abs=1e-3)
    assert interval_half_width(0.0, 5) == 0.0


def test_a_single_seed_gives_no_noise() -> None:
    assert SeedScores((0.9,)).standard_deviation is None
    assert not leads(SeedScores((0.9,)), SeedScores((0.1, 0.1, 0.1)))
    assert not leads(SeedScores((0.9, 0.9)), SeedScores((0.1,)))


def test_equal_scores_give_no_noise_and_no_lead() -> None:
    assert not leads(SeedScores((0.3, 0.3)), SeedScores((0.2, 0.2)))
    assert leads(SeedScores((0.3, 0.3)), SeedScores((0.1, 0.101)))


def test_a_row_with_an_undefined_score_neither_leads_nor_trails() -> None:
    undefined = SeedScores((math.nan, 0.2))

    assert not leads(undefined, SeedScores((0.1, 0.1)))
    assert not leads(SeedScores((0.9, 0.9)), undefined)


@given(SCORES, SCORES)
def test_no_two_rows_lead_each_other(one: list[float], other: list[float]) -> None:
    assert not (
        leads(SeedScores(tuple(one)), SeedScores(tuple(other)))
        and leads(SeedScores(tuple(other)), SeedScores(tuple(one)))
    )


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(SCORES, SCORES)
def test_leads_agree_with_scipys_welch_test(one: list[float], other: list[float]) -> None:
    if len(set(one)) == 1 and len(set(other)) == 1:
        return
    p_value = ttest_ind(one, other, equal_var=False).pvalue
    if math.isclose(p_value, 0.05, rel_tol=1e-6):
        return

    significant = bool(p_value < 0.05) and sum(one) / len(one) > sum(other) / len(other)

    assert leads(SeedScores(tuple(one)), SeedScores(tuple(other))) == significant


def test_a_row_without_seeds_is_compared_by_the_other_rows_noise() -> None:
    """Three seeds, mean 0.72, standard error 0.01; the 97.5 % quantile of t with 2 degrees is 4.303."""
    seeded = SeedScores((0.72 - 0.0173205, 0.72, 0.72 + 0.0173205))
    assert leads(seeded, SeedScores((0.72 - 0.0431,), is_seeded=False))
    assert not leads(seeded, SeedScores((0.72 - 0.0429,), is_seeded=False))
    assert leads(SeedScores((0.72 + 0.0431,), is_seeded=False), seeded)
    assert not leads(seeded, SeedScores((0.5,)))


def test_two_rows_without_seeds_do_not_lead_each_other() -> None:
    assert not leads(SeedScores((0.9,), is_seeded=False), SeedScores((0.1,), is_seeded=False))
