"""The k greatest scores of each row of a matrix, found without sorting whole rows."""

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Number = TypeVar("Number", bound="np.floating[Any]")

GROUPS = 128  # maxima per row, at least, from which the k-th best score is bounded


def greatest(scores: "NDArray[Number]", k: int) -> "tuple[NDArray[np.intp], NDArray[Number]]":
    """Return columns and values of each row's k greatest scores; of equal scores, the lower column first."""
    import numpy as np

    bound = lower_bound(scores, k)
    rows, columns = np.divmod(np.flatnonzero(scores >= bound), scores.shape[1])
    values = scores[rows, columns]
    at_bound = values == bound[rows, 0]
    # If few sentences share a word, thousands have equal scores: drop those that can't be among the k.
    needed = ~at_bound | (_count_in_row(at_bound, rows) <= k)
    return first_of_each(rows[needed], columns[needed], values[needed], k)


def first_of_each(
    rows: "NDArray[np.intp]", columns: "NDArray[np.intp]", values: "NDArray[Number]", k: int
) -> "tuple[NDArray[np.intp], NDArray[Number]]":
    """Return columns and values of the k greatest candidates of each row; ties go to the lower column.

    `rows` is sorted and holds every row number at least k times.
    """
    import numpy as np

    order = np.lexsort((columns, -values, rows))
    chosen = order[_starts(rows)[:, None] + np.arange(k)]
    return columns[chosen], values[chosen]


def _count_in_row(marked: "NDArray[np.bool_]", rows: "NDArray[np.intp]") -> "NDArray[np.intp]":
    """Return, for each element, the number of marked elements in its row up to this element, included."""
    import numpy as np

    counted: NDArray[np.intp] = np.concatenate([[0], np.cumsum(marked)])
    return counted[1:] - counted[_starts(rows)][rows]


def _starts(rows: "NDArray[np.intp]") -> "NDArray[np.intp]":
    """Return the first position of each row number in `rows`, sorted numbers from 0 without gaps."""
    import numpy as np

    starts: NDArray[np.intp] = np.searchsorted(rows, np.arange(rows[-1] + 1))
    return starts


def lower_bound(scores: "NDArray[Number]", k: int) -> "NDArray[Number]":
    """Return a close lower bound on each row's k-th greatest score, shape (rows, 1).

    Only a few scores of a row exceed it. The bound is one of the scores: the k-th greatest of the maxima of
    at least k disjoint groups of columns.
    """
    import numpy as np

    rows, width = scores.shape
    num_groups = min(max(GROUPS, 4 * k), width)
    depth = width // num_groups
    maxima = scores[:, : depth * num_groups].reshape(rows, depth, num_groups).max(axis=1)
    bound: NDArray[Number] = np.partition(maxima, num_groups - k, axis=1)[:, num_groups - k, None]
    return bound
