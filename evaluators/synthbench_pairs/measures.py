"""Measures of how well scores tell pairs of two classes apart."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_FALSE_POSITIVES = 0.05
"""The false-positive rate up to which the area under the ROC curve is taken (Shah et al. 2018)."""


@dataclass(frozen=True)
class Thresholds:
    """From which score on a pair counts as positive: for the best F1, and for the best accuracy."""

    f1: float
    accuracy: float

    @classmethod
    def best(cls, scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]") -> Self:
        """Return the best on these pairs, arrays of shape (pairs,); at least one must be positive.

        A threshold lies halfway between two neighbouring scores; one that no pair reaches is 1 above all, one
        that all reach is the lowest score. Of equally good ones it is the highest.
        """
        import numpy as np

        levels = np.unique(scores)[::-1]
        halfway = (levels[:-1] + levels[1:]) / 2
        # Between scores that differ in the last bit there is nothing: halfway is one of the two.
        halfway = np.where(halfway > levels[1:], halfway, levels[:-1])
        cuts = np.concatenate([levels[:1] + 1, halfway, levels[-1:]])
        true, false = (_num_above(scores[mask], levels) for mask in (is_positive, ~is_positive))
        f1 = 2 * true / (true + false + true[-1])
        accuracy = true - false
        return cls(float(cuts[f1.argmax()]), float(cuts[accuracy.argmax()]))


def _num_above(scores: "NDArray[np.float64]", levels: "NDArray[np.float64]") -> "NDArray[np.int64]":
    """Return how many scores reach none of the levels (0), the first of them, the second ..., descending."""
    import numpy as np

    reached = len(scores) - np.searchsorted(np.sort(scores), levels, side="left")
    return np.concatenate([[0], reached])


def f1(is_positive: "NDArray[np.bool_]", is_found: "NDArray[np.bool_]") -> float:
    """Return F1 of the positive class, in [0, 1]; 0 if nothing positive was found."""
    return float(2 * (is_positive & is_found).sum() / (is_positive.sum() + is_found.sum()))


def partial_auc(scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]") -> float:
    """Return the area under the ROC curve up to a false-positive rate of 0.05, divided by 0.05.

    In [0, 1]; 1 if every positive pair is above every other, 0.025 on average if scores say nothing.
    """
    import numpy as np
    from sklearn.metrics import roc_curve

    false_rate, true_rate, _ = roc_curve(is_positive, scores, drop_intermediate=False)
    inside = false_rate < MOST_FALSE_POSITIVES
    x = np.append(false_rate[inside], MOST_FALSE_POSITIVES)
    y = np.append(true_rate[inside], np.interp(MOST_FALSE_POSITIVES, false_rate, true_rate))
    return float(np.trapezoid(y, x) / MOST_FALSE_POSITIVES)
