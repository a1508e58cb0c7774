"""scipy/scipy #20179: a paired t-test of equal samples has the p value NaN, and one of a constant gain 0.

Coarse scores come out equal by chance. Without noise between seeds nothing is said of the difference: no p
value that is NaN, no certainty, no star.
"""

import pytest

from synthbench.statistics.differences import SeedScores, effect_size, over_seeds

SEEDS = (0, 1, 2)
ROW = SeedScores((0.71, 0.74, 0.78), seeds=SEEDS)


@pytest.mark.parametrize("gain", [0.0, 0.02])
def test_a_difference_that_is_equal_for_all_seeds_has_no_p_value(gain: float) -> None:
    other = SeedScores(tuple(value - gain for value in ROW.values), seeds=SEEDS)
    assert over_seeds(ROW, other, is_paired=True) is None


def test_a_difference_with_noise_has_its_p_value() -> None:
    other = SeedScores((0.60, 0.66, 0.64), seeds=SEEDS)
    found = over_seeds(ROW, other, is_paired=True)
    assert found is not None
    # By hand: gains 0.11 0.08 0.14, t = 0.11 / (0.03 / sqrt 3) = 6.351 with 2 degrees of freedom.
    assert found.p_value == pytest.approx(0.0239, abs=1e-4)


def test_equal_rows_without_noise_have_no_effect_size() -> None:
    alike = SeedScores((0.7, 0.7, 0.7), seeds=SEEDS)
    assert effect_size(alike, alike) is None
