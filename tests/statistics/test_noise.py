import math

import pytest

from synthbench.statistics.differences import SeedScores, interval_half_width


def test_mean_and_deviation_equal_values_worked_out_by_hand() -> None:
    sample = SeedScores((0.70, 0.71, 0.72))

    assert math.isclose(sample.mean, 0.71)
    assert sample.standard_deviation is not None
    assert math.isclose(sample.standard_deviation, 0.01)
    assert sample.num_seeds == 3


def test_an_interval_is_the_standard_error_times_the_quantile() -> None:
    # Two degrees of freedom: t = 4.303, standard error 1.5 / sqrt(3); one: t = 12.706, 2 / sqrt(2).
    assert interval_half_width(1.5, 3) == pytest.approx(4.303 * 1.5 / 3**0.5, abs=1e-3)
    assert interval_half_width(2.0, 2) == pytest.approx(12.706 * 2.0 / 2**0.5, abs=1e-3)
    assert interval_half_width(0.0, 5) == 0.0


def test_a_single_seed_gives_no_noise() -> None:
    assert SeedScores((0.9,)).standard_deviation is None
