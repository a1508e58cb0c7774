"""Scores against an amount: the points of a table along an axis, or by the number of records."""

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from synthbench.escaping import CsvWriter
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.notes import curve_notes
from synthbench.reporting.model.table import Cell, Row
from synthbench.reporting.options import CurvesOptions, TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate

FIELDS = ("panel", "line", "x", "mean", "low", "high", "sd", "n_seeds")


@dataclass(frozen=True)
class Point:
    """A score x 100 over seeds at an amount."""

    x: float
    cell: Cell


@dataclass(frozen=True)
class Curve:
    """The points of one line in one panel, from left to right."""

    label: str
    points: tuple[Point, ...]
    is_ceiling: bool = False


@dataclass(frozen=True)
class Curves:
    """A panel for each column of the table; every panel has the same lines, some without points."""

    caption: str
    x_title: str
    panels: tuple[tuple[str, tuple[Curve, ...]], ...]
    notes: tuple[str, ...]

    @property
    def lines(self) -> tuple[Curve, ...]:
        """The lines of the first panel, for their names."""
        return self.panels[0][1]


def curves(result: ExperimentResult) -> Curves | None:
    """Return what `table.figures.curves` asks for, None if it asks for nothing or nothing was scored."""
    options = TableOptions.model_validate(result.table)
    wanted = options.figures.curves
    if wanted is None:
        return None
    options = _without_axis(options, wanted.axis)
    table = build_table(result.model_copy(update={"table": options.model_dump(mode="json")}))
    places = {one.label: one.place for one in aggregate.measurements(result, options.across)}
    runs = {(key.variant, key.axes): of for key, of in aggregate.rows(result, options.across).items()}
    lines: dict[tuple[str, bool], list[Row]] = {}
    for row in table.rows:
        if not wanted.records and wanted.axis not in dict(row.axes):
            continue  # the axis was taken away from outside
        lines.setdefault((_label(row, wanted.axis), row.is_ceiling), []).append(row)
    panels = []
    for index, column in enumerate(table.columns):
        if column.is_average and wanted.records and options.across:
            continue  # each of its sets has a number of records of its own
        place = places.get(column.title, ())
        of_lines = {
            line: [
                Point(_x(row, runs[row.variant, row.axes], place, wanted), cell)
                for row in rows
                if (cell := row.cells[index]) is not None and not math.isnan(cell.mean)
            ]
            for line, rows in lines.items()
        }
        panels.append(
            (
                column.title,
                tuple(
                    _curve(label, points, is_ceiling=is_ceiling)
                    for (label, is_ceiling), points in of_lines.items()
                ),
            )
        )
    if not any(curve.points for _, of_panel in panels for curve in of_panel):
        return None
    return Curves(table.caption, _x_title(wanted), tuple(panels), curve_notes(table, result))


def csv_curves(found: Curves) -> str:
    """Return a line for each point; scores x 100, intervals of 95 %."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for title, of_panel in found.panels:
        for curve in of_panel:
            for point in curve.points:
                writer.writerow([title, curve.label, f"{point.x:.10g}", *_numbers(point)])
    return text.getvalue()


def _numbers(point: Point) -> Iterator[str]:
    mean, half_width = point.cell.mean, point.cell.half_width
    yield f"{mean:.6f}"
    yield from ["", ""] if half_width is None else [f"{mean - half_width:.6f}", f"{mean + half_width:.6f}"]
    spread = point.cell.standard_deviation
    yield "" if spread is None else f"{spread:.6f}"
    yield str(point.cell.num_seeds)


def _without_axis(options: TableOptions, axis: str | None) -> TableOptions:
    """Return the options of a table that does not go across the axis along which lines go."""
    if axis not in options.across:
        return options
    across = tuple(name for name in options.across if name != axis)
    # Columns and averages may be named after the values of an axis that is none of the columns' any more.
    return options.model_copy(update={"across": across, "columns": None, "averages": {}, "published": None})


def _label(row: Row, axis: str | None) -> str:
    others = [value for name, value in row.axes if name != axis]
    return f"{row.variant} ({', '.join(others)})" if others else row.variant


def _curve(label: str, points: Sequence[Point], *, is_ceiling: bool) -> Curve:
    return Curve(label, tuple(sorted(points, key=lambda point: point.x)), is_ceiling)


def _x(row: Row, runs: Sequence[RunResult], place: aggregate.Place, wanted: CurvesOptions) -> float:
    if not wanted.records:
        return float(dict(row.axes)[wanted.axis or ""])
    return fmean(
        sum(dataset.num_records for dataset in run.datasets if dataset.part in wanted.records)
        for run in aggregate.runs_at(runs, place)
    )


def _x_title(wanted: CurvesOptions) -> str:
    if wanted.records:
        return f"records of {' and '.join(wanted.records)}"
    return (wanted.axis or "").replace("_", " ").replace("-", " ")
