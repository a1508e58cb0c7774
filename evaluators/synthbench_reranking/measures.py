"""Measures of one ranking; ties share the last of their ranks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEPTH = 10
MEASURES = ("map", "mrr", f"ndcg_at_{DEPTH}", "precision_at_1", "precision_at_5")


def measures(
    scores: "NDArray[np.float64]", grades: "NDArray[np.float64]", is_relevant: "NDArray[np.bool_]"
) -> Mapping[str, float]:
    """Return each measure's value for one query, in [0, 1]; arrays are of shape (candidates,).

    A candidate's rank is the number of candidates whose score is at least its own. Of the relevant ones'
    ranks r, average precision is the mean of (number of relevant ones up to r) / r, as scikit-learn and MTEB
    define it; the reciprocal rank is 1 / the lowest r; precision at k is (number of r <= k) / k, also where
    there are fewer than k candidates. nDCG@10 sums grade / log2(1 + rank) over ranks up to 10, and divides by
    that sum for the candidates in order of their grades. All are 0 where no candidate is relevant.
    """
    import numpy as np

    if not is_relevant.any():
        return dict.fromkeys(MEASURES, 0.0)
    ranks = np.searchsorted(np.sort(-scores), -scores, side="right")
    found = np.sort(ranks[is_relevant])
    precisions = np.searchsorted(found, found, side="right") / found
    ideal = _gain(-np.sort(-grades), np.arange(1, len(grades) + 1))
    values = (
        precisions.mean(),
        1 / found[0],
        _gain(grades, ranks) / ideal,
        (found <= 1).sum() / 1,
        (found <= 5).sum() / 5,
    )
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def _gain(grades: "NDArray[np.float64]", ranks: "NDArray[np.int64]") -> float:
    import numpy as np

    is_near = ranks <= DEPTH
    return float((grades[is_near] / np.log2(1 + ranks[is_near])).sum())
