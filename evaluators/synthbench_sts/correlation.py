"""Correlations of predicted scores with gold: over all pairs, by subset, and means over subsets."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synthbench.api import UserError
from synthbench_sts import MEASURES

if TYPE_CHECKING:
    from numpy.typing import NDArray


def correlations(
    gold: "NDArray[np.float64]",
    predicted: "NDArray[np.float64]",
    subsets: Sequence[str],
    name: str,
    *,
    averages: bool,
) -> Mapping[str, float]:
    """Return all scores of a task, in [-1, 1]; arrays are of shape (pairs,), `name` is for messages.

    Raises UserError if gold is constant or has fewer than two pairs. If this holds only for a subset and
    `averages` is False, the subset and the averages over subsets are left out instead.
    """
    members = {subset: np.array([each == subset for each in subsets]) for subset in dict.fromkeys(subsets)}
    if not averages:
        members = {subset: mask for subset, mask in members.items() if _has_order(gold[mask])}
    weights = [int(mask.sum()) for mask in members.values()]
    is_whole = sum(weights) == len(gold)
    scores: dict[str, float] = {}
    for measure in MEASURES:
        parts = {
            subset: _correlation(measure, gold[mask], predicted[mask], f"{name} {subset}".strip())
            for subset, mask in members.items()
        }
        # SentEval's names: "all" over the concatenated subsets, "mean" and "wmean" over their correlations.
        scores[f"{measure}_all"] = _correlation(measure, gold, predicted, name)
        if is_whole:
            scores[f"{measure}_mean"] = float(np.mean(list(parts.values())))
            scores[f"{measure}_wmean"] = float(np.average(list(parts.values()), weights=weights))
        scores |= {f"{measure}/{subset}": value for subset, value in parts.items() if subset}
    return scores


def require_order(gold: "NDArray[np.float64]", name: str) -> None:
    """Raise UserError unless there are two pairs with different gold scores."""
    if not _has_order(gold):
        raise UserError(
            f"{name}: a correlation needs pairs with different gold scores, found {len(gold)} pairs"
        )


def _has_order(gold: "NDArray[np.float64]") -> bool:
    return len(gold) > 1 and bool((gold != gold[0]).any())


def _correlation(
    measure: str, gold: "NDArray[np.float64]", predicted: "NDArray[np.float64]", name: str
) -> float:
    from scipy import stats

    require_order(gold, name)
    if (predicted == predicted[0]).all():
        return 0.0
    correlate = stats.spearmanr if measure == "spearman" else stats.pearsonr
    value = float(correlate(gold, predicted).statistic)
    return value if np.isfinite(value) else 0.0
