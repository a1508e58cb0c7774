"""Compare rows in each column: differences and their noise, over seeds and over test items."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from synthbench.config.comparing import Pair
from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.aggregate import ColumnSource, Runs
from synthbench.reporting.model.item_errors import ItemErrors
from synthbench.reporting.model.shared_draws import share_draws
from synthbench.reporting.model.table import Column
from synthbench.statistics.differences import (
    Difference,
    Noise,
    SeedScores,
    effect_size,
    least_detectable,
    over_seeds,
)
from synthbench.statistics.families import Simultaneous

Rows = Mapping[RowKey, Runs]
Family = Literal["primary", "below", "best", ""]
"""The family of a comparison: the primary ones, those of single test sets below a primary average, or all
pairs for the best row; "" is exploratory."""


@dataclass(frozen=True)
class Comparison:
    """One row minus its baseline in one column; scores in [-1, 1] or [0, 1].

    `over_seeds` generalises to other seeds on the same test items, `over_items` also to other test items;
    None if that noise is unknown. `by_components` is `over_items` if the errors of all items linked by
    a chain of shared sentences depend on each other. `refusal` says why the rows can't be compared. `finding`
    is the difference with p value and interval adjusted for the family; None if the comparison is not tested.
    """

    row: RowKey
    baseline: RowKey
    samples: tuple[SeedScores, SeedScores]
    is_paired: bool = False
    over_seeds: Difference | None = None
    over_items: Difference | None = None
    by_components: Difference | None = None
    refusal: str = ""
    family: Family = ""
    finding: Simultaneous | None = None

    @property
    def pair(self) -> Pair:
        """(row, baseline)."""
        return self.row, self.baseline

    @property
    def name(self) -> str:
        """Row and baseline: "bm25 − gold (static)"."""
        return RowKey(f"{self.row.variant} − {self.baseline.variant}", self.row.axes).title

    @property
    def about(self) -> str:
        """Row and baseline in words: "bm25 against gold (static)"."""
        return RowKey(f"{self.row.variant} against {self.baseline.variant}", self.row.axes).title

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.samples[0].mean - self.samples[1].mean

    @property
    def effect_size(self) -> float | None:
        """Hedges' g; None if undefined."""
        return effect_size(*self.samples)

    @property
    def evidence(self) -> Difference | None:
        """The difference with all known noise: over seeds and test items, else over seeds alone."""
        return self.over_items or self.over_seeds

    @property
    def direction(self) -> int:
        """The sign of the difference if it is significant in its family (a star in all formats), else 0."""
        if self.finding is None or not self.finding.is_real:
            return 0
        return 1 if self.finding.value > 0 else -1


@dataclass(frozen=True)
class ColumnComparisons:
    """All comparisons of one column, in the order of the table."""

    source: ColumnSource
    comparisons: tuple[Comparison, ...]

    @property
    def column(self) -> Column:
        """The column."""
        return self.source.column

    @cached_property
    def least_over_seeds(self) -> float | None:
        """The minimum detectable difference over seeds; None if the noise over seeds is unknown."""
        return least_detectable([each.over_seeds for each in self.comparisons if each.over_seeds])

    @cached_property
    def least_over_items(self) -> float | None:
        """The minimum detectable difference over seeds and test items, at least `least_over_seeds`.

        None if the noise over test items is unknown.
        """
        found = least_detectable([each.over_items for each in self.comparisons if each.over_items])
        return None if found is None else max(found, self.least_over_seeds or 0.0)


def compare(
    rows: Rows, columns: Sequence[ColumnSource], pairs: Sequence[Pair], items: ItemErrors
) -> tuple[ColumnComparisons, ...]:
    """Return the comparisons of each column that has any; all are exploratory as yet."""
    found = (ColumnComparisons(source, tuple(_comparisons(source, pairs, rows, items))) for source in columns)
    return tuple(each for each in found if each.comparisons)


def _comparisons(
    source: ColumnSource, pairs: Sequence[Pair], rows: Rows, items: ItemErrors
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
            are_paired = set(ours.seeds) == set(theirs.seeds) and share_draws(rows[row], rows[baseline])
            yield _with_noise(replace(compared, is_paired=are_paired), source, items)


def _with_noise(comparison: Comparison, source: ColumnSource, items: ItemErrors) -> Comparison:
    seeds = over_seeds(*comparison.samples, is_paired=comparison.is_paired)
    if seeds is None:
        return comparison
    found = items.errors(source, *comparison.pair)
    return replace(
        comparison,
        # If seeds do not change a score, test items are the only source of noise.
        over_seeds=seeds if seeds.noise else None,
        over_items=None if found is None else seeds.with_items([Noise(*found[:2])]),
        by_components=None if found is None else seeds.with_items([Noise(*found[2:])]),
    )
