"""Exact search: compare every query with every passage, some thousand at a time."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from synthbench.api import Encoder, RetrievalText, UserError, of_passages, of_queries
from synthbench_retrieval import Retrieval
from synthbench_retrieval.measures import DEPTH

QUERIES_AT_ONCE, PASSAGES_AT_ONCE = 256, 16_384
"""Block sizes; the similarities of a block take 34 MB."""
DECIMALS = 6
"""Vectors are single precision: further decimals would rank equal passages at random."""


def nearest(
    model: Encoder,
    queries: Sequence[RetrievalText],
    passages: Sequence[RetrievalText],
    settings: Retrieval,
    task: str,
) -> Iterator[Sequence[str]]:
    """Yield the ids of the 100 passages most similar to each query, the most similar first.

    Of equally similar ones the one with the greater id comes first, as in trec_eval. Raises UserError, which
    names the task, if a vector is not finite.
    """
    ordered = sorted(passages, key=lambda passage: passage.id, reverse=True)
    corpus = _vectors(of_passages(model), ordered, task)
    asked = _prepared(_vectors(of_queries(model), queries, task), settings)
    names = np.array([passage.id for passage in ordered])
    own = {passage.id.removeprefix("passage/"): row for row, passage in enumerate(ordered)}
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        block = queries[start : start + QUERIES_AT_ONCE]
        excluded = [
            own.get(query.id.removeprefix("query/"), -1) if settings.ignore_identical_ids else -1
            for query in block
        ]
        rows = _best_rows(asked[start : start + len(block)], corpus, excluded, settings)
        yield from (names[found].tolist() for found in rows)


def _vectors(encoder: Encoder, texts: Sequence[RetrievalText], task: str) -> NDArray[np.float32]:
    vectors = encoder.encode([text.text for text in texts])
    faulty = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(faulty):
        raise UserError(f"{task}: the model's vector of {texts[faulty[0]].id} is not finite")
    return vectors


def _prepared(vectors: NDArray[np.float32], settings: Retrieval) -> NDArray[np.float64]:
    """Return float64 vectors, at length 1 for the cosine: equal directions then agree to 6 decimals."""
    exact = vectors.astype(np.float64)
    if settings.similarity == "dot":
        return exact
    norms = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.asarray(exact / np.where(norms == 0, 1, norms))


def _best_rows(
    queries: NDArray[np.float64],
    corpus: NDArray[np.float32],
    excluded: Sequence[int],
    settings: Retrieval,
) -> list[NDArray[np.int64]]:
    """Return the rows of the most similar passages of each query; ties go to the first rows.

    `excluded` is the row that a query must not find, -1 for none.
    """
    best = [np.zeros(0, np.int64) for _ in excluded]
    similarities = [np.zeros(0) for _ in excluded]
    for start in range(0, len(corpus), PASSAGES_AT_ONCE):
        part = _prepared(corpus[start : start + PASSAGES_AT_ONCE], settings)
        block = (queries @ part.T).round(DECIMALS)
        for number, without in enumerate(excluded):
            if start <= without < start + len(part):
                block[number, without - start] = -np.inf
            both = np.concatenate([similarities[number], block[number]])
            rows = np.concatenate([best[number], np.arange(start, start + len(part))])
            if without >= 0:
                rows, both = rows[both > -np.inf], both[both > -np.inf]
            kept = _first(both)
            best[number], similarities[number] = rows[kept], both[kept]
    return best


def _first(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions of the 100 greatest values in order; ties go to the first positions."""
    if len(values) <= DEPTH:
        return np.argsort(-values, kind="stable")
    least = np.partition(values, len(values) - DEPTH)[len(values) - DEPTH]
    candidates = np.flatnonzero(values >= least)
    return candidates[np.argsort(-values[candidates], kind="stable")][:DEPTH]
