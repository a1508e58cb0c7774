"""Measures of one ranking; of equal scores the less relevant candidate comes first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from synthbench.api import Encoder, PairScorer, Ranking, finite_scores
from synthbench_reranking import CONVENTIONS, MEASURES

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAIRS_AT_ONCE = 100_000
DEPTH = 10


def measures(
    scores: "NDArray[np.float64]", grades: "NDArray[np.float64]", is_relevant: "NDArray[np.bool_]"
) -> Mapping[str, float]:
    """Return each measure's value for one query, in [0, 1]; arrays are of shape (candidates,).

    Candidates are ranked by score, ties by ascending grade: a model gains nothing from equal scores, nor from
    the given order. With the relevant candidates' ranks r, average precision is the mean of (number of
    relevant ones up to r) / r; the reciprocal rank is 1 / the lowest r; precision at k is (number of r <= k)
    / k, also with fewer than k candidates. nDCG@10 sums grade / log2(1 + rank) over ranks up to 10, and
    divides by that sum for the candidates in order of their grades. All are 0 without a relevant candidate.
    """
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
    near = ranked_grades[:DEPTH]
    return float((near / np.log2(np.arange(2, len(near) + 2))).sum())


def counted_queries(counts: "NDArray[np.int64]") -> Mapping[str, "NDArray[np.bool_]"]:
    """Return convention -> which queries it counts, shape (queries,).

    `counts` has shape (queries, 2): the numbers of relevant candidates and of all candidates.
    """
    is_answerable, has_irrelevant = counts[:, 0] > 0, counts[:, 0] < counts[:, 1]
    is_mixed = is_answerable & has_irrelevant
    return {"answerable": is_answerable, "all": is_answerable | has_irrelevant, "mixed": is_mixed}


def means(
    values: Mapping[str, "NDArray[np.float64]"], is_counted: Mapping[str, "NDArray[np.bool_]"]
) -> dict[str, float]:
    """Return each measure's mean over each convention's queries, and the numbers of queries."""
    return {
        f"{measure}_{convention}": float(each[is_counted[convention]].mean())
        for measure, each in values.items()
        for convention in CONVENTIONS
    } | {f"queries_{convention}": float(is_counted[convention].sum()) for convention in CONVENTIONS}


def candidate_scores(
    model: Encoder | PairScorer, rankings: Sequence[Ranking], name: str
) -> Iterator["NDArray[np.float64]"]:
    """Yield each ranking's scores, shape (candidates,); with several queries, the highest over them.

    Pairs are scored in portions, since all pairs of a large set might not fit into memory.
    """
    for portion in _portions(rankings):
        pairs = [(query, text) for each in portion for query in each.queries for text in each.candidates]
        scores = finite_scores(model, pairs, name, of_queries=True)
        ends = np.cumsum([len(each.queries) * len(each.candidates) for each in portion])
        for each, own in zip(portion, np.split(scores, ends[:-1]), strict=True):
            yield own.reshape(len(each.queries), len(each.candidates)).max(axis=0)


def _portions(rankings: Sequence[Ranking]) -> Iterator[Sequence[Ranking]]:
    """Yield consecutive rankings with about `PAIRS_AT_ONCE` pairs of query and candidate."""
    portion: list[Ranking] = []
    num_pairs = 0
    for each in rankings:
        portion.append(each)
        num_pairs += len(each.queries) * len(each.candidates)
        if num_pairs >= PAIRS_AT_ONCE:
            yield portion
            portion, num_pairs = [], 0
    if portion:
        yield portion
