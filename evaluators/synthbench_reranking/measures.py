"""Measures of one ranking; of candidates of equal score the less relevant stand first."""

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

    Candidates are ranked by score, those of equal score by grade, the lowest first: a model gains nothing by
    not telling candidates apart, nor by the order in which they are given. Of the relevant ones' ranks r,
    average precision is the mean of (number of relevant ones up to r) / r; the reciprocal rank is 1 / the
    lowest r; precision at k is (number of r <= k) / k, also where there are fewer than k candidates. nDCG@10
    sums grade / log2(1 + rank) over ranks up to 10, and divides by that sum for the candidates in order of
    their grades. All are 0 where no candidate is relevant.
    """
    import numpy as np

    if not is_relevant.any():
        return dict.fromkeys(MEASURES, 0.0)
    order = np.lexsort((grades, -scores))
    ranks = np.flatnonzero(is_relevant[order]) + 1
    values = (
        (np.arange(1, len(ranks) + 1) / ranks).mean(),
        1 / ranks[0],
        _gain(grades[order]) / _gain(np.sort(grades)[::-1]),
        (ranks <= 1).sum() / 1,
        (ranks <= 5).sum() / 5,
    )
    return {name: float(value) for name, value in zip(MEASURES, values, strict=True)}


def _gain(ranked_grades: "NDArray[np.float64]") -> float:
    import numpy as np

    near = ranked_grades[:DEPTH]
    return float((near / np.log2(np.arange(2, len(near) + 2))).sum())
