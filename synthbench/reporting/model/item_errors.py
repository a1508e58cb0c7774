"""The noise that the choice of test items adds to the difference between two rows."""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.aggregate import ColumnSource, Measurement
from synthbench.statistics.differences import Difference, Noise
from synthbench.statistics.item_noise import ItemNoise, PairErrors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Axes = frozenset[tuple[str, str]]
Pair = tuple[RowKey, RowKey]
PairInColumn = tuple[Axes, frozenset[tuple[str, str, Axes]], frozenset[str]]
"""Two rows in one column: the rows' coordinates, the column's measurements, both variants."""


class ItemErrors:
    """Looks up the noise that the choice of test items adds to each comparison of a result.

    Rows are compared at the same point of the grid, or with a row that is the same at all points.
    """

    def __init__(self, known: Sequence[ItemNoise], others: Set[PairInColumn] = frozenset()) -> None:
        self._others = others
        self._known = {
            (_axes(each.axes), _measured(each), pair): errors
            for each in known
            for pair, errors in each.by_pair().items()
        }

    def have_other_items(self, source: ColumnSource, row: RowKey, other: RowKey) -> bool:
        """Return whether the rows are known to have different items in a test set of the column."""
        pair = frozenset((row.variant, other.variant))
        point = _point(row, other)
        return any(_of_set(point, one, pair) in self._others for one in source.measurements)

    def covariances(self, source: ColumnSource, pairs: Sequence[Pair]) -> "NDArray[np.float64] | None":
        """Return the covariance matrix (pairs, pairs) of differences due to the items; None if unknown.

        Each pair is (row, other), all at one point of the grid. The diagonal has the squared errors of
        `errors`. The matrix is positive semidefinite.
        """
        import numpy as np

        rows = list(dict.fromkeys(row for pair in pairs for row in pair))
        errors = np.zeros((len(rows), len(rows)))
        for number, row in enumerate(rows):
            for index, other in enumerate(rows[:number]):
                found = self.errors(source, row, other)
                if found is None:
                    return None
                errors[number, index] = errors[index, number] = found.squared_error
        first, second = np.array([[rows.index(row) for row in pair] for pair in pairs]).reshape(-1, 2).T
        crossed = errors[first[:, None], second]
        same = errors[first[:, None], first] + errors[second[:, None], second]
        return _semidefinite((crossed + crossed.T - same) / 2)

    def errors(self, source: ColumnSource, row: RowKey, other: RowKey) -> PairErrors | None:
        """Return the item noise of the difference between two rows in a column; None if it is unknown."""
        pair = frozenset((row.variant, other.variant))
        point = _point(row, other)
        over = frozenset((one.task, one.evaluator, _axes(one.coordinates)) for one in source.measurements)
        if len(source.measurements) > 1 and (known := self._known.get((_axes(point), over, pair))):
            return known
        found: dict[str, list[PairErrors]] = {}
        for one in source.measurements:
            known = self._known.get(_of_set(point, one, pair))
            if known is None:
                return None
            found.setdefault(one.task, []).append(known)
        if len(source.measurements) == 1:
            return known
        return _independent(list(found.values()), len(source.measurements))


def independent_items(known: Sequence[ItemNoise]) -> Iterator[str]:
    """Yield notes on test items that count as independent, since their sentences are unknown."""
    if any(each.is_of_earlier_version for each in known):
        yield "Test items count as independent, since an earlier version of synthbench collected the results."
    elif tasks := dict.fromkeys(each.task for each in known if each.lacks_sentences and each.task):
        yield f"Test items count as independent, since their sentences are unknown: {', '.join(tasks)}."


def _point(row: RowKey, other: RowKey) -> Mapping[str, str]:
    """Return the coordinates of `row`, else of `other`: a row that is the same at all points has none."""
    return dict(row.axes or other.axes)


def _axes(axes: Mapping[str, str] | Sequence[tuple[str, str]]) -> Axes:
    return frozenset(dict(axes).items())


def _of_set(point: Mapping[str, str], one: Measurement, pair: frozenset[str]) -> PairInColumn:
    return _axes({**point, **dict(one.coordinates)}), one_set(one.task, one.evaluator), pair


def _measured(noise: ItemNoise) -> frozenset[tuple[str, str, Axes]]:
    if noise.averaged:
        return frozenset((each.task, each.evaluator, _axes(each.axes)) for each in noise.averaged)
    return one_set(noise.task, noise.evaluator)


def one_set(task: str, evaluator: str) -> frozenset[tuple[str, str, Axes]]:
    """Return {(test set, evaluator, no axes)}: the key of the scores of a single test set."""
    return frozenset({(task, evaluator, _axes(()))})


def _independent(sets: Sequence[Sequence[PairErrors]], num_averaged: int) -> PairErrors:
    """Return the errors of an average from the errors of its test sets, which count as independent.

    Each of `sets` holds the errors of one test set: several if the average contains the set at several
    coordinates or with several evaluators. These count as perfectly correlated, the worst case.
    """
    found = []
    for index in (0, 2):
        parts = [
            Noise(
                sum(math.sqrt(each[index]) for each in errors) ** 2 / num_averaged**2,
                min(each[index + 1] for each in errors),
            )
            for errors in sets
        ]
        whole = Difference(0.0, tuple(parts)).whole
        found += [whole.squared_error, whole.degrees_of_freedom]
    return PairErrors(*found)


def _semidefinite(matrix: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Return the nearest matrix without negative eigenvalues, scaled to the same diagonal.

    Each error is the larger of two estimates, so the covariances computed from them may be inconsistent.
    """
    import numpy as np

    values, vectors = np.linalg.eigh(matrix)
    clipped = (vectors * np.maximum(values, 0.0)) @ vectors.T
    ours, theirs = np.diagonal(clipped), np.diagonal(matrix)
    scale = np.sqrt(np.divide(theirs, ours, out=np.zeros_like(theirs), where=ours > 0.0))
    return np.asarray(clipped * scale[:, None] * scale)
