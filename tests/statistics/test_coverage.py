"""Intervals hold the true value as often as stated, in simulations with fixed seeds.

Of 400 intervals at 95 % the share that holds the truth has a standard error of 1.09 points; four of them are
allowed.
"""

import numpy as np
import pytest
from simulated_experiments import NUM_ITEMS, WORLDS, Experiment, World, covers, simulate

TOLERANCE = 0.044


def experiments(world: World, num_seeds: int, number: int) -> list[Experiment]:
    generator = np.random.default_rng(0)
    return [simulate(world, num_seeds, NUM_ITEMS, generator) for _ in range(number)]


@pytest.mark.parametrize("num_seeds", [3, 10])
@pytest.mark.parametrize("noise", ["seeds", "items", "both"])
def test_intervals_of_a_mean_score_have_their_stated_coverage(noise: str, num_seeds: int) -> None:
    world = WORLDS["mean", noise]
    simulated = experiments(world, num_seeds, 400)

    of_seeds = [covers(each.over_seeds, each.truth_of_these_items) for each in simulated]
    of_both = [covers(each.over_seeds_and_items) for each in simulated]

    assert np.mean(of_seeds) == pytest.approx(0.95, abs=TOLERANCE)
    assert np.mean(of_both) == pytest.approx(0.95, abs=TOLERANCE)


def test_an_interval_over_seeds_does_not_cover_other_items() -> None:
    world = WORLDS["mean", "items"]

    covered = [covers(each.over_seeds) for each in experiments(world, 5, 200)]

    assert np.mean(covered) < 0.5


@pytest.mark.experiments
@pytest.mark.parametrize("num_seeds", [3, 5, 10])
@pytest.mark.parametrize("noise", ["seeds", "items", "both"])
def test_intervals_of_spearmans_correlation_have_their_stated_coverage(noise: str, num_seeds: int) -> None:
    world = WORLDS["spearman", noise]

    covered = [covers(each.over_seeds_and_items) for each in experiments(world, num_seeds, 400)]

    assert np.mean(covered) == pytest.approx(0.95, abs=TOLERANCE)
