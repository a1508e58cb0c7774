"""All vectors against all, each pair multiplied once: the cosine of (a, b) is that of (b, a)."""

from typing import TYPE_CHECKING

import numpy as np

from synthbench_augsbert.top_k import best

if TYPE_CHECKING:
    from numpy.typing import NDArray

DECIMALS = 6  # vectors are single precision: what follows is noise, and would order equal vectors at random
MARGIN = np.float32(10.0**-DECIMALS)  # what is farther below another cosine is below it when rounded, too
TILE = 2048  # rows and columns of the products that are looked at while the processor's cache has them


def nearest_of_all(units: "NDArray[np.float32]", k: int) -> "NDArray[np.intp]":
    """Return the indices of the k nearest others of every vector of length 1, shape (len(units), k).

    Best first by the cosine rounded to six decimals, of equal ones the lower index first.
    Raises ValueError unless 1 <= k < len(units).
    """
    if not 1 <= k < len(units):
        raise ValueError(f"k = {k} of {len(units)} vectors")
    tiles = [slice(tile[0], tile[-1] + 1) for tile in _tiles(len(units), k)]
    top = _Top(len(units), k)
    for tile in tiles:
        top.begin(tile, units[tile] @ units[tile].T)
    widest = max(tile.stop - tile.start for tile in tiles)
    products = np.empty(
        (widest, widest), np.float32
    )  # fresh memory for each would cost as much as its filling
    for place, rows in enumerate(tiles):
        for columns in tiles[:place]:
            cosines = products[: rows.stop - rows.start, : columns.stop - columns.start]
            np.matmul(units[rows], units[columns].T, out=cosines)
            top.add(rows, columns.start, cosines)
            top.add(columns, rows.start, cosines, axis=1)
    return top.indices


def _tiles(number: int, k: int) -> "list[NDArray[np.intp]]":
    """Cut the vectors into tiles of like size, each with more than k vectors."""
    size = max(TILE, 2 * k + 2)
    return np.array_split(np.arange(number), max(1, number // size))


class _Top:
    """The k nearest of every vector among those that it was compared with so far."""

    def __init__(self, number: int, k: int) -> None:
        self.k = k
        self.indices: NDArray[np.intp] = np.zeros((number, k), np.intp)
        self._cosines: NDArray[np.float32] = np.zeros((number, k), np.float32)

    def begin(self, tile: slice, cosines: "NDArray[np.float32]") -> None:
        """Compare the vectors of a tile with each other, before they are compared with any else."""
        np.fill_diagonal(cosines, -np.inf)
        ids, values = best(np.round(cosines, DECIMALS), self.k)
        self.indices[tile], self._cosines[tile] = ids + tile.start, values

    def add(self, tile: slice, first: int, cosines: "NDArray[np.float32]", axis: int = 0) -> None:
        """Compare the vectors of a tile, which lie along `axis`, with those from number `first` on.

        Most vectors have none among these that matters, which their greatest cosine shows.
        """
        least = self._cosines[tile, -1] - MARGIN
        touched = np.flatnonzero(cosines.max(axis=1 - axis) >= least)
        if not len(touched):
            return
        of_touched = cosines[touched] if axis == 0 else cosines[:, touched]
        places = np.nonzero(of_touched >= np.expand_dims(least[touched], 1 - axis))
        positions, others = places[axis], places[1 - axis]
        known = touched + tile.start
        owner = np.concatenate([np.repeat(np.arange(len(touched)), self.k), positions])
        ids = np.concatenate([self.indices[known].ravel(), others + first])
        values = np.round(of_touched[places], DECIMALS)
        found = np.concatenate([self._cosines[known].ravel(), values])
        order = np.lexsort((ids, -found, owner))
        starts = np.searchsorted(owner[order], np.arange(len(touched)))
        chosen = order[starts[:, None] + np.arange(self.k)]
        self.indices[known], self._cosines[known] = ids[chosen], found[chosen]
