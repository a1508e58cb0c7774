"""Simultaneous p values and intervals for a family of comparisons (single-step max-t).

A family errs if it calls any difference real although the true difference is 0. At most 5 % of families err.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from synthbench.statistics.differences import LEVEL, Difference

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

RULE = (
    "over seeds and test items, or seeds alone where the items' noise is unknown; single-step max-t over the"
    " family, 5 %"
)
"""How comparisons are decided, in words."""
LOG2_POINTS = 16
LOG2_NUMBERS = 23
"""log2 of the most numbers in a sample (64 MB): large families get fewer points."""
SEED = 0
LEAST_STEP = 1e-12
Tail = Callable[[float], float]
"""z -> the probability that the largest |Z| of a family is at least z."""


@dataclass(frozen=True)
class Simultaneous:
    """A difference with its p value and interval, adjusted for its family.

    The p value is adjusted for the whole family. With probability 95 %, all of the family's intervals, the
    value plus or minus `half_width`, cover their true differences.
    """

    value: float
    p_value: float
    half_width: float

    @property
    def is_real(self) -> bool:
        """Whether the interval excludes 0: the p value is below 5 %."""
        return abs(self.value) > self.half_width


def simultaneous(
    differences: Sequence[Difference], correlations: "Sequence[Array] | None"
) -> tuple[Simultaneous, ...]:
    """Return, in order, p values and intervals that hold for all differences at once.

    Single-step max-t by a Gaussian copula: a difference's own p value gives z = Phi^-1(1 - p / 2); its
    adjusted p value is the probability that the largest |Z| of the family, with normal Z, reaches z.
    `correlations` holds the matrix of each block of consecutive differences. Blocks count as independent,
    which never lowers a p value (Royen 2014). None: unknown correlations, adjusted by Bonferroni.
    """
    if not differences:
        return ()
    number = len(differences)
    tails = None if correlations is None else list(map(_tail_of, correlations))

    def tail(z: float) -> float:
        """Return the adjusted p value: at least that of one difference alone, at most Bonferroni's."""
        alone = _two_sided(z)
        if tails is None:
            return min(1.0, number * alone)
        joint = 1.0 - math.prod(1.0 - of_block(z) for of_block in tails)
        return min(1.0, max(alone, min(joint, number * alone)))

    level = _two_sided(_critical(tail, number))
    return tuple(
        Simultaneous(each.value, tail(_deviate(each.p_value)), each.half_width_at(level))
        for each in differences
    )


def _tail_of(correlations: "Array") -> Tail:
    """Return the function z -> probability that the largest |Z| of correlated normal deviates reaches z.

    It is exact for a single deviate, else estimated from a sample.
    """
    import numpy as np

    if len(correlations) == 1:
        return _two_sided
    largest = _largest(correlations)
    return lambda z: 1.0 - float(np.searchsorted(largest, z, side="left")) / len(largest)


def _largest(correlations: "Array") -> "Array":
    """Return the sorted largest |Z| of each draw of a sample; equal matrices give equal samples.

    Estimated correlations may have negative eigenvalues. These are set to 0, and the rows of the symmetric
    square root are scaled to length 1, so the root belongs to a valid matrix nearby. Unlike other roots, the
    symmetric root is unique.
    """
    import numpy as np

    values, vectors = np.linalg.eigh((correlations + correlations.T) / 2)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    return np.sort(np.abs(_normals(len(root)) @ root.T).max(axis=1))


@lru_cache(maxsize=4)
def _normals(dimensions: int) -> "Array":
    """Return quasi-random normal deviates of shape (points, dimensions), always the same."""
    import numpy as np
    from scipy.stats import qmc

    points = qmc.MultivariateNormalQMC(
        np.zeros(dimensions), engine=qmc.Sobol(dimensions, rng=np.random.default_rng(SEED))
    )
    log2_points = min(LOG2_POINTS, LOG2_NUMBERS - math.ceil(math.log2(dimensions)))
    return np.asarray(points.random(2**log2_points))


def _critical(tail: Tail, number: int) -> float:
    """Return the least z that the largest |Z| reaches with a probability of at most 5 %."""
    low, high = _deviate(LEVEL), _deviate(LEVEL / number)
    if tail(low) <= LEVEL:
        return low
    while high - low > LEAST_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if tail(middle) <= LEVEL else (middle, high)
    return high


def _two_sided(z: float) -> float:
    """Return the probability that a normal deviate's absolute value is at least z."""
    return math.erfc(z / math.sqrt(2))


def _deviate(p_value: float) -> float:
    """Return the z that has this two-sided p value."""
    from scipy.special import ndtri

    return float(-ndtri(p_value / 2))
