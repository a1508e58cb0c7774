"""The nearest sentences of every sentence by BM25, scored as rank-bm25's Okapi does, but in blocks."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from rank_bm25 import BM25Okapi
from scipy import sparse

from synthbench_augsbert.neighbours import best

if TYPE_CHECKING:
    from numpy.typing import NDArray

FREQUENT = 0.06  # words in a larger share of the sentences go through a dense product
BLOCK_CELLS = 1_300_000  # scores of the queries that are scored at once: 10 MB stay in the processor's cache
MOST_ROWS = 128


def tokens(sentence: str) -> list[str]:
    """Return the lower-cased words between white space."""
    return sentence.lower().split()


class BM25Index:
    """Scores sentences against each other by BM25Okapi (k1 1.5, b 0.75, negative idf: 0.25 x the mean idf).

    rank-bm25 counts words and computes idf; only its scoring, one word of one query at a time, is replaced.
    Weights are rounded to multiples of one power of two, so that every sum fits float64's 53 bits. Sums are
    then exact in any order: scores do not depend on BLAS, threads or blocks, and equal sentences tie. A score
    is off by at most 2^-52 of the index's greatest possible score for each word of the query.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        """Index `sentences`: at least one, none of them blank."""
        okapi = BM25Okapi([tokens(sentence) for sentence in sentences])
        counts = _word_counts(okapi)
        weights = _exactly_summable(_weights(okapi, counts), counts)
        document_frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        frequent = document_frequency > FREQUENT * len(sentences)
        self.num_sentences = len(sentences)
        self._frequent_counts: NDArray[np.float64] = counts[:, frequent].toarray()
        self._frequent_weights: NDArray[np.float64] = weights[:, frequent].toarray().T
        self._rare_counts = counts[:, ~frequent]
        self._rare_weights = weights[:, ~frequent].T.tocsr()

    def scores(self, start: int, stop: int) -> "NDArray[np.float64]":
        """Return the scores of sentences start..stop-1 as queries, shape (stop - start, num_sentences)."""
        # Frequent words by a dense product, rare ones by a sparse one.
        scores: NDArray[np.float64] = self._frequent_counts[start:stop] @ self._frequent_weights
        rare = self._rare_counts[start:stop] @ self._rare_weights
        row_starts = np.arange(len(scores)) * self.num_sentences
        cells = np.repeat(row_starts, np.diff(rare.indptr)) + rare.indices
        scores.reshape(-1)[cells] += rare.data
        return scores

    def nearest(self, k: int) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
        """Return indices and scores of the k best other sentences of every sentence, each (num_sentences, k).

        Best first; of equal scores the lower index first. Sentences without a common word score 0 and are
        returned where nothing better is left. Raises ValueError unless 1 <= k < num_sentences.
        """
        if not 1 <= k < self.num_sentences:
            raise ValueError(f"k = {k} of {self.num_sentences} sentences")
        blocks = list(self._nearest_blocks(k))
        return np.concatenate([ids for ids, _ in blocks]), np.concatenate([scores for _, scores in blocks])

    def _nearest_blocks(self, k: int) -> "Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]":
        num_rows = max(1, min(MOST_ROWS, BLOCK_CELLS // self.num_sentences))
        for start in range(0, self.num_sentences, num_rows):
            scores = self.scores(start, min(start + num_rows, self.num_sentences))
            queries = np.arange(len(scores))
            scores[queries, start + queries] = -np.inf
            yield best(scores, k)


def _word_counts(okapi: BM25Okapi) -> sparse.csr_array:
    """Return how often each word (column, in order of first appearance) occurs in each sentence (row)."""
    column = {word: index for index, word in enumerate(okapi.idf)}
    lengths = [len(frequencies) for frequencies in okapi.doc_freqs]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.fromiter(map(column.__getitem__, chain.from_iterable(okapi.doc_freqs)), dtype=np.int32)
    values = np.fromiter(chain.from_iterable(map(dict.values, okapi.doc_freqs)), dtype=np.float64)
    shape = (okapi.corpus_size, len(column))
    return sparse.csr_array((values, columns, starts), shape=shape)


def _weights(okapi: BM25Okapi, counts: sparse.csr_array) -> sparse.csr_array:
    """Return what one occurrence of a word in a query adds to each sentence's score, shaped as `counts`."""
    # idf * f (k1 + 1) / (f + k1 (1 - b + b |d| / mean |d|)), f the word's count in the sentence d.
    idf = np.fromiter(okapi.idf.values(), dtype=np.float64)[counts.indices]
    lengths = np.array(okapi.doc_len) / okapi.avgdl
    norms = np.repeat(okapi.k1 * (1 - okapi.b + okapi.b * lengths), np.diff(counts.indptr))
    values = idf * (counts.data * (okapi.k1 + 1) / (counts.data + norms))
    return sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)


def _exactly_summable(weights: sparse.csr_array, counts: sparse.csr_array) -> sparse.csr_array:
    """Round weights to multiples of the least power of two at which every score's sum is exact in float64."""
    largest = np.zeros(weights.shape[1])
    np.maximum.at(largest, weights.indices, np.abs(weights.data))
    _, exponent = np.frexp((counts @ largest).max())
    scale = 52 - int(exponent)
    rounded = np.ldexp(np.rint(np.ldexp(weights.data, scale)), -scale)
    return sparse.csr_array((rounded, weights.indices, weights.indptr), shape=weights.shape)
