"""A figure of scores against the numbers of a grid axis, or against numbers of records."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, ClassVar

from synthbench.config.coordinates import RowKey
from synthbench.config.table_options import CurvesOptions
from synthbench.reporting.figures.panels import (
    AXIS_WIDTH,
    CEILING,
    MARKER_SIZE,
    MOST_PANELS,
    Look,
    PanelTexts,
    beside,
    draw_point,
    look,
    panels_figure,
    scale_amounts,
    score_range,
)
from synthbench.reporting.figures.style import POINTS_PER_INCH, SCORE, equal_ranges
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.notes import without_gaps
from synthbench.reporting.model.sections import CsvTable, ReportSection
from synthbench.reporting.model.table import Cell, Row, csv_numbers
from synthbench.reporting.results import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIELDS = ("panel", "line", "x", "mean", "low", "high", "sd", "n_seeds")


@dataclass(frozen=True)
class Point:
    """A cell with the score x 100 over seeds, at the amount `x`: an axis value or a number of records."""

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
    """A panel per column of the table. The panels have the same lines; a panel may lack points of a line."""

    name: ClassVar = "curves"
    title: ClassVar = "Scores against an amount"
    caption: str
    x_title: str
    panels: tuple[tuple[str, tuple[Curve, ...]], ...]
    notes: tuple[str, ...]

    @property
    def lines(self) -> tuple[Curve, ...]:
        """The lines of the first panel; the lines of all other panels have the same names."""
        return self.panels[0][1]

    @property
    def section(self) -> ReportSection:
        """The points as a table: scores x 100, 95 % intervals."""
        lines = [
            [panel, curve.label, f"{point.x:.10g}", *csv_numbers(point.cell)]
            for panel, curves in self.panels
            for curve in curves
            for point in curve.points
        ]
        return ReportSection(self.name, CsvTable(FIELDS, lines))

    @property
    def parts(self) -> "tuple[Curves, ...]":
        """The figure in parts that fit a page each."""
        starts = range(0, len(self.panels), MOST_PANELS)
        return tuple(replace(self, panels=self.panels[start : start + MOST_PANELS]) for start in starts)

    def draw(self, *, has_caption: bool = True) -> "Figure":
        """Return a figure of means with 95 % intervals over seeds; call it within `figure_style`.

        The x axis is logarithmic if the amounts span more than a factor of 10; 0 then stands left of all
        others. A hollow marker is a single value, without an interval.
        """
        looks = _looks(self.lines)
        has_lines = any(len(line.points) > 1 for _, lines in self.panels for line in lines)
        handles = [
            one.handle(line.label, has_line=has_lines) for line, one in zip(self.lines, looks, strict=True)
        ]
        titles = [title for title, _ in self.panels]
        texts = PanelTexts(self.caption if has_caption else "", titles, self.x_title, SCORE, self.notes)
        figure, panels = panels_figure(texts, handles)
        num_across = len({round(panel.get_position().x0, 6) for panel in panels})
        width = figure.get_figwidth() / num_across - AXIS_WIDTH
        for panel, (_, lines) in zip(panels, self.panels, strict=True):
            at_amount = Counter(point.x for line in lines for point in line.points)
            room = MARKER_SIZE + DODGE * max(at_amount.values(), default=0) / 2
            scale_amounts(panel, sorted(at_amount), width, room=room / POINTS_PER_INCH)
            drawn: Counter[float] = Counter()
            for line, of_line in zip(lines, looks, strict=True):
                shifts = [_shift(point, drawn, at_amount) / POINTS_PER_INCH for point in line.points]
                amounts = [point.x for point in line.points]
                _draw(panel, line, of_line, beside(panel, amounts, shifts, width))
        cells = [[point.cell for line in lines for point in line.points] for _, lines in self.panels]
        ranges = [score_range(of_panel, Y_MARGIN) for of_panel in cells]
        for panel, limits in zip(panels, equal_ranges(ranges), strict=True):
            panel.set_ylim(*limits)
        return figure


def curves(analysis: Analysis) -> Curves | None:
    """Return the curves that `table.figures.curves` asks for; None if it is unset or nothing was scored."""
    wanted = analysis.options.figures.curves
    if wanted is None:
        return None
    analysis = _without_axis(analysis, wanted.axis)
    table = build_table(analysis)
    lines: dict[tuple[str, bool], list[Row]] = {}
    for row in table.rows:
        if not wanted.records and wanted.axis not in dict(row.axes):
            continue  # an override removed the axis
        others = tuple((name, value) for name, value in row.axes if name != wanted.axis)
        lines.setdefault((RowKey(row.variant, others).title, row.is_ceiling), []).append(row)
    panels = []
    for index, source in enumerate(analysis.columns):
        if source.column.is_average and wanted.records and analysis.options.across:
            continue  # each of its test sets has another number of records
        of_panel = []
        for (label, is_ceiling), rows in lines.items():
            points = (
                Point(_x(row, source.measurements[0].runs(analysis.rows[row.key]), wanted), cell)
                for row in rows
                if (cell := row.cells[index]) is not None and not math.isnan(cell.mean)
            )
            of_panel.append(Curve(label, tuple(sorted(points, key=attrgetter("x"))), is_ceiling))
        panels.append((source.column.title, tuple(of_panel)))
    if not any(curve.points for _, of_panel in panels for curve in of_panel):
        return None
    notes = without_gaps(table.figure_notes)  # curves show a missing score as a gap
    return Curves(table.caption, _x_title(wanted), tuple(panels), notes)


def _without_axis(analysis: Analysis, axis: str | None) -> Analysis:
    """Return the analysis without `axis` in `table.across`, since the curves run along this axis."""
    if axis not in analysis.options.across:
        return analysis
    across = tuple(name for name in analysis.options.across if name != axis)
    # Columns and averages may be named after values of the axis, which has no columns now.
    return analysis.with_options(across=across, columns=None, averages={}, published=None)


def _x(row: Row, runs: Sequence[RunResult], wanted: CurvesOptions) -> float:
    if not wanted.records:
        return float(dict(row.axes)[wanted.axis or ""])
    return fmean(
        sum(dataset.num_records for dataset in run.datasets if dataset.part in wanted.records) for run in runs
    )


def _x_title(wanted: CurvesOptions) -> str:
    if wanted.records:
        return f"records of {' and '.join(wanted.records)}"
    return (wanted.axis or "").replace("_", " ").replace("-", " ")


DODGE = 2.0  # distance (1/72 inch) between lines at the same amount, to keep their intervals apart
Y_MARGIN = 0.08


def _shift(point: Point, drawn: Counter[float], at_amount: Counter[float]) -> float:
    """Count a point in `drawn` and return its shift to the right in 1/72 inch.

    The shifts separate points at the same amount.
    """
    drawn[point.x] += 1
    return DODGE * (drawn[point.x] - (at_amount[point.x] + 1) / 2)


def _looks(lines: Sequence[Curve]) -> list[Look]:
    compared = [line for line in lines if not line.is_ceiling]
    return [CEILING if line.is_ceiling else look(compared.index(line)) for line in lines]


def _draw(panel: "Axes", line: Curve, of_line: Look, positions: Sequence[float]) -> None:
    panel.plot(
        positions,
        [point.cell.mean for point in line.points],
        color=of_line.colour,
        linestyle=of_line.dashes,
        linewidth=1.1,
    )
    for point, position in zip(line.points, positions, strict=True):
        draw_point(panel, (position, point.cell), of_line, 1.0)
