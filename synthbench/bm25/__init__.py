"""BM25: which texts share the rarest words. Samplers and miners have this one implementation."""

from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.bm25.words import Splitter, words_alone, words_between_spaces

__all__ = ["Splitter", "WordNeighbours", "nearest_by_words", "words_alone", "words_between_spaces"]


@dataclass(frozen=True)
class WordNeighbours:
    """The texts nearest to each query by BM25, best first: at most k, each with a word of the query.

    `num_lacking` is how many of the k neighbours of all queries do not exist, for lack of a common word.
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
    """Return the k texts that are best for each query by BM25, fewer where fewer share a word with it.

    Of equal scores the lower index comes first. Without `queries` each text is one, and never among its own.
    Raises ValueError if there are not k texts.
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
