"""The one rule that decides whether a lead is more than noise.

Every table asks `leads` and nothing else, so that better statistics (paired tests over items, corrections for
many comparisons) can replace the rule in this one place.
"""

import math
from dataclasses import dataclass
from statistics import fmean, variance

NOISE_RULE = "Welch's t-test, two-sided 5 %"
T_QUANTILE = 0.975


@dataclass(frozen=True)
class Sample:
    """One score of one row, measured once per seed; where no seed changes it, one value without noise."""

    values: tuple[float, ...]
    is_seeded: bool = True

    @property
    def num_seeds(self) -> int:
        """How many seeds gave a score."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return fmean(self.values)

    @property
    def variance(self) -> float | None:
        """Unbiased variance over the seeds; None for a single seed, 0 where seeds make no difference."""
        if not self.is_seeded:
            return 0.0
        return variance(self.values) if len(self.values) > 1 else None

    @property
    def standard_deviation(self) -> float | None:
        """Sample standard deviation over the seeds; None for a single value."""
        return None if self.variance is None or self.num_seeds == 1 else math.sqrt(self.variance)


def leads(best: Sample, other: Sample) -> bool:
    """Say whether `best` lies above `other` by more than the noise between seeds.

    The lead must exceed the standard error of the difference of two means with unequal variances times the
    97.5 % quantile of Student's t at the Welch-Satterthwaite degrees of freedom (Welch 1947). A single seed
    tells nothing of the noise, so it neither leads nor is led; nor do two rows lead each other that no seed
    changes.
    """
    if best.variance is None or other.variance is None or not (best.is_seeded or other.is_seeded):
        return False
    lead = best.mean - other.mean
    best_error = best.variance / best.num_seeds
    other_error = other.variance / other.num_seeds
    squared_error = best_error + other_error
    if squared_error == 0.0:
        return lead > 0.0
    terms = [(e, sample.num_seeds) for e, sample in ((best_error, best), (other_error, other)) if e != 0.0]
    freedom = squared_error**2 / sum(error**2 / (num_seeds - 1) for error, num_seeds in terms)
    return lead > _t_quantile(freedom) * math.sqrt(squared_error)


def interval_half_width(standard_deviation: float, num_seeds: int) -> float:
    """Return how far the 95 % confidence interval of a mean over two seeds or more reaches to either side.

    The standard error times the 97.5 % quantile of Student's t with `num_seeds` - 1 degrees of freedom.
    """
    return _t_quantile(num_seeds - 1) * standard_deviation / math.sqrt(num_seeds)


def _t_quantile(degrees_of_freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, T_QUANTILE))
