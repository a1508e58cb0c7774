"""Agreement of two test sets on the order of a table's rows."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Scores = Mapping[str, Array]
    """Row -> the score of each item with each seed; shape (seeds, items)."""

NUM_DRAWS, SEED = 2_000, 0
LEAST_ROWS = 3


@dataclass(frozen=True)
class OrderAgreement:
    """A measure of agreement over rows, with its 95 % interval.

    `number` counts rows. The measure "order of clear pairs" (see `agreement`) has no interval (NaN), and its
    `number` counts the clear pairs.
    """

    measure: str
    value: float
    low: float
    high: float
    number: int


def agreement(people: "Scores", other: "Scores") -> list[OrderAgreement]:
    """Return Kendall's tau-b and Spearman's rho of the rows' mean scores, and the order of clear pairs.

    A pair of rows is clear if the 95 % interval of its difference on the test set `people` excludes 0. The
    third measure is the share of clear pairs that the test set `other` puts in the same order; NaN if no pair
    is clear.

    Intervals are percentiles of a bootstrap that draws the items of each test set, the same for all rows, and
    each row's seeds. Resampling adds noise to noisy scores, which biases the intervals to lower agreement.
    The intervals hold for these rows: other rows may agree more or less.

    Raises ValueError for fewer than three common rows, or if the rows of a test set differ in their number of
    items.
    """
    import numpy as np

    rows = [name for name in people if name in other]
    if len(rows) < LEAST_ROWS:
        raise ValueError(f"{len(rows)} rows; an order needs at least {LEAST_ROWS}")
    if any(len({scores[row].shape[1] for row in rows}) > 1 for scores in (people, other)):
        raise ValueError("rows have different numbers of items")
    draw = np.random.default_rng(SEED)
    means = [np.array([[scores[row].mean() for row in rows]]) for scores in (people, other)]
    drawn = [_drawn_means([scores[row] for row in rows], draw) for scores in (people, other)]
    found = []
    for name, measure in (("Kendall's tau", _tau), ("Spearman's rho", _rho)):
        low, high = np.nanpercentile(measure(*drawn), [2.5, 97.5])
        found.append(OrderAgreement(name, float(measure(*means)[0]), float(low), float(high), len(rows)))
    low, high = np.percentile(_differences(drawn[0]), [2.5, 97.5], axis=0)
    is_clear = (low > 0) | (high < 0)
    ours, theirs = (np.sign(_differences(each)[0, is_clear]) for each in means)
    share = float((ours == theirs).mean()) if is_clear.any() else float("nan")
    return [
        *found,
        OrderAgreement("order of clear pairs", share, float("nan"), float("nan"), int(is_clear.sum())),
    ]


def _differences(means: "Array") -> "Array":
    """Return the differences of all pairs of rows; shape (draws, pairs)."""
    import numpy as np

    one, two = np.triu_indices(means.shape[1], k=1)
    return means[:, one] - means[:, two]


def _tau(first: "Array", second: "Array") -> "Array":
    """Return Kendall's tau-b in each draw, NaN if all rows of a set are equal; shape (draws,)."""
    import numpy as np

    return _cosines(np.sign(_differences(first)), np.sign(_differences(second)))


def _rho(first: "Array", second: "Array") -> "Array":
    """Return Spearman's rho in each draw, NaN if all rows of a set are equal; shape (draws,)."""
    from scipy.stats import rankdata

    ranks = (rankdata(each, axis=1) for each in (first, second))
    return _cosines(*(each - each.mean(axis=1, keepdims=True) for each in ranks))


def _cosines(first: "Array", second: "Array") -> "Array":
    import numpy as np

    with np.errstate(invalid="ignore"):
        norms = np.sqrt((first**2).sum(axis=1) * (second**2).sum(axis=1))
        return np.asarray((first * second).sum(axis=1) / norms)


def _drawn_means(scores: "Sequence[Array]", draw: "np.random.Generator") -> "Array":
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
