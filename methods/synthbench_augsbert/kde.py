"""Select labelled random pairs whose scores are distributed like gold's (Thakur et al. 2021, 3.1)."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from synthbench.api import Record, UserError, hashed_share, kl_divergence

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS = 20  # histogram bins for the divergence of the kept scores from gold's
POSITIVE = 0.5  # lowest score of the positive class


@dataclass(frozen=True)
class KDESelection:
    """The selection of labelled pairs, and figures about it.

    `kept`: for each labelled pair, whether it is kept. `divergences` are the Kullback-Leibler divergences
    from gold's scores, in nats over `bins` histogram bins: of all labelled pairs, and of the kept ones.
    `widths` are the bandwidths of the densities of gold and silver scores; None for a selection by class.
    """

    kept: "NDArray[np.bool_]"
    divergences: tuple[float, float]
    bins: int
    widths: tuple[float, float] | None = None

    @property
    def remark(self) -> str:
        """A summary in words."""
        how = "by class"
        if self.widths is not None:
            how = f"by densities of bandwidths {self.widths[0]:.3g} (gold) and {self.widths[1]:.3g} (silver)"
        return (
            f"kept {int(self.kept.sum()):,} of {len(self.kept):,} random pairs {how}; KL divergence of their "
            f"scores from gold's ({self.bins} bins): {self.divergences[0]:.3f} nats before, "
            f"{self.divergences[1]:.3f} after"
        )

    @property
    def measured(self) -> Mapping[str, float]:
        """The selection's figures for the manifest, name -> value."""
        names = ("before", "after")
        found = {
            f"kde: KL divergence {name}, nats": value
            for name, value in zip(names, self.divergences, strict=True)
        }
        widths = zip(("gold", "silver"), self.widths or (), strict=False)
        return {**found, **{f"kde: bandwidth, {whose}": width for whose, width in widths}}


def draws(pairs: Iterable[Record], seed: int) -> "NDArray[np.float64]":
    """Return a random number in [0, 1) per pair; it depends only on the seed and the two sentences."""
    return np.fromiter((hashed_share("kde", seed, *sorted(pair.texts())) for pair in pairs), np.float64)


def choose(
    gold: "NDArray[np.float64]",
    silver: "NDArray[np.float64]",
    drawn: "NDArray[np.float64]",
    bandwidth: "Bandwidth",
) -> KDESelection:
    """Select silver pairs whose scores are distributed like gold's; `drawn` has a random number for each.

    Raises UserError if a density is needed but all silver scores are equal, or if nothing is kept.
    """
    if np.isin(gold, (0.0, 1.0)).all():
        kept = _by_class(gold, silver, drawn)
        return KDESelection(kept, _divergences(gold, silver, kept, bins=2), bins=2)
    return _by_density(gold, silver, drawn, bandwidth)


def _by_class(
    gold: "NDArray[np.float64]", silver: "NDArray[np.float64]", drawn: "NDArray[np.float64]"
) -> "NDArray[np.bool_]":
    """Keep all positives, and random negatives up to gold's ratio of negatives to positives."""
    kept = silver >= POSITIVE
    if not kept.any():
        raise UserError(f"augsbert: sampler kde: none of {len(silver):,} random pairs is a positive one")
    positives = int((gold >= POSITIVE).sum())
    wanted = round(int(kept.sum()) * (len(gold) - positives) / positives)
    negatives = np.flatnonzero(~kept)
    kept[negatives[np.argsort(drawn[negatives], kind="stable")[:wanted]]] = True
    return kept


def _by_density(
    gold: "NDArray[np.float64]",
    silver: "NDArray[np.float64]",
    drawn: "NDArray[np.float64]",
    bandwidth: "Bandwidth",
) -> KDESelection:

    try:
        of_gold, of_silver = (Density(scores, bandwidth) for scores in (gold, silver))
    except ValueError as error:
        raise UserError(
            f"augsbert: sampler kde: all {len(silver):,} random pairs have the score {silver[0]:g}; the "
            "cross-encoder has learned nothing to choose by"
        ) from error
    # Keep with probability min(1, gold's density / silver's) at the silver score.
    kept = drawn * of_silver.at(silver) < of_gold.at(silver)
    if not kept.any():
        raise UserError(f"augsbert: sampler kde: none of {len(silver):,} random pairs is kept")
    widths = (of_gold.width, of_silver.width)
    return KDESelection(kept, _divergences(gold, silver, kept, bins=BINS), BINS, widths)


def _divergences(
    gold: "NDArray[np.float64]", silver: "NDArray[np.float64]", kept: "NDArray[np.bool_]", *, bins: int
) -> tuple[float, float]:
    of_gold, before, after = (
        np.histogram(scores, bins, (0.0, 1.0))[0].tolist() for scores in (gold, silver, silver[kept])
    )
    return kl_divergence(before, of_gold), kl_divergence(after, of_gold)


Bandwidth = Literal["scott"] | float
CELLS_PER_WIDTH = 64  # bins per standard deviation of the kernel
FEWEST_CELLS, MOST_CELLS = 2**8, 2**17
KERNEL_REACH = 8.0  # in standard deviations; beyond, the kernel is below 1e-14


class Density:
    """A Gaussian kernel density of scores, reflected at 0 and 1, so that it has no mass beyond them.

    The scores are counted in bins, the counts smoothed, and the density interpolated between bin centres.
    The time is linear in the number of scores. For kernels wider than 0.0005, a bin is at most a 64th of the
    kernel's width.
    """

    def __init__(self, scores: "NDArray[np.float64]", bandwidth: Bandwidth) -> None:
        """Estimate from scores in [0, 1].

        Raises ValueError for Scott's rule if all scores are equal.
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
    """Return the count at each cell's centre: a score counts in part for each of the two nearest centres.

    A score before the first or after the last centre counts fully for that centre.
    """
    positions = scores * num_cells - 0.5
    lower = np.floor(positions).astype(np.int64)
    upper_shares = positions - lower
    last = num_cells - 1
    of_lower = np.bincount(lower.clip(0, last), 1 - upper_shares, num_cells)
    of_upper = np.bincount((lower + 1).clip(0, last), upper_shares, num_cells)
    return np.asarray(of_lower + of_upper, np.float64)


def _num_cells(width: float) -> int:
    wanted = 2 ** math.ceil(math.log2(CELLS_PER_WIDTH / width))
    return int(min(max(wanted, FEWEST_CELLS), MOST_CELLS))
