"""Measures of how well scores separate pairs of two classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_FALSE_POSITIVES = 0.05
"""The false-positive rate up to which the ROC curve is integrated (Shah et al. 2018)."""


@dataclass(frozen=True)
class PairThresholds:
    """Thresholds for the best F1 and the best accuracy; pairs with at least that score count as positive."""

    f1: float
    accuracy: float

    @classmethod
    def best(cls, scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]") -> Self:
        """Return the best thresholds on these pairs, arrays of shape (pairs,); at least one must be positive.

        Candidates are the midpoints between neighbouring scores, the highest score plus 1 (no pair counts as
        positive) and the lowest score (all do). Ties go to the highest threshold.
        """
        levels = np.unique(scores)[::-1]
        halfway = (levels[:-1] + levels[1:]) / 2
        # Between adjacent floats, halfway is one of the two.
        halfway = np.where(halfway > levels[1:], halfway, levels[:-1])
        cuts = np.concatenate([levels[:1] + 1, halfway, levels[-1:]])
        true, false = (
            np.concatenate([[0], _num_reaching(scores[mask], levels)]) for mask in (is_positive, ~is_positive)
        )
        f1 = 2 * true / (true + false + true[-1])
        accuracy = true - false
        return cls(float(cuts[f1.argmax()]), float(cuts[accuracy.argmax()]))


def f1(is_positive: "NDArray[np.bool_]", is_found: "NDArray[np.bool_]") -> float:
    """Return F1 of the positive class, in [0, 1]; 0 without true positives."""
    return float(2 * (is_positive & is_found).sum() / (is_positive.sum() + is_found.sum()))


def partial_auc(scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]") -> float:
    """Return the area under the ROC curve up to a false-positive rate of 0.05, divided by 0.05.

    In [0, 1]; 1 if all positive pairs score above all negative ones, 0.025 on average for random scores.
    """
    from sklearn.metrics import roc_curve

    false_rate, true_rate, _ = roc_curve(is_positive, scores, drop_intermediate=False)
    inside = false_rate <= MOST_FALSE_POSITIVES
    x = np.append(false_rate[inside], MOST_FALSE_POSITIVES)
    y = np.append(true_rate[inside], np.interp(MOST_FALSE_POSITIVES, false_rate, true_rate))
    return float(np.trapezoid(y, x) / MOST_FALSE_POSITIVES)


def measured(
    scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]", thresholds: PairThresholds | None
) -> Mapping[str, float]:
    """Return average precision and AUC(0.05) by name; with thresholds also F1, accuracy and thresholds.

    Arrays have shape (pairs,).
    """
    from sklearn.metrics import average_precision_score

    measured = {
        "average_precision": float(average_precision_score(is_positive, scores)),
        "auc_0.05": partial_auc(scores, is_positive),
    }
    if thresholds is not None:
        is_right = (scores >= thresholds.accuracy) == is_positive
        measured |= {
            "f1": f1(is_positive, scores >= thresholds.f1),
            "accuracy": float(is_right.mean()),
            "threshold_f1": thresholds.f1,
            "threshold_accuracy": thresholds.accuracy,
        }
    return measured


def f1_influence(is_positive: "NDArray[np.bool_]", is_found: "NDArray[np.bool_]") -> "NDArray[np.float64]":
    """Return the influence of each pair on F1; all are 0 without true positives.

    An influence is the derivative by the pair's weight, times the number of pairs; influences sum to 0.
    Arrays have shape (pairs,).
    """
    hits = 2.0 * (is_positive & is_found)
    named = is_positive.astype(float) + is_found
    if not named.any():
        return np.zeros(len(named))
    return np.asarray((hits - hits.mean() / named.mean() * named) / named.mean(), float)


def average_precision_influence(
    scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]"
) -> "NDArray[np.float64]":
    """Return the influence of each pair on average precision, with its effect on precision at lower scores.

    Average precision is a mean over positive pairs. Each gives the precision among all pairs that score at
    least as high.
    """
    num_reached, num_hits = _num_reaching(scores, scores), _num_reaching(scores[is_positive], scores)
    precision = num_hits / num_reached
    gain = _sum_not_above(scores, is_positive / num_reached)
    loss = _sum_not_above(scores, is_positive * precision / num_reached)
    own = is_positive * (precision - precision[is_positive].mean() + gain)
    return np.asarray((own - loss) * len(scores) / is_positive.sum(), float)


def partial_auc_influence(
    scores: "NDArray[np.float64]", is_positive: "NDArray[np.bool_]"
) -> "NDArray[np.float64]":
    """Return the influence of each pair on AUC(0.05); negatives also move the score at which the area ends.

    A positive pair's influence depends on the share of the top 5 % negatives that score below the pair; a top
    negative's influence depends on the share of positives above it. Other negatives have equal influences.
    """
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
    """Return how many scores are at least each level."""
    return len(scores) - np.searchsorted(np.sort(scores), levels, side="left")


def _sum_not_above(scores: "NDArray[np.float64]", weights: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return, for each pair, the summed weights of pairs with at most its score."""
    order = np.argsort(scores, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    return np.asarray(sums[np.searchsorted(scores[order], scores, side="right")], float)
