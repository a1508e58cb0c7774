"""The points of an experiment's grid, the rows there, and the column names of test sets there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Coordinates = tuple[tuple[str, str], ...]
"""A point of the grid: (axis, value) pairs."""


def values_text(coordinates: Coordinates) -> str:
    """Return the values as text, such as "static, 1000"."""
    return ", ".join(value for _, value in coordinates)


def coordinates_of(axes: Mapping[str, str], across: Sequence[str]) -> Coordinates:
    """Return a run's axis values for the axes in `across`, in that order."""
    return tuple((axis, axes[axis]) for axis in across if axis in axes)


def column_names(coordinates: Coordinates, task: str) -> tuple[str, ...]:
    """Return the possible names of a test set's column, shortest first: task, coordinates, both."""
    where = values_text(coordinates)
    return (task, where, f"{where}: {task}") if coordinates else (task,)


@dataclass(frozen=True, order=True)
class RowKey:
    """A row's identity: its variant and its coordinates on the grid."""

    variant: str
    axes: Coordinates

    @property
    def label(self) -> str:
        """The row as `report --trace` takes it: "bm25 [base=static]"."""
        values = ", ".join(f"{axis}={value}" for axis, value in self.axes)
        return f"{self.variant} [{values}]" if values else self.variant

    @property
    def title(self) -> str:
        """The row as notes and legends call it: "bm25 (static)"."""
        return f"{self.variant} ({values_text(self.axes)})" if self.axes else self.variant

    @property
    def csv_axes(self) -> str:
        """The coordinates in a cell of a CSV file: "base=static; size=1000"."""
        return "; ".join(f"{axis}={value}" for axis, value in self.axes)


def row_at(variant: str, axes: Mapping[str, str], across: Sequence[str] = ()) -> RowKey:
    """Return a variant's row at these axis values; values of the axes in `across` are columns, not rows."""
    return RowKey(variant, tuple(each for each in axes.items() if each[0] not in across))
