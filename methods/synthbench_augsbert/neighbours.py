"""The nearest sentences of every sentence by the cosine of their vectors: exact, or by an inverted file."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from synthbench.api import directions, greatest

if TYPE_CHECKING:
    from numpy.typing import NDArray


DECIMALS = 6  # further decimals are noise in single precision, and would order equal cosines at random
MARGIN = np.float32(10.0**-DECIMALS)  # cosines farther apart keep their order when rounded
TILE = 2048  # rows and columns of a product, which then fits into the processor's cache
BLOCK_ROWS = 128  # queries compared with all sentences at once
SAMPLE = 1000  # queries for tuning the index, and as many others for measuring its recall
GOAL = 0.985  # recall at which the search stops probing more lists
SPARE = 16  # neighbours requested from the index beyond k, since rounding may reorder them
FIRST_PROBES = 8
MOST_SHARE = 8  # with at least 1/8 of the lists to search, comparing with all sentences is as fast


@dataclass(frozen=True)
class Neighbours:
    """Indices of the k nearest neighbours of every sentence, best first, shape (num_sentences, k).

    `how` names the search for display. `recall` is the share of true neighbours that it found for a sample of
    sentences, 1 if exact.
    """

    indices: "NDArray[np.intp]"
    recall: float
    how: str


def nearest(
    vectors: "NDArray[np.float32]",
    k: int,
    *,
    exact_up_to: int,
    seed: int,
    threads: int | None = None,
) -> Neighbours:
    """Return the k nearest neighbours of every vector; `vectors` has the shape (num_sentences, dimension).

    Up to `exact_up_to` vectors, the search is exact. Above, a vector is compared only with the vectors of the
    nearest clusters, unless so many clusters are needed that an exact search is as fast. Cosines are rounded
    to six decimals; ties go to the lower index. `threads` (None: the machine's) do not change the result.
    Raises ValueError unless 1 <= k < len(vectors).
    """
    if not 1 <= k < len(vectors):
        raise ValueError(f"k is {k}, not between 1 and {len(vectors) - 1}")
    units = np.ascontiguousarray(directions(vectors))
    found = _Approximate(units, k, seed, threads).search() if len(units) > exact_up_to else None
    return found or Neighbours(nearest_of_all(units, k), 1.0, "exact")


def nearest_of_all(units: "NDArray[np.float32]", k: int) -> "NDArray[np.intp]":
    """Return the indices of the k nearest neighbours of every vector of length 1, shape (len(units), k).

    Best first by the cosine at six decimals, then by index. `k` is at least 1 and less than len(units).
    """
    tiles = _tiles(len(units), k)
    top = _Top(len(units), k)
    for tile in tiles:
        top.begin(tile, units[tile] @ units[tile].T)
    widest = max(tile.stop - tile.start for tile in tiles)
    # One buffer for all products, since allocating fresh memory would take as long as filling it.
    products = np.empty((widest, widest), np.float32)
    # Each pair of tiles is multiplied once, for the rows and for the columns: cosines are symmetric.
    for columns, rows in combinations(tiles, 2):
        cosines = products[: rows.stop - rows.start, : columns.stop - columns.start]
        np.matmul(units[rows], units[columns].T, out=cosines)
        top.add(rows, columns.start, cosines)
        top.add(columns, rows.start, cosines, axis=1)
    return top.indices


def _tiles(number: int, k: int) -> tuple[slice, ...]:
    """Return slices of similar size, each with more than k vectors."""
    size = max(TILE, 2 * k + 2)
    tiles = np.array_split(np.arange(number), max(1, number // size))
    return tuple(slice(int(tile[0]), int(tile[-1]) + 1) for tile in tiles)


class _Top:
    """The k nearest of every vector so far."""

    def __init__(self, number: int, k: int) -> None:
        self.k = k
        self.indices: NDArray[np.intp] = np.zeros((number, k), np.intp)
        self._cosines: NDArray[np.float32] = np.zeros((number, k), np.float32)

    def begin(self, tile: slice, cosines: "NDArray[np.float32]") -> None:
        """Compare the vectors of a tile with each other; call it before `add`."""
        np.fill_diagonal(cosines, -np.inf)
        ids, values = greatest(np.round(cosines, DECIMALS), self.k)
        self.indices[tile], self._cosines[tile] = ids + tile.start, values

    def add(self, tile: slice, first: int, cosines: "NDArray[np.float32]", axis: int = 0) -> None:
        """Compare the vectors of a tile with the vectors from index `first` on.

        `axis` of `cosines` runs over the tile's vectors. Most of them are skipped: their greatest
        cosine is below the cosine of their k-th neighbour so far.
        """
        least = self._cosines[tile, -1] - MARGIN
        touched = np.flatnonzero(cosines.max(axis=1 - axis) >= least)
        if not len(touched):
            return
        of_touched = cosines[touched] if axis == 0 else cosines[:, touched]
        cells = np.nonzero(of_touched >= np.expand_dims(least[touched], 1 - axis))
        positions, others = cells[axis], cells[1 - axis]
        known = touched + tile.start
        owner = np.concatenate([np.repeat(np.arange(len(touched)), self.k), positions])
        ids = np.concatenate([self.indices[known].ravel(), others + first])
        values = np.round(of_touched[cells], DECIMALS)
        found = np.concatenate([self._cosines[known].ravel(), values])
        order = np.lexsort((ids, -found, owner))
        starts = np.searchsorted(owner[order], np.arange(len(touched)))
        chosen = order[starts[:, None] + np.arange(self.k)]
        self.indices[known], self._cosines[known] = ids[chosen], found[chosen]


def _exact(
    units: "NDArray[np.float32]", k: int, queries: "NDArray[np.intp]"
) -> "tuple[NDArray[np.intp], NDArray[np.float32]]":
    """Return indices and cosines of the k nearest neighbours of the vectors at `queries`."""
    blocks = [queries[start : start + BLOCK_ROWS] for start in range(0, len(queries), BLOCK_ROWS)]
    found = [_exact_block(units, k, block) for block in blocks]
    return np.concatenate([ids for ids, _ in found]), np.concatenate([cosines for _, cosines in found])


def _exact_block(
    units: "NDArray[np.float32]", k: int, queries: "NDArray[np.intp]"
) -> "tuple[NDArray[np.intp], NDArray[np.float32]]":
    cosines = np.round(units[queries] @ units.T, DECIMALS)
    cosines[np.arange(len(queries)), queries] = -np.inf
    return greatest(cosines, k)


class _Approximate:
    """An inverted file: vectors are listed by nearest centroid; a query searches the nearest lists only.

    The number of searched lists is doubled until the recall on a sample reaches `GOAL`.
    """

    def __init__(self, units: "NDArray[np.float32]", k: int, seed: int, threads: int | None) -> None:
        self.units = units
        self.k = k
        self.threads = threads
        self.num_lists = min(4 * math.isqrt(len(units)), len(units) // 39 or 1)
        self.index = self._index(seed)
        chosen = np.random.default_rng(seed).permutation(len(units))
        self.tuning, self.testing = chosen[:SAMPLE], chosen[SAMPLE : 2 * SAMPLE]

    def search(self) -> Neighbours | None:
        """Search approximately, and measure the recall on a sample.

        If there are enough sentences, the sample holds none of those that tuned the number of searched lists.
        Returns None if an exact search is as fast.
        """
        with _faiss_threads(self.threads):
            probes = self._probes()
            if probes is None:
                return None
            everyone = np.arange(len(self.units))
            starts = range(0, len(everyone), SAMPLE)
            found = np.concatenate([self._found(everyone[start : start + SAMPLE]) for start in starts])
            testing = self.testing if len(self.testing) else self.tuning
            recall = self._recall(testing, self._found(testing), self._least_cosines(testing))
        return Neighbours(found, recall, f"inverted file, {probes} of {self.num_lists:,} lists")

    def _index(self, seed: int) -> Any:  # noqa: ANN401 - faiss is untyped
        import faiss

        dimension = self.units.shape[1]
        index = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(dimension), dimension, self.num_lists, faiss.METRIC_INNER_PRODUCT
        )
        index.cp.seed = seed % 2**31
        index.cp.max_points_per_centroid = 64
        # Threads sum in varying order, so a single one computes the centroids, for equal results.
        with _faiss_threads(1):
            index.train(self.units)
        with _faiss_threads(self.threads):
            index.add(self.units)
        return index

    def _probes(self) -> int | None:
        least = self._least_cosines(self.tuning)
        probes = min(FIRST_PROBES, self.num_lists)
        while probes <= max(FIRST_PROBES, self.num_lists // MOST_SHARE):
            self.index.nprobe = probes
            if self._recall(self.tuning, self._found(self.tuning), least) >= GOAL:
                return probes
            probes *= 2
        return None

    def _least_cosines(self, queries: "NDArray[np.intp]") -> "NDArray[np.float32]":
        """Return the cosine of each query with its true k-th nearest, shape (len(queries), 1)."""
        return _exact(self.units, self.k, queries)[1][:, -1:]

    def _recall(
        self, queries: "NDArray[np.intp]", found: "NDArray[np.intp]", least: "NDArray[np.float32]"
    ) -> float:
        """Return the share of found neighbours at least as near as the true k-th nearest."""
        return float((self._cosines(queries, found) >= least).mean())

    def _found(self, queries: "NDArray[np.intp]") -> "NDArray[np.intp]":
        """Return the k nearest neighbours in the searched lists; an exact search if the lists hold fewer."""
        wanted = min(self.k + 1 + SPARE, len(self.units))
        _, ids = self.index.search(self.units[queries], wanted)
        cosines = self._cosines(queries, ids)
        cosines[(ids < 0) | (ids == queries[:, None])] = -np.inf
        order = np.lexsort((ids, -cosines), axis=1)[:, : self.k]
        nearest: NDArray[np.intp] = np.take_along_axis(ids, order, axis=1)
        short = np.isinf(np.take_along_axis(cosines, order, axis=1)).any(axis=1)
        if short.any():
            nearest[short] = _exact(self.units, self.k, queries[short])[0]
        return nearest

    def _cosines(self, queries: "NDArray[np.intp]", ids: "NDArray[np.intp]") -> "NDArray[np.float32]":
        pairs = np.einsum("qd,qkd->qk", self.units[queries], self.units[ids])
        rounded: NDArray[np.float32] = np.round(pairs, DECIMALS)
        return rounded


@contextmanager
def _faiss_threads(threads: int | None) -> Iterator[None]:
    """Let faiss use this number of threads within the block."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
