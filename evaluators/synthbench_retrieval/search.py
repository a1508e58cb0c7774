"""Exact search: compare every query with every passage, some thousand at a time."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from synthbench.api import (
    Encoder,
    RetrievalText,
    Searcher,
    UserError,
    directions,
    greatest,
    of_passages,
    of_queries,
)
from synthbench_retrieval import Retrieval
from synthbench_retrieval.measures import DEPTH

QUERIES_AT_ONCE, PASSAGES_AT_ONCE = 256, 16_384
"""Block sizes of dense vectors; the similarities of a block take 34 MB."""
SEARCHED_AT_ONCE = 1024
"""Block size for sparse and late-interaction encoders: passages compared with all queries at once."""
DECIMALS = 6
"""Vectors are single precision: further decimals would rank equal passages at random."""


def nearest(
    model: Encoder | Searcher,
    queries: Sequence[RetrievalText],
    passages: Sequence[RetrievalText],
    settings: Retrieval,
    task: str,
) -> Iterator[Sequence[str]]:
    """Yield the ids of the up to 100 passages most similar to each query, the most similar first.

    Of equally similar passages, the one with the greater id comes first, as in trec_eval. Raises UserError,
    which names the task, if a vector or a similarity is not finite.
    """
    ordered = sorted(passages, key=lambda passage: passage.id, reverse=True)
    names = np.array([passage.id for passage in ordered])
    own = {passage.id.removeprefix("passage/"): row for row, passage in enumerate(ordered)}
    for block, parts in _compared(model, queries, ordered, settings, task):
        excluded = [
            own.get(query.id.removeprefix("query/"), -1) if settings.ignore_identical_ids else -1
            for query in block
        ]
        yield from (names[found].tolist() for found in _best_rows(parts, excluded))


def _compared(
    model: Encoder | Searcher,
    queries: Sequence[RetrievalText],
    ordered: Sequence[RetrievalText],
    settings: Retrieval,
    task: str,
) -> Iterator[tuple[Sequence[RetrievalText], Iterable[NDArray[np.float64]]]]:
    """Yield blocks of queries with their similarities to each block of passages in turn."""
    if isinstance(model, Searcher):
        texts = [query.text for query in queries], [passage.text for passage in ordered]
        yield queries, _finite(model.similarities(*texts, SEARCHED_AT_ONCE), task)
        return
    corpus = _vectors(of_passages(model), ordered, task)
    asked = _prepared(_vectors(of_queries(model), queries, task), settings)
    starts = range(0, len(corpus), PASSAGES_AT_ONCE)
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        vectors = asked[start : start + QUERIES_AT_ONCE]
        parts = (_prepared(corpus[first : first + PASSAGES_AT_ONCE], settings) for first in starts)
        yield queries[start : start + QUERIES_AT_ONCE], ((vectors @ part.T).round(DECIMALS) for part in parts)


def _finite(blocks: Iterable[NDArray[np.float64]], task: str) -> Iterator[NDArray[np.float64]]:
    for block in blocks:
        if not np.isfinite(block).all():
            raise UserError(f"{task}: the model's similarity of a query and a passage is not finite")
        yield block


def _vectors(encoder: Encoder, texts: Sequence[RetrievalText], task: str) -> NDArray[np.float32]:
    vectors = encoder.encode([text.text for text in texts])
    faulty = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(faulty):
        raise UserError(f"{task}: the model's vector of {texts[faulty[0]].id} is not finite")
    return vectors


def _prepared(vectors: NDArray[np.float32], settings: Retrieval) -> NDArray[np.float64]:
    """Return float64 vectors, of length 1 for cosine; vectors of equal direction then tie at 6 decimals."""
    exact = vectors.astype(np.float64)
    return exact if settings.similarity == "dot" else directions(exact)


def _best_rows(blocks: Iterable[NDArray[np.float64]], excluded: Sequence[int]) -> list[NDArray[np.int64]]:
    """Return the rows of each query's up to 100 most similar passages, best first; ties: the lower row first.

    `blocks` have the similarities, shape (queries, some passages), in the order of the rows. `excluded` has,
    for each query, the row that it must not find, -1 for none.
    """
    own = np.array(excluded)[:, None]
    best, similarities = np.zeros((len(own), 0), np.int64), np.zeros((len(own), 0))
    start = 0
    for block in blocks:
        rows = np.arange(start, start + block.shape[1])
        block[own == rows] = -np.inf
        both = np.hstack([similarities, block])
        columns, similarities = greatest(both, min(DEPTH, both.shape[1]))
        best = np.take_along_axis(np.hstack([best, np.broadcast_to(rows, block.shape)]), columns, axis=1)
        start += block.shape[1]
    return [found[kept] for found, kept in zip(best, similarities > -np.inf, strict=True)]
