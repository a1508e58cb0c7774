"""Histograms of scores in [0, 1]: counts, kernel densities, divergences."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from synthbench.data.quality import kl_divergence

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FINE_BINS = 100
BINS = 20
"""Bins for divergences; each covers a whole number of fine bins."""
MOST_LEVELS = 5
"""A reference with at most this many distinct scores is treated as classes or grades."""
KERNEL_REACH = 8.0  # in standard deviations; beyond, the kernel is below 1e-14


def score_counts(scores: Sequence[float]) -> tuple[int, ...]:
    """Return how many scores each of `FINE_BINS` equal bins holds; the last bin includes 1.

    Scores outside [0, 1] and NaN are not counted.
    """
    import numpy as np

    edges = np.linspace(0.0, 1.0, FINE_BINS + 1)
    # The coarse bins' edges to the last bit, so that fine and coarse bins count alike.
    edges[:: FINE_BINS // BINS] = np.linspace(0.0, 1.0, BINS + 1)
    return tuple(np.histogram(np.asarray(scores, np.float64), edges)[0].tolist())


def coarse(counts: Sequence[int]) -> tuple[int, ...]:
    """Return the counts in the `BINS` coarse bins."""
    width = FINE_BINS // BINS
    return tuple(sum(counts[start : start + width]) for start in range(0, FINE_BINS, width))


def levels(reference: Sequence[int]) -> tuple[int, ...]:
    """Return the indices of the fine bins with reference scores.

    Returns () for fewer than 2 or more than `MOST_LEVELS` bins.
    """
    held = tuple(number for number, count in enumerate(reference) if count)
    return held if 1 < len(held) <= MOST_LEVELS else ()


def divergence(counts: Sequence[int], reference: Sequence[int]) -> float:
    """Return the Kullback-Leibler divergence of the counts from the reference's counts, in nats.

    Computed over `BINS` bins or, if the reference has classes or grades (`levels`), over one bin for each.
    These bins end halfway between classes, so a soft score counts as the nearest class. `counts` needs at
    least one score.
    """
    import numpy as np

    halfway = [(low + high + 1) // 2 for low, high in pairwise(levels(reference))]
    starts = [0, *halfway] if halfway else range(0, FINE_BINS, FINE_BINS // BINS)
    return kl_divergence(*(np.add.reduceat(each, starts).tolist() for each in (counts, reference)))


def scott_bandwidth(counts: Sequence[int]) -> float:
    """Return Scott's bandwidth: the standard deviation times n^(-1/5); NaN without scores."""
    import numpy as np

    weights = np.asarray(counts, np.float64)
    total = weights.sum()
    middles = _middles()
    mean = float(weights @ middles) / total
    variance = float(weights @ (middles - mean) ** 2) / max(total - 1, 1)
    return float(variance**0.5 * total**-0.2)


def density(counts: Sequence[int]) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Return the centres of the fine bins and a Gaussian kernel density there, reflected at 0 and 1.

    The bandwidth is Scott's, but at least one bin.
    """
    import numpy as np
    from scipy.ndimage import gaussian_filter1d

    weights = np.asarray(counts, np.float64)
    bandwidth = max(scott_bandwidth(counts), 1 / FINE_BINS)
    smoothed = gaussian_filter1d(
        weights * FINE_BINS / weights.sum(), bandwidth * FINE_BINS, mode="reflect", truncate=KERNEL_REACH
    )
    return _middles(), np.asarray(smoothed, np.float64)


def _middles() -> "NDArray[np.float64]":
    import numpy as np

    return (np.arange(FINE_BINS) + 0.5) / FINE_BINS
