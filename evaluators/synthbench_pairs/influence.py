"""How each pair moves a measure of how well scores tell two classes apart."""

from typing import TYPE_CHECKING

from synthbench_pairs.measures import MOST_FALSE_POSITIVES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def f1_influence(is_positive: "NDArray[np.bool_]", is_found: "NDArray[np.bool_]") -> "NDArray[np.float64]":
    """Return the influence of each pair on F1, a ratio of two means; zero if there is nothing to find.

    All arrays are of shape (pairs,); an influence is a derivative by the pair's weight times the number of
    pairs, and adds up to 0.
    """
    import numpy as np

    hits = 2.0 * (is_positive & is_found)
    named = is_positive.astype(float) + is_found
    if not named.any():
        return np.zeros(len(named))
    return np.asarray((hits - hits.mean() / named.mean() * named) / named.mean(), float)


def average_precision_influence(
    scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]"
) -> "NDArray[np.float64]":
    """Return the influence of each pair on average precision, its effect on all below it included.

    Average precision is the mean over positive pairs of the precision among all pairs that score as high.
    """
    import numpy as np

    num_reached, num_hits = _num_reaching(scores, scores), _num_reaching(scores[is_positive], scores)
    precision = num_hits / num_reached
    gain = _sum_not_above(scores, is_positive / num_reached)
    loss = _sum_not_above(scores, is_positive * precision / num_reached)
    own = is_positive * (precision - precision[is_positive].mean() + gain)
    return np.asarray((own - loss) * len(scores) / is_positive.sum(), float)


def partial_auc_influence(
    scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]"
) -> "NDArray[np.float64]":
    """Return the influence of each pair on AUC(0.05), in which the negatives decide where the area ends.

    A positive pair counts by the share of the highest negatives that it beats, a negative one by the
    positives that it beats, if it is among the highest.
    """
    import numpy as np

    positives, negatives = scores[is_positive], np.sort(scores[~is_positive])
    end = np.quantile(negatives, 1 - MOST_FALSE_POSITIVES)
    highest = negatives[negatives > end] if (negatives > end).any() else negatives[-1:]
    found = np.zeros(len(scores))
    beaten = np.searchsorted(highest, positives, side="left") + np.searchsorted(
        highest, positives, side="right"
    )
    found[is_positive] = beaten / (2 * len(highest))
    rate = _num_reaching(positives, scores) / len(positives)
    rate_at_end = (positives >= end).mean()
    is_high = ~is_positive & (scores > end)
    found[is_high] = (rate[is_high] - rate_at_end) / MOST_FALSE_POSITIVES
    for mask in (is_positive, ~is_positive):
        found[mask] = (found[mask] - found[mask].mean()) / mask.mean()
    return found


def _num_reaching(scores: "NDArray[np.float64]", levels: "NDArray[np.float64]") -> "NDArray[np.int64]":
    """Return how many scores are as high as each level, or higher."""
    import numpy as np

    return len(scores) - np.searchsorted(np.sort(scores), levels, side="left")


def _sum_not_above(scores: "NDArray[np.float64]", weights: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return for each pair the sum of the weights of those that score as high or lower."""
    import numpy as np

    order = np.argsort(scores, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(sums[np.searchsorted(scores[order], scores, side="right")], float)
