"""One score of one row, over its seeds."""

import math
from dataclasses import dataclass
from statistics import fmean, variance

CONFIDENCE = 0.95
ROUNDING = 1e-12
"""Scores, in [-1, 1], that lie no further apart are equal."""


@dataclass(frozen=True)
class Sample:
    """One score of one row, measured once per seed; where no seed changes it, one value without noise.

    `seeds` tell which seed gave which value, so that rows can be paired; empty if nobody knows.
    """

    values: tuple[float, ...]
    is_seeded: bool = True
    seeds: tuple[int, ...] = ()

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

    @property
    def is_finite(self) -> bool:
        """Whether every value is a number."""
        return all(map(math.isfinite, self.values))


def interval_half_width(standard_deviation: float, num_seeds: int) -> float:
    """Return how far the 95 % confidence interval of a mean over two seeds or more reaches to either side.

    The standard error times the 97.5 % quantile of Student's t with `num_seeds` - 1 degrees of freedom.
    """
    return t_quantile(num_seeds - 1) * standard_deviation / math.sqrt(num_seeds)


def t_quantile(degrees_of_freedom: float) -> float:
    """Return how many standard errors a two-sided 95 % interval reaches, by Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, (1 + CONFIDENCE) / 2))
