"""Influence of each pair on Spearman's correlation, for confidence intervals over test items."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def spearman_influence(
    gold: "NDArray[np.float64]", predicted: "NDArray[np.float64]"
) -> "NDArray[np.float64]":
    """Return the influence function of Spearman's correlation at each pair; shape (pairs,), as both inputs.

    A pair's influence is the derivative of the correlation of mid-ranks by the pair's weight, times the
    number of pairs; the influences sum to 0. More weight changes the pair's own term of the sum and the
    ranks of all pairs above it. If either input is constant, the correlation counts as 0 and all influences
    are 0.
    """
    import numpy as np

    ours, theirs = _Ranks(gold), _Ranks(predicted)
    product = ours.ranks * theirs.ranks
    # The correlation is covariance / sqrt(variance * variance) of ranks whose mean is 1/2.
    covariance = product.mean() - 0.25
    variances = [(each.ranks**2).mean() - 0.25 for each in (ours, theirs)]
    # Equal values have variance 0 up to rounding.
    if min(variances) < 1e-12:
        return np.zeros(len(gold))
    # Derivatives by a pair's weight, including the change in other pairs' ranks.
    moved = product + ours.mean_above(theirs.ranks) + theirs.mean_above(ours.ranks)
    spreads = [each.ranks**2 + 2 * each.mean_above(each.ranks) for each in (ours, theirs)]
    scale = float(np.sqrt(variances[0] * variances[1]))
    influence = (moved - moved.mean()) / scale
    for spread, variance in zip(spreads, variances, strict=True):
        influence -= covariance / scale * (spread - spread.mean()) / (2 * variance)
    return np.asarray(influence, float)


class _Ranks:
    """Mid-ranks of values, divided by the number of values: in (0, 1), with mean 1/2."""

    def __init__(self, values: "NDArray[np.float64]") -> None:
        import numpy as np

        self._order = np.argsort(values, kind="stable")
        ordered = values[self._order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        ends = np.append(starts[1:], len(values))
        self._starts, self._ends, self._sizes = starts, ends, ends - starts
        self.ranks = self._spread((starts + ends) / (2 * len(values)))

    def mean_above(self, weights: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return for each value: (weights of greater values + half the weights of equal values) / n."""
        import numpy as np

        below = np.concatenate([[0.0], np.cumsum(weights[self._order])])
        through = (below[self._starts] + below[self._ends]) / 2
        return self._spread((below[-1] - through) / len(weights))

    def _spread(self, of_ties: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return each value's entry in `of_ties`, the array with one entry per group of equal values."""
        import numpy as np

        found = np.empty(len(self._order))
        found[self._order] = np.repeat(of_ties, self._sizes)
        return found
