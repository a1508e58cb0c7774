"""Differences between two rows under noise from seeds and test items: intervals, p values, power."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

LEVEL = 0.05
"""The significance level of every test; intervals cover the true value with probability 1 - LEVEL."""
ROUNDING = 1e-12
"""Scores in [-1, 1] that differ by at most this count as equal."""


@dataclass(frozen=True)
class SeedScores:
    """One score of one row by seed; a row that does not depend on the seed has one value without noise.

    `seeds` are in the order of `values` and allow pairing with other rows; empty if unknown.
    """

    values: tuple[float, ...]
    is_seeded: bool = True
    seeds: tuple[int, ...] = ()

    @property
    def num_seeds(self) -> int:
        """The number of values."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return fmean(self.values)

    @property
    def variance(self) -> float | None:
        """Unbiased variance over the seeds; None for a single seed, 0 if `is_seeded` is False."""
        if not self.is_seeded:
            return 0.0
        return variance(self.values) if len(self.values) > 1 else None

    @property
    def standard_deviation(self) -> float | None:
        """Sample standard deviation over the seeds; None for a single value."""
        return None if self.variance is None or self.num_seeds == 1 else math.sqrt(self.variance)

    @property
    def is_finite(self) -> bool:
        """Whether every value is finite."""
        return all(map(math.isfinite, self.values))


def interval_half_width(standard_deviation: float, num_seeds: int) -> float:
    """Return the half width of the 95 % confidence interval of a mean over two seeds or more.

    It is the standard error times the 97.5 % quantile of Student's t with `num_seeds` - 1 degrees of freedom.
    """
    return t_quantile(num_seeds - 1) * standard_deviation / math.sqrt(num_seeds)


def t_quantile(degrees_of_freedom: float, level: float = LEVEL) -> float:
    """Return the half width, in standard errors, of a Student's t interval of coverage 1 - `level`."""
    from scipy.special import stdtrit

    return float(-stdtrit(degrees_of_freedom, level / 2))


@dataclass(frozen=True)
class Noise:
    """One source of noise in a difference: its squared standard error and degrees of freedom."""

    squared_error: float
    degrees_of_freedom: float

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % confidence interval under this noise alone."""
        return self.half_width_at(LEVEL)

    def half_width_at(self, level: float) -> float:
        """Return half the width of the confidence interval that covers with probability 1 - `level`."""
        if not self.squared_error:
            return 0.0
        return t_quantile(self.degrees_of_freedom, level) * math.sqrt(self.squared_error)

    def p_value(self, difference: float) -> float:
        """Return the two-sided p value of a difference under this noise alone, by Student's t."""
        from scipy.special import stdtr

        if self.squared_error == 0.0:
            return float(difference == 0.0)
        return float(2 * stdtr(self.degrees_of_freedom, -abs(difference) / math.sqrt(self.squared_error)))


@dataclass(frozen=True)
class Difference:
    """A difference of two means with its sources of noise; without noise, the difference is exact.

    Variances of several sources add up, with Satterthwaite's degrees of freedom (1946). If a source has few
    degrees of freedom, as with three seeds, a second source adds some, which could narrow the interval. So an
    interval is never narrower, and a p value never lower, than under any source alone. This rule also keeps
    the coverage from being too low (docs/statistics.md).
    """

    value: float
    noise: tuple[Noise, ...]

    @property
    def whole(self) -> Noise:
        """The sum of all sources of noise (Satterthwaite 1946)."""
        squared_error = sum(source.squared_error for source in self.noise)
        parts = [source.squared_error**2 / source.degrees_of_freedom for source in self.noise]
        return Noise(squared_error, squared_error**2 / sum(parts) if sum(parts) else math.inf)

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % confidence interval."""
        return self.half_width_at(LEVEL)

    def half_width_at(self, level: float) -> float:
        """Return half the width of the confidence interval that covers with probability 1 - `level`."""
        return max(each.half_width_at(level) for each in (self.whole, *self.noise))

    @property
    def p_value(self) -> float:
        """The two-sided p value of the hypothesis that the true difference is 0."""
        return max(each.p_value(self.value) for each in (self.whole, *self.noise))

    def with_items(self, items: Sequence[Noise]) -> "Difference":
        """Return the same difference with the noise of the items added."""
        return Difference(self.value, (*self.noise, *items))


def over_seeds(row: SeedScores, other: SeedScores, *, is_paired: bool = False) -> Difference | None:
    """Return `row` minus `other` with the noise between seeds; None if the noise is unknown.

    Welch's test (1947). A row that does not depend on the seed is a constant; two constants have no
    noise. `is_paired`: by design, seeds redraw data that both rows use. Then the test is a paired t-test over
    the differences by seed. It raises ValueError unless both rows have the same known seeds.

    The noise is unknown if a seeded row has one seed, if a score is NaN or infinite, or if no score changes
    with the seed. With `is_paired`, the last case is a difference that is equal for all seeds. Coarse scores,
    such as accuracies on a small set, are often equal by chance, and t would take that for certainty.
    """
    if row.variance is None or other.variance is None or not (row.is_finite and other.is_finite):
        return None
    if is_paired:
        if not row.seeds or {*row.seeds} != {*other.seeds}:
            raise ValueError("rows of different seeds, or unknown ones, can't be paired")
        others = dict(zip(other.seeds, other.values, strict=True))
        gains = [value - others[seed] for seed, value in zip(row.seeds, row.values, strict=True)]
        difference = Difference(fmean(gains), (Noise(variance(gains) / len(gains), len(gains) - 1),))
    else:
        difference = Difference(row.mean - other.mean, _welch(row, other))
    return None if any(source.squared_error <= ROUNDING**2 for source in difference.noise) else difference


def _welch(row: SeedScores, other: SeedScores) -> tuple[Noise, ...]:
    """Return the noise of both rows as one source, by Welch; () if neither depends on the seed."""
    found = [
        (sample.variance / sample.num_seeds, sample.num_seeds - 1)
        for sample in (row, other)
        if sample.is_seeded and sample.variance is not None
    ]
    squared_error = sum(error for error, _ in found)
    parts = sum(error**2 / freedom for error, freedom in found)
    return (Noise(squared_error, squared_error**2 / parts if parts else 1.0),) if found else ()


def effect_size(row: SeedScores, other: SeedScores) -> float | None:
    """Return Hedges' g (1981): the difference in units of the standard deviation between seeds.

    The deviation is pooled over the seeded rows, which have nu degrees of freedom in total (n - 1 each). g is
    corrected by the small-sample factor 1 - 3 / (4 nu - 1). None if the deviation is 0 or unknown, or
    if nu is below 2.
    """
    seeded = [sample for sample in (row, other) if sample.is_seeded]
    squares = [sample.variance * (sample.num_seeds - 1) for sample in seeded if sample.variance is not None]
    freedom = sum(sample.num_seeds - 1 for sample in seeded)
    if len(squares) < len(seeded) or freedom < 2 or not sum(squares) / freedom > ROUNDING**2:
        return None
    bias = 1 - 3 / (4 * freedom - 1)
    return bias * (row.mean - other.mean) / math.sqrt(sum(squares) / freedom)


def least_detectable(differences: Sequence[Difference], power: float = 0.8) -> float | None:
    """Return the minimum detectable difference: a test at 5 % finds it and its sign with probability `power`.

    Computed by the noncentral t distribution for a typical comparison: root mean square of the standard
    errors, median degrees of freedom, median half width in standard errors. None without noise.
    """
    from statistics import median

    from scipy.optimize import brentq
    from scipy.special import nctdtr

    noisy = [each for each in differences if each.whole.squared_error > 0.0]
    if not noisy:
        return None
    error = math.sqrt(fmean(each.whole.squared_error for each in noisy))
    freedom = median(each.whole.degrees_of_freedom for each in noisy)
    needed = median(each.half_width / math.sqrt(each.whole.squared_error) for each in noisy)

    def missed(shift: float) -> float:
        return float(1 - nctdtr(freedom, shift, needed)) - power

    return error * float(brentq(missed, 0.0, 4 * needed + 4))
