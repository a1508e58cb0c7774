"""Which rows are compared: with their baselines, with each other, and in the family that a file declares."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations

from synthbench.base.grouping import grouped
from synthbench.config.coordinates import RowKey

Pair = tuple[RowKey, RowKey]


def pairs_with_baselines(rows: Iterable[RowKey], wanted: Mapping[str, Sequence[str]]) -> tuple[Pair, ...]:
    """Return (row, baseline) pairs.

    The baseline is at the row's point of the grid or, if the baseline has no row there, outside the grid.
    `wanted` maps each baseline to the variants compared with it, () for all.
    """
    points = _points(rows)
    once = {key.variant: key for key in points.get((), ())}
    return tuple(
        (by_name[name], baselines[baseline])
        for keys in points.values()
        for by_name in [{key.variant: key for key in keys}]
        for baselines in [once | by_name]
        for baseline, names in wanted.items()
        for name in names or by_name
        if baseline in baselines and name in by_name and name != baseline
    )


def all_pairs(rows: Iterable[RowKey]) -> tuple[Pair, ...]:
    """Return all pairs of rows at the same point of the grid."""
    return tuple(pair for keys in _points(rows).values() for pair in combinations(keys, 2))


def _points(rows: Iterable[RowKey]) -> Mapping[object, Sequence[RowKey]]:
    return grouped((key.axes, key) for key in rows)


def is_named(pair: Pair, family: Mapping[str, Collection[str]] | None) -> bool:
    """Return whether `family`, in the form of `table.family`, includes (row, baseline); None includes all."""
    if family is None:
        return True
    row, baseline = pair
    names = family.get(baseline.variant)
    return names is not None and (not names or any(_names(name, row) for name in names))


def _names(name: str, row: RowKey) -> bool:
    """Return whether `NAME` or `NAME [AXIS=VALUE, ...]` names this row."""
    if name == row.variant:
        return True
    start, end = f"{row.variant} [", "]"
    if not (name.startswith(start) and name.endswith(end)):
        return False
    wanted = name.removeprefix(start).removesuffix(end).split(", ")
    return set(wanted) <= {f"{axis}={value}" for axis, value in row.axes}
