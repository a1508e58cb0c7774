"""Decide, once for all formats, which comparisons are primary and which differences are significant."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from synthbench.base.grouping import grouped
from synthbench.config.comparing import Pair, is_named
from synthbench.config.coordinates import Coordinates, RowKey
from synthbench.config.table_options import TableOptions
from synthbench.reporting.model.aggregate import ColumnSource
from synthbench.reporting.model.comparisons import ColumnComparisons, Comparison, Family
from synthbench.reporting.model.item_errors import ItemErrors
from synthbench.statistics.families import Simultaneous, simultaneous

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

_Place = tuple[ColumnSource, Pair]


@dataclass(frozen=True)
class TestedFamily:
    """A family of comparisons: how many were tested together, and whether their correlations are known."""

    __test__ = False

    number: int
    is_max_t: bool


@dataclass(frozen=True)
class Decisions:
    """The comparisons of rows with baselines (`columns`), each with its family and test result.

    `best` compares all pairs of rows, for `table.best`. `primary`, `below` and `pairs` (for `best`) say how
    many comparisons of each family were tested together.
    """

    columns: tuple[ColumnComparisons, ...]
    primary: TestedFamily
    below: TestedFamily
    best: tuple[ColumnComparisons, ...] = ()
    pairs: TestedFamily = TestedFamily(0, is_max_t=True)

    @property
    def has_tests(self) -> bool:
        """Whether anything is tested."""
        return bool(self.primary.number or self.pairs.number)

    def of(self, family: Family) -> Iterator[tuple[ColumnSource, Comparison]]:
        """Yield (column, comparison) for all comparisons of a family, tested or not."""
        for column in self.best if family == "best" else self.columns:
            yield from ((column.source, each) for each in column.comparisons if each.family == family)

    def is_bold(self, row: RowKey, source: ColumnSource) -> bool:
        """Return whether the row is significantly above a baseline in a primary comparison of this column.

        The row's mean must also reach the mean of every baseline at the same point of the grid: a row that
        beats its own control but trails gold pairs alone is not worth choosing.
        """
        beside = [
            each for column, each in self.of("primary") if column == source and each.row.axes == row.axes
        ]
        own = [each for each in beside if each.row == row]
        baselines = [each.samples[1].mean for each in beside if not each.refusal]
        return any(each.direction > 0 for each in own) and own[0].samples[0].mean >= max(baselines)


def primary_columns(columns: Sequence[ColumnSource], options: TableOptions) -> tuple[ColumnSource, ...]:
    """Return the columns that `table.primary` names. Default: the averages, else all columns."""
    if options.primary is not None:
        return tuple(each for each in columns if each.names & set(options.primary))
    return tuple(each for each in columns if each.column.is_average) or tuple(columns)


def decide(
    compared: Sequence[ColumnComparisons],
    pairs: Sequence[ColumnComparisons],
    columns: Sequence[ColumnSource],
    options: TableOptions,
    items: ItemErrors,
) -> Decisions:
    """Assign comparisons to families and test each family; `pairs` has all pairs of rows, for the best row.

    The family "below" has the comparisons on single test sets that primary averages include. They are tested
    together; a finding is kept only if the same rows differ significantly in a primary average that includes
    the test set.
    """
    primary = primary_columns(columns, options)
    averages = {each: {part.measurements[0] for part in each.parts} for each in primary if each.parts}
    below = [
        each
        for each in columns
        if each not in primary
        and not each.column.is_average
        and any(each.measurements[0] in parts for parts in averages.values())
    ]

    def family_of(source: ColumnSource) -> Family:
        return "primary" if source in primary else "below" if source in below else ""

    in_families = [_in_family(each, family_of(each.source), options) for each in compared]
    tested, of_primary = _findings(in_families, "primary", items)
    lower, of_below = _findings(in_families, "below", items)

    def has_passed(place: _Place) -> bool:
        """Return whether the comparison is significant on a primary average that includes its test set."""
        source, pair = place
        return any(
            source.measurements[0] in parts and (found := tested.get((average, pair))) and found.is_real
            for average, parts in averages.items()
        )

    findings = {**tested} | {place: found for place, found in lower.items() if has_passed(place)}
    all_pairs = [_in_family(each, "best", options) for each in pairs]
    of_pairs, best = _findings(all_pairs, "best", items)
    return Decisions(
        _with_findings(in_families, findings), of_primary, of_below, _with_findings(all_pairs, of_pairs), best
    )


def best_rows(decisions: Decisions) -> Iterator[tuple[ColumnSource, Coordinates, RowKey | None]]:
    """Yield (column, point of the grid, best row) if `table.best` asks for the best row.

    The best row is significantly above every other row at its point; None if no row is. Rows outside the
    grid are compared with each other only.
    """
    for column in decisions.best:
        points = grouped((each.row.axes, each) for each in column.comparisons)
        for compared in points.values():
            rows = dict.fromkeys(row for each in compared for row in each.pair)
            best = (row for row in rows if all(_is_above(row, each) for each in compared if row in each.pair))
            yield column.source, compared[0].row.axes, next(best, None)


def _is_above(row: RowKey, comparison: Comparison) -> bool:
    return comparison.direction == (1 if row == comparison.row else -1)


def _in_family(column: ColumnComparisons, family: Family, options: TableOptions) -> ColumnComparisons:
    """Put a column's comparisons in a family; those that `table.family` does not name become exploratory."""
    return replace(
        column,
        comparisons=tuple(
            replace(each, family=family if family == "best" or is_named(each.pair, options.family) else "")
            for each in column.comparisons
        ),
    )


def _with_findings(
    columns: Sequence[ColumnComparisons], findings: Mapping[_Place, Simultaneous]
) -> tuple[ColumnComparisons, ...]:
    return tuple(
        replace(
            column,
            comparisons=tuple(
                replace(each, finding=findings.get((column.source, each.pair))) for each in column.comparisons
            ),
        )
        for column in columns
    )


def _findings(
    columns: Sequence[ColumnComparisons], family: Family, items: ItemErrors
) -> tuple[Mapping[_Place, Simultaneous], TestedFamily]:
    """Return the findings of a family's comparisons with known noise, and how they were tested.

    Correlations are known within a block (a column at one point of the grid); blocks count as independent.
    """
    blocks: dict[tuple[ColumnSource, object], list[Comparison]] = {}
    for column in columns:
        for each in column.comparisons:
            if each.family == family and each.evidence is not None:
                blocks.setdefault((column.source, each.row.axes), []).append(each)
    matrices = [_correlations(source, block, items) for (source, _), block in blocks.items()]
    known = [matrix for matrix in matrices if matrix is not None]
    is_max_t = len(known) == len(matrices)
    members = [(source, each) for (source, _), block in blocks.items() for each in block]
    found = simultaneous([each.evidence for _, each in members if each.evidence], known if is_max_t else None)
    places = ((source, each.pair) for source, each in members)
    return dict(zip(places, found, strict=True)), TestedFamily(len(found), is_max_t)


def _correlations(source: ColumnSource, block: Sequence[Comparison], items: ItemErrors) -> "Matrix | None":
    """Return the correlations of comparisons at one point of the grid; None if they are unknown.

    Under Welch's test, two comparisons with a common row share this row's noise over seeds. For paired
    differences the result is None, since their covariance is unknown.
    """
    import numpy as np

    if len(block) == 1:
        return np.eye(1)
    if any(each.is_paired for each in block):
        return None
    samples = {row: sample for each in block for row, sample in zip(each.pair, each.samples, strict=True)}
    columns = {row: column for column, row in enumerate(samples)}
    contrasts = np.zeros((len(block), len(samples)))
    for line, each in enumerate(block):
        contrasts[line, [columns[row] for row in each.pair]] = 1.0, -1.0
    errors = [(sample.variance or 0.0) / sample.num_seeds for sample in samples.values()]
    whole = (contrasts * errors) @ contrasts.T
    with_items = [index for index, each in enumerate(block) if each.over_items]
    if with_items:
        covariances = items.covariances(source, [block[index].pair for index in with_items])
        if covariances is None:
            return None
        whole[np.ix_(with_items, with_items)] += covariances
    deviations = np.sqrt(np.diagonal(whole))
    # Without any noise, equal rows differ by 0 for certain.
    deviations[deviations == 0.0] = 1.0
    found = whole / deviations[:, None] / deviations
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)
