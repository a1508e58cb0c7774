"""The noise that the choice of test items adds to the difference between two rows."""

import math
from collections.abc import Iterator, Sequence, Set

from synthbench.reporting.model.aggregate import ColumnSource
from synthbench.reporting.model.table import RowKey
from synthbench.statistics.differences import Noise
from synthbench.statistics.item_noise import ItemNoise

PairOnTask = tuple[frozenset[tuple[str, str]], str, str, frozenset[str]]
"""Two rows on one test set: grid coordinates, test set, evaluator, both variants."""


class ItemErrors:
    """Looks up the noise that the choice of test items adds to each comparison of a result."""

    def __init__(self, known: Sequence[ItemNoise], others: Set[PairOnTask] = frozenset()) -> None:
        self._others = others
        self._known = {
            (frozenset(each.axes.items()), each.task, each.evaluator, pair): (error, each.num_items)
            for each in known
            for pair, error in each.by_pair().items()
        }

    def have_other_items(self, source: ColumnSource, row: RowKey, other: RowKey) -> bool:
        """Return whether the rows are known to have different items in a test set of the column."""
        return any(key in self._others for key in _keys(source, row, other))

    def noise(self, source: ColumnSource, row: RowKey, other: RowKey) -> tuple[Noise, ...] | None:
        """Return the noise of each test set of the column; None if any is unknown.

        `row` and `other` have the same coordinates. Test sets of an average are independent. If an average
        has a test set several times (at several coordinates or by several evaluators), the items are the
        same, so their errors are taken as perfectly correlated, the worst case.
        """
        found: dict[str, list[tuple[float, int]]] = {}
        for key in _keys(source, row, other):
            known = self._known.get(key)
            if known is None:
                return None
            _, task, *_ = key
            found.setdefault(task, []).append(known)
        return tuple(_correlated(errors, len(source.measurements)) for errors in found.values())


def _keys(source: ColumnSource, row: RowKey, other: RowKey) -> Iterator[PairOnTask]:
    """Yield the key of a pair of rows for each test set of a column."""
    pair = frozenset((row.variant, other.variant))
    for one in source.measurements:
        yield frozenset((*row.axes, *one.coordinates)), one.task, one.evaluator, pair


def _correlated(errors: Sequence[tuple[float, int]], num_averaged: int) -> Noise:
    """Return a test set's noise in an average, from the (squared error, number of items) of its scores."""
    squared_errors, num_items = zip(*errors, strict=True)
    # A single error is not squared and rooted, to keep its digits.
    whole = squared_errors[0] if len(errors) == 1 else sum(map(math.sqrt, squared_errors)) ** 2
    return Noise(whole / num_averaged**2, min(num_items) - 1)
