"""Simulated experiments: two rows that are equally good, several seeds, the same items, kinds of noise."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from synthbench.api import spearman_influence
from synthbench.statistics.differences import Difference, Noise, SeedScores, over_seeds
from synthbench.statistics.item_noise import Influences, item_variances

Array = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """Standard deviations of each kind of noise, for one prediction or one item's score.

    `seeds` moves all items of a row and seed, `items` one item of a row for every seed, `both` one item for
    one seed. Over all possible seeds and items, the rows' scores do not differ.
    """

    measure: Literal["mean", "spearman"]
    seeds: float
    items: float
    both: float


@dataclass(frozen=True)
class Experiment:
    """Two rows' scores over seeds, the influences of their items, and the truth for these items."""

    samples: tuple[SeedScores, SeedScores]
    influences: tuple[Influences, Influences]
    truth_of_these_items: float

    @cached_property
    def over_seeds(self) -> Difference:
        """The difference with the noise between seeds."""
        found = over_seeds(*self.samples)
        assert found is not None
        return found

    @cached_property
    def over_seeds_and_items(self) -> Difference:
        """The difference with the noise of seeds and items."""
        (errors,) = item_variances(self.influences)
        return self.over_seeds.with_items([Noise(errors.squared_error, errors.degrees)])


def simulate(world: World, num_seeds: int, num_items: int, generator: np.random.Generator) -> Experiment:
    """Return one experiment of the world; in a Spearman world the truth for its items is unknown (nan)."""
    gold = generator.normal(size=num_items)
    samples, influences, means = [], [], []
    for _ in range(2):
        own = world.items * generator.normal(size=num_items)
        wobble = world.both * generator.normal(size=(num_seeds, num_items))
        signal = 1.0 + world.seeds * generator.normal(size=(num_seeds, 1))
        if world.measure == "mean":
            values = signal + own + wobble
            scores = values.mean(axis=1)
            effects = values - scores[:, None]
        else:
            predictions = signal * gold + own + wobble
            scores = np.array([_spearman(gold, each) for each in predictions])
            effects = np.stack([spearman_influence(gold, each) for each in predictions])
        seeds = tuple(range(num_seeds))
        samples.append(SeedScores(tuple(scores.tolist()), seeds=seeds))
        influences.append(Influences(effects, seeds))
        means.append(own.mean())
    truth = means[0] - means[1] if world.measure == "mean" else math.nan
    return Experiment((samples[0], samples[1]), (influences[0], influences[1]), float(truth))


def _spearman(gold: Array, predicted: Array) -> float:
    """Return the correlation of the ranks, assuming no ties, as for normal values."""
    ranks = [np.argsort(np.argsort(each)) for each in (gold, predicted)]
    return float(np.corrcoef(*ranks)[0, 1])


def covers(difference: Difference, truth: float = 0.0) -> bool:
    """Return whether the 95 % interval contains the truth."""
    return abs(difference.value - truth) <= difference.half_width


NUM_ITEMS = 400
WORLDS = {
    ("mean", "seeds"): World("mean", seeds=0.05, items=0.2, both=0.4),
    ("mean", "items"): World("mean", seeds=0.005, items=1.0, both=0.3),
    ("mean", "both"): World("mean", seeds=0.06, items=0.5, both=0.4),
    ("spearman", "seeds"): World("spearman", seeds=0.2, items=0.2, both=0.8),
    ("spearman", "items"): World("spearman", seeds=0.01, items=0.8, both=0.3),
    ("spearman", "both"): World("spearman", seeds=0.12, items=0.8, both=0.3),
}
"""(Measure, dominant noise) -> the world, for NUM_ITEMS items."""
