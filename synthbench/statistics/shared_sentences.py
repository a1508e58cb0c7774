"""Test items that share sentences: the variance of a sum over them (Aronow, Samii and Assenova 2015).

Items that hold the same sentence err together, so a test set tells less than its number of items says.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Array = NDArray[np.float64]

BLOCK = 4_096
"""Groups of items whose neighbours are in memory at a time."""


@dataclass(frozen=True, eq=False)
class SharedSentences:
    """The sentences of `num_items` test items: item `items[k]` holds the sentence `sentences[k]`.

    Both are integers of shape (entries,). Items are numbered from 0; any integers name the sentences. A
    repeated entry counts once. An item without an entry shares nothing.
    """

    items: "NDArray[np.int64]"
    sentences: "NDArray[np.int64]"
    num_items: int

    @classmethod
    def union(cls, sets: "Sequence[SharedSentences]") -> "SharedSentences":
        """Return the items of several test sets, one after the other; sentences are named alike in all."""
        import numpy as np

        starts = np.cumsum([0, *(each.num_items for each in sets)])
        items = [each.items + start for each, start in zip(sets, starts, strict=False)]
        return cls(np.concatenate(items), np.concatenate([each.sentences for each in sets]), int(starts[-1]))

    def covariances(self, values: "Array") -> "Array":
        """Return x'Ay for each two lines x and y of `values`; A is 1 where two items share a sentence.

        `values` has the shape (lines, items), the result (lines, lines).
        """
        import numpy as np

        grouped = self._by_group @ values.T
        neighbours = np.empty_like(grouped)
        for start in range(0, len(grouped), BLOCK):
            shared = self._holds[start : start + BLOCK] @ self._holds.T
            shared.data[:] = 1.0
            neighbours[start : start + BLOCK] = shared @ grouped
        return np.asarray(grouped.T @ neighbours)

    def sums_by_sentence(self, values: "Array") -> "Array":
        """Return the sum of the items that hold each sentence: (lines, items) to (lines, sentences)."""
        import numpy as np

        return np.asarray((self._holds.T @ (self._by_group @ values.T)).T)

    def sums_by_component(self, values: "Array") -> "Array":
        """Return the sum of the items of each component: (lines, items) to (lines, components).

        Items that share a sentence are in one component, and so are items that a chain of such items joins.
        """
        import numpy as np
        from scipy.sparse import block_array, csr_array
        from scipy.sparse.csgraph import connected_components

        graph = block_array([[None, self._holds], [self._holds.T, None]])
        number, labels = connected_components(graph, directed=False)
        groups = self._holds.shape[0]
        members = csr_array((np.ones(groups), (labels[:groups], np.arange(groups))), shape=(number, groups))
        return np.asarray((members @ (self._by_group @ values.T)).T)

    @cached_property
    def _groups(self) -> "tuple[csr_array, csr_array]":
        """Items of the same sentences as groups: (groups, items) and (groups, sentences), of ones.

        They have the same neighbours, so that their values can be added first.
        """
        import numpy as np
        from scipy.sparse import csr_array

        names, columns = np.unique(self.sentences, return_inverse=True)
        bare = np.setdiff1d(np.arange(self.num_items), self.items)
        rows = np.concatenate([self.items, bare])
        columns = np.concatenate([columns, len(names) + np.arange(len(bare))])
        holds = csr_array(
            (np.ones(len(rows)), (rows, columns)), shape=(self.num_items, len(names) + len(bare))
        )
        holds.sort_indices()
        numbers: dict[bytes, int] = {}
        of_items = [
            numbers.setdefault(holds.indices[start:end].tobytes(), len(numbers))
            for start, end in zip(holds.indptr[:-1], holds.indptr[1:], strict=True)
        ]
        first = np.unique(of_items, return_index=True)[1]
        groups = holds[first]
        groups.data[:] = 1.0
        members = csr_array(
            (np.ones(self.num_items), (of_items, np.arange(self.num_items))),
            shape=(len(numbers), self.num_items),
        )
        return members, groups

    @property
    def _by_group(self) -> "csr_array":
        return self._groups[0]

    @property
    def _holds(self) -> "csr_array":
        return self._groups[1]


def degrees_of_freedom(sums: "Array") -> "Array":
    """Return how many degrees of freedom a sum of squares has: 3 (sum S^2)^2 / sum S^4 - 2, 1 at least.

    `sums` has the shape (..., clusters). Of many normal sums of one variance it is about their number less 2.
    """
    import numpy as np

    squares = sums**2
    fourth = (squares**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 3 * squares.sum(axis=-1) ** 2 / fourth - 2
    return np.asarray(np.maximum(np.nan_to_num(found, nan=1.0, posinf=1.0), 1.0))
