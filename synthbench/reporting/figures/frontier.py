"""Scores against what they cost, and which rows no other outdoes for the same or less."""

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from synthbench.escaping import CsvWriter
from synthbench.reporting.figures.spending import MEANINGS, TITLES, spending
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.notes import curve_notes
from synthbench.reporting.model.table import Axes, Cell, Row, Table
from synthbench.reporting.options import CostKind, FrontierOptions, TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.aggregate import RowKey
from synthbench.reporting.statistics.columns import ColumnSource, column_sources

FIELDS = ("cost", "row", "axis", "amount", "mean", "low", "high", "sd", "n_seeds", "on_frontier", "left_out")
MEAN = "mean"
JOINED = (
    "Joined: rows that no other outdoes at the same cost or less, by their means; whether a lead is more than"
    " noise the table says."
)


@dataclass(frozen=True)
class Bought:
    """A row's score x 100 and what it cost, or why it lacks one; `group` counts points of the grid."""

    row: Row
    group: int
    amount: float | None
    cell: Cell | None
    left_out: str = ""
    on_frontier: bool = False

    @property
    def name(self) -> str:
        """The variant with the values of the grid."""
        values = ", ".join(value for _, value in self.row.axes)
        return f"{self.row.label} ({values})" if values else self.row.label


@dataclass(frozen=True)
class CostPanel:
    """All rows at one kind of cost, in the table's order."""

    kind: CostKind
    rows: tuple[Bought, ...]

    @property
    def shown(self) -> tuple[tuple[Bought, float, Cell], ...]:
        """The rows that have a place, with their cost and their score."""
        return tuple(
            (bought, bought.amount, bought.cell)
            for bought in self.rows
            if bought.amount is not None and bought.cell is not None and not bought.left_out
        )


@dataclass(frozen=True)
class Frontier:
    """What is drawn: a panel for each kind of cost; `groups` name the points of the grid."""

    caption: str
    score: str
    groups: tuple[str, ...]
    panels: tuple[CostPanel, ...]
    notes: tuple[str, ...]

    @property
    def has_points(self) -> bool:
        """Whether a row has a place anywhere; if none has, the reasons are all there is."""
        return any(panel.shown for panel in self.panels)


def frontier(result: ExperimentResult) -> Frontier | None:
    """Return what `table.figures.frontier` asks for; None if it asks for nothing or nothing was scored."""
    options = TableOptions.model_validate(result.table)
    wanted = options.figures.frontier
    if wanted is None:
        return None
    score, over = _score(result, options, wanted)
    if not over:
        return None
    narrowed = options.model_copy(
        update={"columns": (score,), "averages": {score: over}, "published": None, "compare_to": None}
    )
    sources = column_sources(result, narrowed)
    if not sources:
        return None
    table = build_table(result.model_copy(update={"table": narrowed.model_dump(mode="json")}))
    panels = tuple(_panel(result, table, sources[0], kind) for kind in dict.fromkeys(wanted.costs))
    groups = tuple(_group_name(group.rows[0].axes) for group in table.groups)
    told = () if len(over) == 1 else (f"Score: mean of {', '.join(over)} for each seed.",)
    notes = (
        *curve_notes(table, result),
        *told,
        *(note for panel in panels for note in _notes(panel)),
        JOINED,
    )
    return Frontier(table.caption, over[0] if len(over) == 1 else score, groups, panels, notes)


def _score(
    result: ExperimentResult, options: TableOptions, wanted: FrontierOptions
) -> tuple[str, tuple[str, ...]]:
    """Return the score's name, and the test sets whose mean it is."""
    if wanted.score is not None:
        return wanted.score, options.averages.get(wanted.score, (wanted.score,))
    sources = column_sources(result, options)
    of_sets = [source.column.title for source in sources if not source.column.is_average]
    return MEAN, tuple(of_sets or (one.label for one in aggregate.measurements(result, options.across)))


def _group_name(axes: Axes) -> str:
    return ", ".join(value for _, value in axes)


def _panel(result: ExperimentResult, table: Table, source: ColumnSource, kind: CostKind) -> CostPanel:
    runs = aggregate.rows(result, TableOptions.model_validate(result.table).across)
    bought = [
        _bought(result, row, group, _behind(runs[RowKey(row.variant, row.axes)], source), kind)
        for group, of_group in enumerate(table.groups)
        for row in of_group.rows
    ]
    places = {
        index: (each.amount, each.cell.mean)
        for index, each in enumerate(bought)
        if each.amount is not None and each.cell is not None and not each.left_out and not each.row.is_ceiling
    }
    best = undominated(places)
    return CostPanel(
        kind, tuple(replace(each, on_frontier=index in best) for index, each in enumerate(bought))
    )


def _behind(runs: Sequence[RunResult], source: ColumnSource) -> list[RunResult]:
    """Return the runs that a score is made of, each once."""
    found = {run.identity: run for one in source.measurements for run in aggregate.runs_at(runs, one.place)}
    return list(found.values())


def _bought(
    result: ExperimentResult, row: Row, group: int, runs: Sequence[RunResult], kind: CostKind
) -> Bought:
    (cell,) = row.cells
    spent = spending(result, runs, kind) if runs else None
    if cell is None or spent is None:
        return Bought(row, group, None if spent is None else spent.amount, cell, "not scored on all of them")
    if math.isnan(cell.mean):
        return Bought(row, group, spent.amount, cell, "its score is undefined (NaN)")
    return Bought(row, group, spent.amount, cell, spent.why_unknown)


def undominated(places: Mapping[int, tuple[float, float]]) -> frozenset[int]:
    """Return whom no other gives a higher score for the same or less, nor the same score for less."""
    return frozenset(
        index
        for index, (cost, mean) in places.items()
        if not any(
            other_cost <= cost and other_mean >= mean and (other_cost, other_mean) != (cost, mean)
            for other_cost, other_mean in places.values()
        )
    )


def _notes(panel: CostPanel) -> Iterator[str]:
    yield MEANINGS[panel.kind]
    free = [bought.name for bought, amount, _ in panel.shown if amount == 0]
    if free:
        yield f"0 {TITLES[panel.kind]}: {', '.join(free)}."
    reasons: dict[str, list[str]] = {}
    for bought in panel.rows:
        if bought.left_out:
            reasons.setdefault(bought.left_out, []).append(bought.name)
    for reason, names in reasons.items():
        yield f"Not drawn against {TITLES[panel.kind]}: {', '.join(names)}: {reason}."


def csv_frontier(found: Frontier) -> str:
    """Return a line for each row and cost, those that are not drawn with the reason; scores x 100."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for panel in found.panels:
        for bought in panel.rows:
            axis = "; ".join(f"{name}={value}" for name, value in bought.row.axes)
            amount = "" if bought.amount is None else f"{bought.amount:.10g}"
            writer.writerow(
                [
                    *(panel.kind, bought.row.variant, axis, amount),
                    *_numbers(bought.cell),
                    "yes" if bought.on_frontier else "no",
                    bought.left_out,
                ]
            )
    return text.getvalue()


def _numbers(cell: Cell | None) -> Iterator[str]:
    if cell is None:
        yield from [""] * 5
        return
    spread, reach = cell.standard_deviation, cell.half_width
    ends = (None, None) if reach is None else (cell.mean - reach, cell.mean + reach)
    for value in (cell.mean, *ends, spread):
        yield "" if value is None else f"{value:.6f}"
    yield str(cell.num_seeds)
