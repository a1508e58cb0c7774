"""Forecast dev scores for larger amounts of data, with intervals, by a saturating curve."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from synthbench.statistics.differences import Noise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_AHEAD = 10
"""A forecast reaches at most this many times the largest measured amount."""
FEWEST_AMOUNTS = 3
WIDEST = 0.05
"""Maximum half-width of a forecast's 95 % interval, in scores of [-1, 1]; a wider one tells nothing."""
_RATES = (0.1, 2.0)
_SINGLE = "a single seed"
Scores = Mapping[int, Sequence[float]]
"""Amount -> dev scores in [-1, 1], in the same order of seeds at each amount."""


@dataclass(frozen=True)
class Forecast:
    """The expected dev score (`value`) at an amount of data, with its noise over seeds.

    `why_unknown`: why the score can't be forecast; "" if it can. Without a forecast, `value` is the score at
    the largest measured amount.
    """

    amount: int
    value: float
    noise: Noise
    why_unknown: str = ""


def forecast(scores: Scores, amount: int, *, is_seeded: bool = True) -> Forecast:
    """Return the dev score to expect at an amount of data, extrapolated by a saturating curve.

    The curve is score = top - gap * amount ** -rate, fitted by least squares to the means over seeds. The
    forecast's noise is a jackknife over the seeds. For an amount up to the largest measured one, the result
    is the score at the largest measured amount. `is_seeded`: whether the score depends on the seed.
    """
    largest = max(scores)
    measured = _measured(scores[largest])
    if amount <= largest:
        is_noise_unknown = is_seeded and len(scores[largest]) < 2
        return Forecast(amount, *measured, _SINGLE if is_noise_unknown else "")
    why = _why_unknown(scores, amount)
    if why:
        return Forecast(amount, *measured, why)
    value = _extrapolated(scores, amount)
    noise = _jackknife(scores, amount)
    if noise.half_width > WIDEST:
        why = f"the interval is {200 * noise.half_width:.0f} points wide"
        return Forecast(amount, *measured, why)
    return Forecast(amount, value, noise)


def _measured(scores: Sequence[float]) -> tuple[float, Noise]:
    mean, number = fmean(scores), len(scores)
    squares = sum((score - mean) ** 2 for score in scores)
    return mean, Noise(squares / max(number - 1, 1) / number, max(number - 1, 1))


def _why_unknown(scores: Scores, amount: int) -> str:
    if len(scores) < FEWEST_AMOUNTS:
        return f"only {len(scores)} amount{'s' * (len(scores) > 1)} measured"
    if min(map(len, scores.values())) < 2:
        return _SINGLE
    if amount > MOST_AHEAD * max(scores):
        return f"more than {MOST_AHEAD} times what was measured"
    return ""


def _jackknife(scores: Scores, amount: int) -> Noise:
    number = min(map(len, scores.values()))
    without = [
        _extrapolated({size: [*each[:seed], *each[seed + 1 :]] for size, each in scores.items()}, amount)
        for seed in range(number)
    ]
    mean = fmean(without)
    squared_error = (number - 1) / number * sum((each - mean) ** 2 for each in without)
    # The error of the score at the largest measured amount is a lower bound.
    at_least = _measured(scores[max(scores)])[1].squared_error
    return Noise(max(squared_error, at_least), number - 1)


def _extrapolated(scores: Scores, amount: int) -> float:
    import numpy as np
    from scipy.optimize import least_squares

    sizes = np.array(sorted(scores)) / min(scores)
    means = np.array([fmean(scores[size]) for size in sorted(scores)])

    def misfit(parameters: "NDArray[np.float64]") -> "NDArray[np.float64]":
        top, gap, rate = parameters
        fitted: NDArray[np.float64] = top - gap * sizes**-rate - means
        return fitted

    start = (min(means[-1], 0.999), min(max(means[-1] - means[0], 1e-6), 1.9), 0.5)
    top, gap, rate = least_squares(misfit, start, bounds=((-1.0, 0.0, _RATES[0]), (1.0, 2.0, _RATES[1]))).x
    return float(top - gap * (amount / min(scores)) ** -rate)
