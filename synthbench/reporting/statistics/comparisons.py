"""Rows against baselines, column by column: by how much, and how sure that is."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from synthbench.reporting.model.table import Column
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.aggregate import RowKey
from synthbench.reporting.statistics.columns import ColumnSource, Runs, column_sources
from synthbench.reporting.statistics.differences import (
    Difference,
    Noise,
    Sample,
    effect_size,
    holm,
    is_paired,
    least_detectable,
    over_seeds,
)

Members = Mapping[RowKey, Runs]
TestSet = tuple[frozenset[tuple[str, str]], str, str]
"""A point of the grid, a test set's name and the evaluator's."""


@dataclass(frozen=True)
class Finding:
    """A difference with its p value adjusted by Holm for all comparisons of the column."""

    difference: Difference
    adjusted_p: float


@dataclass(frozen=True)
class Comparison:
    """One row minus its baseline, in one column; scores in [-1, 1] or [0, 1].

    `over_seeds` holds for other seeds on the same items, `over_items` for other items, too. Each is None
    where nobody knows the noise. With a `refusal` the two were not measured alike, and not compared.
    """

    row: RowKey
    baseline: RowKey
    samples: tuple[Sample, Sample]
    over_seeds: Finding | None = None
    over_items: Finding | None = None
    refusal: str = ""

    @property
    def name(self) -> str:
        """Row and baseline as they are printed: "bm25 − gold (static)"."""
        axes = ", ".join(value for _, value in self.row.axes)
        pair = f"{self.row.variant} − {self.baseline.variant}"
        return f"{pair} ({axes})" if axes else pair

    @property
    def value(self) -> float:
        """The difference of the means."""
        return self.samples[0].mean - self.samples[1].mean

    @property
    def effect_size(self) -> float | None:
        """Hedges' g; None where it is not defined."""
        return effect_size(*self.samples)

    @property
    def is_paired(self) -> bool:
        """Whether seeds were paired."""
        return is_paired(*self.samples)


@dataclass(frozen=True)
class ColumnComparisons:
    """All comparisons of one column, in the order of the table."""

    column: Column
    comparisons: tuple[Comparison, ...]

    @property
    def least_over_seeds(self) -> float | None:
        """The least difference that the seeds let see, in four experiments of five; None if nobody knows."""
        return least_detectable([each.over_seeds.difference for each in self.comparisons if each.over_seeds])

    @property
    def least_over_items(self) -> float | None:
        """The same for other items, too, which is no less than for these."""
        known = [each.over_items.difference for each in self.comparisons if each.over_items]
        found = least_detectable(known)
        return None if found is None else max(found, self.least_over_seeds or 0.0)


def compare(result: ExperimentResult) -> tuple[ColumnComparisons, ...]:
    """Return what the table's options compare, columns without any comparison left out.

    Ceilings are compared with no other row, and rows with baselines at their own point of the grid only.
    """
    options = TableOptions.model_validate(result.table)
    groups: dict[aggregate.Place, dict[RowKey, Runs]] = {}
    for key, runs in aggregate.rows(result, options.across).items():
        if key.variant not in options.ceiling:
            groups.setdefault(key.axes, {})[key] = runs
    pairs = [pair for members in groups.values() for pair in _pairs(members, _wanted(result, options))]
    members = {key: runs for group in groups.values() for key, runs in group.items()}
    items = ItemErrors(result)
    found = (
        ColumnComparisons(source.column, _adjusted(_comparisons(source, pairs, members, items)))
        for source in column_sources(result, options)
    )
    return tuple(each for each in found if each.comparisons)


def _wanted(result: ExperimentResult, options: TableOptions) -> Mapping[str, Sequence[str]]:
    """Return the baselines, and the rows that are compared with each; () for all."""
    if options.compare_to is not None:
        return options.compare_to
    return {result.baseline: ()} if result.baseline else {}


def _pairs(rows: Members, wanted: Mapping[str, Sequence[str]]) -> Iterator[tuple[RowKey, RowKey]]:
    """Yield rows with their baselines, among rows at one point of the grid."""
    by_name = {key.variant: key for key in rows}
    for baseline, names in wanted.items():
        for name in names or by_name:
            if baseline in by_name and name in by_name and name != baseline:
                yield by_name[name], by_name[baseline]


def _comparisons(
    source: ColumnSource, pairs: Sequence[tuple[RowKey, RowKey]], members: Members, items: "ItemErrors"
) -> Iterator[Comparison]:
    for row, baseline in pairs:
        ours, theirs = source.sample(members[row]), source.sample(members[baseline])
        if ours is None or theirs is None:
            continue
        compared = Comparison(row, baseline, (ours, theirs))
        if not source.is_even((*members[row], *members[baseline])):
            yield replace(compared, refusal="not scored alike")
        elif not (ours.is_finite and theirs.is_finite):
            yield replace(compared, refusal="a score is no number")
        else:
            yield _compared(compared, items.noise(source, row, baseline))


def _compared(comparison: Comparison, items: Sequence[Noise] | None) -> Comparison:
    seeds = over_seeds(*comparison.samples)
    if seeds is None:
        return comparison
    both = None if items is None else seeds.with_items(items)
    return replace(
        comparison,
        # Where no seed changes anything, only the items are left to tell noise from.
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


class ItemErrors:
    """What the choice of test items adds to the noise of each comparison of a result."""

    def __init__(self, result: ExperimentResult) -> None:
        self._known: dict[TestSet, dict[frozenset[str], tuple[float, int]]] = {}
        for each in result.item_noise:
            of_pairs = self._known.setdefault((frozenset(each.axes.items()), each.task, each.evaluator), {})
            of_pairs |= {pair: (error, each.num_items) for pair, error in each.by_pair().items()}

    def noise(self, source: ColumnSource, row: RowKey, other: RowKey) -> tuple[Noise, ...] | None:
        """Return the items' noise, of an average that of each of its test sets; None where nobody knows it.

        `row` and `other` stand at one point of the grid. An average's test sets are taken as independent. Of
        one that it holds several times, at several places or by several evaluators, the items are the same:
        their errors are taken to go together wholly, which is the most that they can.
        """
        pair = frozenset((row.variant, other.variant))
        found: dict[str, list[tuple[float, int]]] = {}
        for one in source.measurements:
            axes = frozenset((*row.axes, *one.place))
            known = self._known.get((axes, one.task, one.evaluator), {}).get(pair)
            if known is None:
                return None
            found.setdefault(one.task, []).append(known)
        return tuple(_going_together(errors, len(source.measurements)) for errors in found.values())


def _going_together(errors: Sequence[tuple[float, int]], num_averaged: int) -> Noise:
    """Return the noise of the scores of one test set, given by squared error and items, in an average."""
    squared_errors, num_items = zip(*errors, strict=True)
    # The only one of its test set keeps its digits.
    whole = squared_errors[0] if len(errors) == 1 else sum(map(math.sqrt, squared_errors)) ** 2
    return Noise(whole / num_averaged**2, min(num_items) - 1)
