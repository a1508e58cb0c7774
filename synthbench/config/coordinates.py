"""The points of an experiment's grid, and the column names of test sets at these points."""

from collections.abc import Mapping, Sequence

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
