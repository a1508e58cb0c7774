"""Compare rows with baselines in each column: difference, 95 % interval, p value."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from synthbench.reporting.model.aggregate import ColumnSource, Runs
from synthbench.reporting.model.item_errors import ItemErrors
from synthbench.reporting.model.table import Column, RowKey
from synthbench.statistics.differences import (
    Difference,
    Noise,
    SeedScores,
    effect_size,
    holm,
    is_paired,
    least_detectable,
    over_seeds,
)

if TYPE_CHECKING:
    from synthbench.config.coordinates import Coordinates

Rows = Mapping[RowKey, Runs]


@dataclass(frozen=True)
class Finding:
    """A difference with its p value, Holm-adjusted over all comparisons of the column."""

    difference: Difference
    adjusted_p: float


@dataclass(frozen=True)
class Comparison:
    """One row minus its baseline in one column; scores in [-1, 1] or [0, 1].

    `over_seeds` generalises to other seeds on the same test items, `over_items` also to other test items;
    None if that noise is unknown. `refusal` says why the two can't be compared.
    """

    row: RowKey
    baseline: RowKey
    samples: tuple[SeedScores, SeedScores]
    over_seeds: Finding | None = None
    over_items: Finding | None = None
    refusal: str = ""

    @property
    def name(self) -> str:
        """Row and baseline: "bm25 − gold (static)"."""
        return RowKey(f"{self.row.variant} − {self.baseline.variant}", self.row.axes).title

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.samples[0].mean - self.samples[1].mean

    @property
    def effect_size(self) -> float | None:
        """Hedges' g; None if undefined."""
        return effect_size(*self.samples)

    @property
    def is_paired(self) -> bool:
        """Whether the test pairs the rows by seed."""
        return is_paired(*self.samples)


@dataclass(frozen=True)
class ColumnComparisons:
    """All comparisons of one column, in the order of the table."""

    column: Column
    comparisons: tuple[Comparison, ...]

    @cached_property
    def least_over_seeds(self) -> float | None:
        """The minimum detectable difference over seeds; None if their noise is unknown."""
        return least_detectable([each.over_seeds.difference for each in self.comparisons if each.over_seeds])

    @cached_property
    def least_over_items(self) -> float | None:
        """The minimum detectable difference over seeds and test items, never below that over seeds."""
        known = [each.over_items.difference for each in self.comparisons if each.over_items]
        found = least_detectable(known)
        return None if found is None else max(found, self.least_over_seeds or 0.0)


def compare(
    rows: Rows, columns: Sequence[ColumnSource], wanted: Mapping[str, Sequence[str]], items: ItemErrors
) -> tuple[ColumnComparisons, ...]:
    """Return the comparisons of each column, with p values adjusted for their number.

    A row's baselines are those at its own point of the grid, and baselines shown once for all points.
    `wanted` maps each baseline to the variants compared with it, () for all.
    """
    points: dict[Coordinates, dict[RowKey, Runs]] = {}
    for key, runs in rows.items():
        points.setdefault(key.axes, {})[key] = runs
    once = points.get((), {})
    pairs = [pair for of_point in points.values() for pair in _pairs(of_point, once, wanted)]
    found = (
        ColumnComparisons(source.column, _adjusted(_comparisons(source, pairs, rows, items)))
        for source in columns
    )
    return tuple(each for each in found if each.comparisons)


def _pairs(rows: Rows, once: Rows, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[RowKey, RowKey]]:
    """Yield each row with its baselines: at the same point of the grid, or shown `once` for all points."""
    by_name = {key.variant: key for key in rows}
    baselines = {key.variant: key for key in once} | by_name
    for baseline, names in wanted.items():
        for name in names or by_name:
            if baseline in baselines and name in by_name and name != baseline:
                yield by_name[name], baselines[baseline]


def _comparisons(
    source: ColumnSource, pairs: Sequence[tuple[RowKey, RowKey]], rows: Rows, items: ItemErrors
) -> Iterator[Comparison]:
    for row, baseline in pairs:
        ours, theirs = source.sample(rows[row]), source.sample(rows[baseline])
        if ours is None or theirs is None:
            continue
        compared = Comparison(row, baseline, (ours, theirs))
        if not source.is_even((*rows[row], *rows[baseline])) or items.have_other_items(source, row, baseline):
            yield replace(compared, refusal="scored on different items or by different metrics")
        elif not (ours.is_finite and theirs.is_finite):
            yield replace(compared, refusal="a score is NaN")
        else:
            yield _compared(compared, items.noise(source, row, baseline))


def _compared(comparison: Comparison, items: Noise | None) -> Comparison:
    seeds = over_seeds(*comparison.samples, is_paired=comparison.is_paired)
    if seeds is None:
        return comparison
    both = None if items is None else seeds.with_items([items])
    return replace(
        comparison,
        # If seeds do not change a score, test items are the only source of noise.
        over_seeds=Finding(seeds, seeds.p_value) if seeds.noise else None,
        over_items=None if both is None else Finding(both, both.p_value),
    )


def _adjusted(comparisons: Iterator[Comparison]) -> tuple[Comparison, ...]:
    listed = list(comparisons)
    seeds = _holm([each.over_seeds for each in listed])
    items = _holm([each.over_items for each in listed])
    return tuple(
        replace(each, over_seeds=by_seeds, over_items=by_items)
        for each, by_seeds, by_items in zip(listed, seeds, items, strict=True)
    )


def _holm(findings: Sequence[Finding | None]) -> list[Finding | None]:
    adjusted = iter(holm([each.difference.p_value for each in findings if each is not None]))
    return [None if each is None else replace(each, adjusted_p=next(adjusted)) for each in findings]
