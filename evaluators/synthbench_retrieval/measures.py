"""Measures of one query's ranking, as computed by trec_eval."""

from collections.abc import Mapping, Sequence
from math import log2

from synthbench.api import RetrievalText

NEAR, DEPTH = 10, 100


def measures(ranked: Sequence[str], query: RetrievalText) -> Mapping[str, float]:
    """Return each measure's value, in [0, 1]; `ranked` are ids of passages, the most similar first.

    nDCG@10 sums grade / log2(1 + rank) over ranks up to 10, and divides by that sum for the judged passages
    in order of their grades. Recall@100 is the share of the relevant passages with ranks up to 100. The
    reciprocal rank is that of the first relevant passage, 0 beyond rank 10. Average precision sums, over the
    relevant passages' ranks r up to 100, (number of relevant ones up to r) / r, and divides by the number of
    all relevant ones. All are 0 without a relevant passage.
    """
    grade_of = dict(zip(query.judged, query.grades, strict=True))
    num_relevant = sum(grade > 0 for grade in query.grades)
    if not num_relevant:
        return dict.fromkeys(("ndcg_at_10", "recall_at_100", "mrr_at_10", "map_at_100"), 0.0)
    gains = [grade_of.get(name, 0.0) for name in ranked[:DEPTH]]
    ranks = [rank for rank, gain in enumerate(gains, start=1) if gain > 0]
    first = ranks[0] if ranks else NEAR + 1
    return {
        "ndcg_at_10": _discounted(gains) / _discounted(sorted(query.grades, reverse=True)),
        "recall_at_100": len(ranks) / num_relevant,
        "mrr_at_10": 1 / first if first <= NEAR else 0.0,
        "map_at_100": sum(number / rank for number, rank in enumerate(ranks, start=1)) / num_relevant,
    }


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains[:NEAR], start=1))
