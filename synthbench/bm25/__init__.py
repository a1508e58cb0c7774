"""BM25 search for texts that share rare words, used by all samplers and miners."""

from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.words.scripts import Splitter, words_between_spaces

__all__ = ["WordNeighbours", "nearest_by_words"]


@dataclass(frozen=True)
class WordNeighbours:
    """The texts nearest to each query by BM25, best first: at most k, each sharing a word with the query.

    If too few texts share a word with a query, the query has fewer than k neighbours. `num_lacking` is the
    total number of missing neighbours, over all queries.
    """

    indices: Sequence[Sequence[int]]
    scores: Sequence[Sequence[float]]
    num_lacking: int


def nearest_by_words(
    texts: Sequence[str],
    k: int,
    queries: Sequence[str] | None = None,
    split: Splitter = words_between_spaces,
) -> WordNeighbours:
    """Return the k best texts for each query by BM25, or fewer if fewer share a word with the query.

    Ties go to the lower index. Without `queries` each text is a query, and is never its own neighbour. Raises
    ValueError if k is below 1 or above the number of possible neighbours.
    """
    import numpy as np

    from synthbench.bm25.index import BM25Index

    ids, scores = BM25Index(texts, queries, split).nearest(k)
    found = (scores > 0).sum(axis=1).tolist()
    return WordNeighbours(
        [row[:number] for row, number in zip(ids.tolist(), found, strict=True)],
        [row[:number] for row, number in zip(scores.tolist(), found, strict=True)],
        int(np.size(scores)) - sum(found),
    )
