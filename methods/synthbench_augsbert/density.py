"""Densities of scores in [0, 1]."""

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Bandwidth = Literal["scott"] | float
CELLS_PER_WIDTH = 64  # cells of the grid in one standard deviation of the kernel
FEWEST_CELLS, MOST_CELLS = 2**8, 2**17
KERNEL_REACH = 8.0  # standard deviations, beyond which the kernel is below 1e-14


class Density:
    """A Gaussian kernel density of scores, reflected at 0 and 1, so that no mass is lost beyond them.

    The scores are counted in the cells of a grid, each shared between the two nearest centres, and the counts
    smoothed; between the centres the density is interpolated. That takes time in proportion to the number of
    scores, where a kernel for each score takes its square. A cell is at most a 64th of the kernel's width,
    down to a width of 0.0005.
    """

    def __init__(self, scores: "NDArray[np.float64]", bandwidth: Bandwidth) -> None:
        """Estimate from scores in [0, 1].

        Raises ValueError if Scott's rule is asked of scores that are all equal.
        """
        from scipy.ndimage import gaussian_filter1d

        self.width = scott(scores) if bandwidth == "scott" else float(bandwidth)
        if self.width <= 0:
            raise ValueError("all scores are equal")
        num_cells = _num_cells(self.width)
        counts = _counts(scores, num_cells)
        per_score = num_cells / len(scores)
        self._centres = (np.arange(num_cells) + 0.5) / num_cells
        self._densities: NDArray[np.float64] = gaussian_filter1d(
            counts * per_score, self.width * num_cells, mode="reflect", truncate=KERNEL_REACH
        )

    def at(self, scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return the density at each score."""
        return np.interp(scores, self._centres, self._densities)


def scott(scores: "NDArray[np.float64]") -> float:
    """Return Scott's bandwidth in one dimension: the standard deviation times n^(-1/5)."""
    return float(scores.std(ddof=1)) * len(scores) ** -0.2 if len(scores) > 1 else 0.0


def _counts(scores: "NDArray[np.float64]", num_cells: int) -> "NDArray[np.float64]":
    """Share each score between the two cells whose centres it lies between; beyond the last, all to that."""
    places = scores * num_cells - 0.5
    lower = np.floor(places).astype(np.int64)
    upper_shares = places - lower
    last = num_cells - 1
    of_lower = np.bincount(lower.clip(0, last), 1 - upper_shares, num_cells)
    of_upper = np.bincount((lower + 1).clip(0, last), upper_shares, num_cells)
    return np.asarray(of_lower + of_upper, np.float64)


def _num_cells(width: float) -> int:
    wanted = 2 ** math.ceil(math.log2(CELLS_PER_WIDTH / width))
    return int(min(max(wanted, FEWEST_CELLS), MOST_CELLS))
