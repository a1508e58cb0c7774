"""Test items that share sentences: the variance of a sum over them (Aronow, Samii and Assenova 2015).

Items that hold the same sentence err together, so they tell less than the same number of independent items.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Array = NDArray[np.float64]

ENTRIES = 4_000_000
"""Most pairs of item groups in memory at a time; a pair counts once for each sentence that it shares."""


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
        """Return the items of several test sets in sequence; equal integers name the same sentence."""
        import numpy as np

        starts = np.cumsum([0, *(each.num_items for each in sets)])
        items = [each.items + start for each, start in zip(sets, starts, strict=False)]
        return cls(np.concatenate(items), np.concatenate([each.sentences for each in sets]), int(starts[-1]))

    def covariances(self, values: "Array") -> "Array":
        """Return x'Ay for all lines x and y of `values`; A is 1 where two items share a sentence.

        `values` has the shape (lines, items), the result (lines, lines).
        """
        import numpy as np

        grouped = self._by_group @ values.T
        found = np.zeros((len(values), len(values)))
        counts = np.cumsum(self._holds @ self._holds.sum(axis=0))
        starts = np.unique(counts // ENTRIES, return_index=True)[1]
        for start, end in pairwise([*starts.tolist(), len(grouped)]):
            shared = self._holds[start:end] @ self._holds.T
            shared.data[:] = 1.0
            found += grouped[start:end].T @ (shared @ grouped)
        return found

    def sums_by_sentence(self, values: "Array") -> "Array":
        """Return for each sentence the sum over its items: (lines, items) to (lines, sentences).

        Sentences with exactly the same items count as one, so that a query's many passages add no clusters.
        An item without a sentence counts as a sentence of its own.
        """
        import numpy as np

        return np.asarray((self._holds.T @ (self._by_group @ values.T)).T)

    def sums_by_component(self, values: "Array") -> "Array":
        """Return for each component the sum over its items: (lines, items) to (lines, components).

        Two items are in one component if they share a sentence, or if a chain of such items connects them. An
        item without a sentence is a component of its own.
        """
        import numpy as np

        return np.asarray((self._components @ (self._by_group @ values.T)).T)

    @cached_property
    def _components(self) -> "csr_array":
        """The groups of items (`_groups`) in each component: a 0/1 matrix of shape (components, groups)."""
        import numpy as np
        from scipy.sparse import block_array
        from scipy.sparse.csgraph import connected_components

        graph = block_array([[None, self._holds], [self._holds.T, None]])
        number, labels = connected_components(graph, directed=False)
        groups = self._holds.shape[0]
        return _ones(labels[:groups], np.arange(groups), (number, groups))

    @cached_property
    def _groups(self) -> "tuple[csr_array, csr_array]":
        """Groups of items with the same sentences: 0/1 matrices (groups, items) and (groups, sentences).

        The items of a group share sentences with the same items, so their values can be summed first.
        """
        import numpy as np

        names, columns = np.unique(self.sentences, return_inverse=True)
        bare = np.setdiff1d(np.arange(self.num_items), self.items)
        rows = np.concatenate([self.items, bare])
        columns = np.concatenate([columns, len(names) + np.arange(len(bare))])
        holds = _ones(rows, columns, (self.num_items, len(names) + len(bare)))
        held_by = holds.T.tocsr()
        holds = held_by[np.unique(_kinds(held_by), return_index=True)[1]].T.tocsr()
        of_items = _kinds(holds)
        first = np.unique(of_items, return_index=True)[1]
        members = _ones(of_items, np.arange(self.num_items), (len(first), self.num_items))
        return members, holds[first]

    @property
    def _by_group(self) -> "csr_array":
        return self._groups[0]

    @property
    def _holds(self) -> "csr_array":
        return self._groups[1]


def _ones(rows: "NDArray[np.int64]", columns: "NDArray[np.int64]", shape: tuple[int, int]) -> "csr_array":
    """Return a matrix of ones at these rows and columns, however often each occurs."""
    import numpy as np
    from scipy.sparse import csr_array

    found = csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    found.data[:] = 1.0
    return found


def _kinds(matrix: "csr_array") -> "NDArray[np.int64]":
    """Return a number for each row, the same for rows with ones in the same columns.

    The numbers are 0, 1, ... in the order of first appearance.
    """
    import numpy as np

    matrix.sort_indices()
    numbers: dict[bytes, int] = {}
    return np.array(
        [
            numbers.setdefault(matrix.indices[start:end].tobytes(), len(numbers))
            for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
        ],
        dtype=np.int64,
    )


def degrees_of_freedom(sums: "Array") -> "Array":
    """Return the degrees of freedom of the sum of S^2: 3 (sum S^2)^2 / sum S^4 - 2, at least 1.

    `sums` are the S, of shape (..., clusters). For n normal S of equal variance, the result is about n - 2.
    """
    import numpy as np

    squares = sums**2
    fourth = (squares**2).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 3 * squares.sum(axis=-1) ** 2 / fourth - 2
    return np.asarray(np.maximum(np.nan_to_num(found, nan=1.0, posinf=1.0), 1.0))
