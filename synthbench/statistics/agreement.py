"""How far two test sets order the rows of a table alike."""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Scores = Mapping[str, "NDArray[np.float64]"]
    """Row -> the score of each item with each seed; shape (seeds, items)."""

NUM_DRAWS, SEED = 2_000, 0
LEAST_ROWS = 3


@dataclass(frozen=True)
class Agreement:
    """A measure of agreement over rows with its 95 % interval.

    `number` are the rows, or the pairs of rows of `order of clear pairs`, whose interval is unknown.
    """

    measure: str
    value: float
    low: float
    high: float
    number: int


def agreement(people: "Scores", other: "Scores") -> list[Agreement]:
    """Return Kendall's tau-b and Spearman's rho of the rows' mean scores, and the order of clear pairs.

    The third is the share of the pairs of rows that the first test set tells apart, its difference's 95 %
    interval without 0, which the other puts in the same order; NaN without such pairs.

    Intervals are percentiles of a bootstrap that draws the items of each test set, the same for all rows, and
    each row's seeds. Drawing adds noise to noise, so they lean to lower agreement. They hold for these rows:
    other rows may agree more or less. Raises ValueError for fewer than three rows.
    """
    import numpy as np
    from scipy.stats import kendalltau, spearmanr

    rows = [name for name in people if name in other]
    if len(rows) < LEAST_ROWS:
        raise ValueError(f"{len(rows)} rows; an order needs at least {LEAST_ROWS}")
    draw = np.random.default_rng(SEED)
    means = [np.array([scores[row].mean() for row in rows]) for scores in (people, other)]
    drawn = [_drawn_means([scores[row] for row in rows], draw) for scores in (people, other)]
    found = []
    for name, measure in (("Kendall's tau", kendalltau), ("Spearman's rho", spearmanr)):
        of_draws = [measure(*each).statistic for each in zip(*drawn, strict=True)]
        low, high = np.nanpercentile(of_draws, [2.5, 97.5])
        value = measure(*means).statistic
        found.append(Agreement(name, float(value), float(low), float(high), len(rows)))
    same = []
    for one, two in combinations(range(len(rows)), 2):
        low, high = np.percentile(drawn[0][:, one] - drawn[0][:, two], [2.5, 97.5])
        if low > 0 or high < 0:
            same.append((means[1][one] > means[1][two]) == (low > 0))
    share = float(np.mean(same)) if same else float("nan")
    return [*found, Agreement("order of clear pairs", share, float("nan"), float("nan"), len(same))]


def _drawn_means(
    scores: "Sequence[NDArray[np.float64]]", draw: "np.random.Generator"
) -> "NDArray[np.float64]":
    """Return the rows' means in each draw; shape (draws, rows)."""
    import numpy as np

    num_items = scores[0].shape[1]
    weights = draw.multinomial(num_items, np.full(num_items, 1 / num_items), NUM_DRAWS) / num_items
    means = np.empty((NUM_DRAWS, len(scores)))
    for column, row in enumerate(scores):
        by_seed = weights @ row.T
        seeds = draw.integers(len(row), size=by_seed.shape)
        means[:, column] = np.take_along_axis(by_seed, seeds, axis=1).mean(axis=1)
    return means
