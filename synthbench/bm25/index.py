"""The nearest texts of every query by BM25, with rank-bm25's BM25Okapi scores computed in blocks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from rank_bm25 import BM25Okapi
from scipy import sparse
from scipy.linalg.blas import dgemm, sgemm

from synthbench.bm25.top_k import first_of_each, greatest, lower_bound
from synthbench.words.scripts import Splitter, words_between_spaces

if TYPE_CHECKING:
    from numpy.typing import NDArray

Number = TypeVar("Number", np.float32, np.float64)

FREQUENT = 0.1  # words in a larger share of the sentences go through a dense product
BLOCK_CELLS = 1_000_000  # scores computed at once: 4 MB stay in the processor's cache
FEWEST_ROWS, MOST_ROWS = 16, 256  # queries scored at once
GROUP_ROWS = 2048  # queries whose candidates get their exact scores at once
LEAST_IDF = 0.01  # for words in at least half of the sentences, if the mean idf is not above 0
CROWD = 64  # with more candidates per neighbour, all scores of a query are computed exactly


class BM25Index:
    """Scores of sentences for queries by BM25Okapi (k1 1.5, b 0.75; idf <= 0 becomes 0.25 x the mean idf).

    Queries are other texts, or the sentences themselves, which are never their own neighbours.

    The package rank-bm25 counts words and computes idf, but scores one word of one query at a time. This
    class scores blocks of queries instead. rank-bm25 gives some words in at least half of the sentences an
    idf of 0 or below; here such words get 0.25 x the mean idf, or 0.01 if the mean is not above 0. So every
    shared word adds to a score, and a score of 0 means that no word is shared.

    Weights are rounded to multiples of one power of two, so that every sum fits float64's 53 bits. Sums are
    then exact in any order: scores do not depend on BLAS, threads or blocks, and equal sentences tie. For
    each word of a query, rounding changes a score by at most 2^-51 of the index's greatest possible score.
    """

    def __init__(
        self,
        sentences: Sequence[str],
        queries: Sequence[str] | None = None,
        split: Splitter = words_between_spaces,
    ) -> None:
        """Index one or more `sentences`; each must have a word. `queries` are the sentences by default."""
        okapi = BM25Okapi([split(sentence) for sentence in sentences])
        okapi.idf = _positive_idf(okapi)
        self.num_sentences = len(sentences)
        self._is_own = queries is None
        self._sentences = _counts_in([dict(each) for each in okapi.doc_freqs], okapi.idf)
        counted = None if queries is None else [Counter(split(query)) for query in queries]
        self._counts = self._sentences if counted is None else _counts_in(counted, okapi.idf)
        weights = _weights(okapi, self._sentences)
        most = self._counts @ _greatest_weights(weights)
        self._weights = _exactly_summable(weights, most.max())
        self._errors = _largest_errors(self._counts, most)

    def scores(self, start: int, stop: int) -> "NDArray[np.float64]":
        """Return all sentences' scores for queries start..stop-1, shape (stop - start, num_sentences)."""
        return self._exact.scores(np.arange(start, stop)).copy()

    def nearest(self, k: int) -> "tuple[NDArray[np.intp], NDArray[np.float64]]":
        """Return indices and scores of the k best sentences of every query, each of shape (queries, k).

        Best first; ties go to the lower index. Sentences with score 0 share no word with the query: they are
        no neighbours and only fill up the row to k. Raises ValueError unless 1 <= k < num_sentences; with
        separate queries, k may equal num_sentences.
        """
        if not 1 <= k <= self.num_sentences - self._is_own:
            raise ValueError(f"k = {k} of {self.num_sentences} sentences")
        num_queries = self._counts.shape[0]
        ids = np.empty((num_queries, k), np.intp)
        scores = np.empty((num_queries, k))
        rough = self.scorer(np.float32)
        for group in _blocks(np.arange(num_queries), GROUP_ROWS):
            blocks = [self._candidates(rough, block, k) for block in _blocks(group, self._num_rows())]
            queries, others = (np.concatenate(column) for column in zip(*blocks, strict=True))
            few, positions = np.unique(queries, return_inverse=True)
            if len(few):
                values = self._scores_of(queries, others)
                ids[few], scores[few] = first_of_each(positions, others, values, k)
            for block in _blocks(np.setdiff1d(group, few), self._num_rows()):
                ids[block], scores[block] = greatest(self._of_others(self._exact.scores(block), block), k)
        return ids, scores

    def scorer(self, number: type[Number]) -> "_Scorer[Number]":
        """Return a scorer that computes in the precision `number`, float32 or float64."""
        return _Scorer(self._counts, self._weights, number)

    @cached_property
    def _exact(self) -> "_Scorer[np.float64]":
        return self.scorer(np.float64)

    def _num_rows(self) -> int:
        return max(FEWEST_ROWS, min(MOST_ROWS, BLOCK_CELLS // self.num_sentences))

    def _candidates(
        self, rough: "_Scorer[np.float32]", queries: "NDArray[np.intp]", k: int
    ) -> "tuple[NDArray[np.intp], NDArray[np.intp]]":
        """Return pairs of a query and a sentence that may be among the query's k best, as two index arrays.

        A query with more than CROWD * k candidates gets no pairs: all its scores are computed exactly.
        """
        scores = self._of_others(rough.scores(queries), queries)
        # At least k sentences reach the bound. So the k best reach it, too, up to both scores' rounding
        # errors.
        least = lower_bound(scores, k) - 2 * self._errors[queries, None]
        reached = scores >= np.nextafter(least.astype(np.float32), np.float32(-np.inf))
        rows, others = np.divmod(np.flatnonzero(reached), self.num_sentences)
        few = (np.bincount(rows, minlength=len(queries)) <= CROWD * k)[rows]
        return queries[rows[few]], others[few]

    def _scores_of(self, queries: "NDArray[np.intp]", others: "NDArray[np.intp]") -> "NDArray[np.float64]":
        """Return the exact score of each pair of a query and a sentence."""
        scores: NDArray[np.float64] = self._counts[queries].multiply(self._weights[others]).sum(axis=1)
        return scores

    def _of_others(self, scores: "NDArray[Number]", queries: "NDArray[np.intp]") -> "NDArray[Number]":
        """Set `scores` to -inf where a query is the sentence itself; return the same array."""
        if self._is_own:
            scores[np.arange(len(queries)), queries] = -np.inf
        return scores


class _Scorer(Generic[Number]):
    """Computes scores in one precision: a dense product for frequent words plus postings for rare words."""

    def __init__(self, counts: sparse.csr_array, weights: sparse.csr_array, number: type[Number]) -> None:
        document_frequency = np.bincount(weights.indices, minlength=weights.shape[1])
        frequent = document_frequency > FREQUENT * weights.shape[0]
        self._number: type[Number] = number
        self._product = sgemm if number is np.float32 else dgemm
        self._frequent_counts = counts[:, frequent].toarray().astype(number)
        self._frequent_weights = weights[:, frequent].toarray().astype(number, order="F")
        self._rare_counts = counts[:, ~frequent].astype(np.intp)
        self._postings = weights[:, ~frequent].T.tocsr().astype(number)
        self._buffer: NDArray[Number] = np.empty((0, weights.shape[0]), number)

    def scores(self, queries: "NDArray[np.intp]") -> "NDArray[Number]":
        """Return all sentences' scores for each query, shape (len(queries), number of sentences).

        The next call overwrites the array: a new array would take as long to allocate as to fill.
        """
        if len(queries) > len(self._buffer):
            self._buffer = np.empty((len(queries), self._buffer.shape[1]), self._number)
        scores = self._buffer[: len(queries)]
        self._rows_of_postings(queries).toarray(out=scores)
        if self._frequent_weights.shape[1]:
            # BLAS adds the product to `scores`. It needs column-major arrays, as transposed arrays are.
            counts = self._frequent_counts[queries].T
            self._product(1, self._frequent_weights, counts, beta=1, c=scores.T, overwrite_c=1)
        return scores

    def _rows_of_postings(self, queries: "NDArray[np.intp]") -> sparse.csr_array:
        """Return, for each query, the concatenated postings of its rare words."""
        words = self._rare_counts[queries]
        postings = self._postings[np.repeat(words.indices, words.data)]
        ends = np.concatenate([[0], np.cumsum(words.data)])[words.indptr]
        lists = postings.data, postings.indices, postings.indptr[ends]
        return sparse.csr_array(lists, shape=(len(queries), postings.shape[1]))


def _blocks(indices: "NDArray[np.intp]", size: int) -> "Iterator[NDArray[np.intp]]":
    for start in range(0, len(indices), size):
        yield indices[start : start + size]


def _counts_in(texts: Sequence[Mapping[str, int]], vocabulary: Iterable[str]) -> sparse.csr_array:
    """Return the texts' word counts, shape (texts, vocabulary); words outside the vocabulary do not count."""
    column = {word: index for index, word in enumerate(vocabulary)}
    known = [{column[word]: number for word, number in text.items() if word in column} for text in texts]
    starts = np.concatenate([[0], np.cumsum([len(text) for text in known])])
    columns = np.fromiter(chain.from_iterable(known), dtype=np.int32)
    values = np.fromiter(chain.from_iterable(map(dict.values, known)), dtype=np.float64)
    counts = sparse.csr_array((values, columns, starts), shape=(len(texts), len(column)))
    counts.sort_indices()
    return counts


def _positive_idf(okapi: BM25Okapi) -> dict[str, float]:
    """Return each word's idf, raised above 0 for words in at least half of the sentences."""
    floor = okapi.epsilon * okapi.average_idf
    least = floor if floor > 0 else LEAST_IDF
    return {word: idf if idf > 0 else least for word, idf in okapi.idf.items()}


def _weights(okapi: BM25Okapi, counts: sparse.csr_array) -> sparse.csr_array:
    """Return what one occurrence of a word in a query adds to each sentence's score, shaped as `counts`."""
    # idf * f (k1 + 1) / (f + k1 (1 - b + b |d| / mean |d|)), where f is the word's count in the sentence d.
    idf = np.fromiter(okapi.idf.values(), dtype=np.float64)[counts.indices]
    lengths = np.array(okapi.doc_len) / okapi.avgdl
    norms = np.repeat(okapi.k1 * (1 - okapi.b + okapi.b * lengths), np.diff(counts.indptr))
    values = idf * (counts.data * (okapi.k1 + 1) / (counts.data + norms))
    return sparse.csr_array((values, counts.indices, counts.indptr), shape=counts.shape)


def _greatest_weights(weights: sparse.csr_array) -> "NDArray[np.float64]":
    """Return each word's greatest absolute weight."""
    greatest = np.zeros(weights.shape[1])
    np.maximum.at(greatest, weights.indices, np.abs(weights.data))
    return greatest


def _exactly_summable(weights: sparse.csr_array, greatest_score: float) -> sparse.csr_array:
    """Round weights to multiples of the smallest power of two at which every score's sum is exact in float64.

    No weight is rounded to 0.
    """
    _, exponent = np.frexp(greatest_score)
    scale = 52 - int(exponent)
    rounded = np.ldexp(np.maximum(np.rint(np.ldexp(weights.data, scale)), 1), -scale)
    return sparse.csr_array((rounded, weights.indices, weights.indptr), shape=weights.shape)


def _largest_errors(counts: sparse.csr_array, greatest: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return an upper bound on the error of a single-precision score, for each query.

    A sum of m products in any order is off by at most g / (1 - g) times the sum of their absolute values.
    Here g = (m + 1) 2^-24, since each weight is rounded, too (Higham, Accuracy and Stability of Numerical
    Algorithms, 2002, section 3.1). `greatest` bounds the sum of absolute values, for each query; adding 1 to
    m covers the rounding errors of `greatest`.
    """
    growth = (counts.sum(axis=1) + 2) * 2.0**-24
    errors: NDArray[np.float64] = growth / (1 - growth) * greatest
    return errors
