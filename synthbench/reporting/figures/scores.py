"""The table of scores as a figure: a panel per column, a point with its interval per row."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from synthbench.reporting.figures.panels import CEILING, Look, look
from synthbench.reporting.figures.style import (
    CEILING_COLOUR,
    GUIDE_COLOUR,
    GUIDE_WIDTH,
    HIGHEST,
    NARROWEST,
    SCORE,
    TEXT_COLOUR,
    WIDEST,
    equal_ranges,
    folded,
    framed,
    text_height,
    text_width,
    wrapped,
)
from synthbench.reporting.model.table import MISSING, Cell, Group, Row, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches.
PANEL_WIDTH, PANEL_GAP, ROW_SPACING, AXIS_HEIGHT = 1.2, 0.1, 0.055, 0.45
TITLE_HEIGHT, FRAME_HEIGHT = 0.35, 1.3
PANELS_PER_LINE = 5
MOST_LINES = 34
"""Maximum number of lines in a panel, headings included; a label may take several lines of text."""
LABEL_LENGTH = 28
MARGIN = 0.07
SMALLEST_RANGE = 1.0
LEAST_SCORE, HIGHEST_SCORE = -100.0, 100.0  # of a correlation, x 100
BOUNDS = (LEAST_SCORE * (1 + 2 * MARGIN), HIGHEST_SCORE * (1 + 2 * MARGIN))


@dataclass(frozen=True)
class _PlotLine:
    """A line across all panels: a row of the table, or the heading of a group.

    A variant has the same `look` in all groups.
    """

    label: str
    group: int
    row: Row | None = None
    look: Look = CEILING


def scores_parts(table: Table) -> Iterator[Table]:
    """Yield the table in parts whose figures are no higher than a page."""
    for groups in _chunks(table.groups):
        part = replace(table, groups=groups)
        height = _panel_height(tuple(_lines(part))) + AXIS_HEIGHT + TITLE_HEIGHT
        num_figures = math.ceil(
            len(table.columns) / (PANELS_PER_LINE * max(1, int((HIGHEST - FRAME_HEIGHT) / height)))
        )
        length = math.ceil(len(table.columns) / num_figures)
        for start in range(0, len(table.columns), length):
            yield part.with_columns(range(start, min(start + length, len(table.columns))))


def _chunks(groups: Sequence[Group]) -> Iterator[tuple[Group, ...]]:
    """Yield tuples of groups that fit a page together; a group longer than a page is cut."""
    most = MOST_LINES - 1
    cut = [
        Group(group.rows[start : start + most])
        for group in groups
        for start in range(0, len(group.rows), most)
    ]
    chunk: list[Group] = []
    for group in cut:
        if chunk and sum(len(each.rows) + 1 for each in (*chunk, group)) > MOST_LINES:
            yield tuple(chunk)
            chunk = []
        chunk.append(group)
    yield tuple(chunk)


def scores_figure(table: Table, *, has_caption: bool = True) -> "Figure":
    """Return a figure of means with 95 % intervals over seeds, scores x 100; call it within `figure_style`.

    Lines and panels are in the table's order; the table must have a column. Variants differ in colour and
    marker; with a grid, groups have headings. All panels have the same width per score point, so that
    differences can be compared. Ceilings are diamonds with a dashed line at their mean. A hollow marker has
    no interval. Without a caption, the figure has neither title nor notes.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    lines = tuple(_lines(table))
    num_down = math.ceil(len(table.columns) / PANELS_PER_LINE)
    num_across = math.ceil(len(table.columns) / num_down)
    label_width = max(text_width(part) for line in lines for part in line.label.splitlines())
    width = min(max(label_width + num_across * PANEL_WIDTH, NARROWEST), WIDEST)
    panel_width = (width - label_width) / num_across
    titles = [wrapped(column.heading, panel_width - PANEL_GAP) for column in table.columns]
    frame = framed(table.caption if has_caption else "", table.figure_notes, width)

    height = num_down * (_panel_height(lines) + max(map(text_height, titles)) + AXIS_HEIGHT)
    height += frame.height + AXIS_HEIGHT
    figure = Figure((width, height), layout=ConstrainedLayoutEngine(h_pad=0.06, hspace=0.04))
    frame.draw(figure)
    panels = list(figure.subplots(num_down, num_across, sharey=True, squeeze=False).flat)
    limits = equal_ranges([_limits(table.cells(index)) for index in range(len(titles))], BOUNDS)
    for index, (panel, title) in enumerate(zip(panels, titles, strict=False)):
        panel.set_title(title)
        panel.set_xlim(*limits[index])
        panel.set_xlabel(SCORE if index + num_across >= len(titles) else "")
        _draw_panel(panel, table, lines, index)
    for unused in panels[len(titles) :]:
        unused.remove()
    for first in panels[::num_across]:
        _label_lines(first, lines)
    return figure


def _lines(table: Table) -> Iterator[_PlotLine]:
    variants = list(dict.fromkeys(row.variant for row in table.rows if not row.is_ceiling))
    for number, group in enumerate(table.groups):
        if table.axes:
            yield _PlotLine(folded(table.heading(group), LABEL_LENGTH), number)
        for row in group.rows:
            of_row = CEILING if row.is_ceiling else look(variants.index(row.variant))
            yield _PlotLine(folded(row.label, LABEL_LENGTH), number, row, of_row)


def _draw_panel(panel: "Axes", table: Table, lines: Sequence[_PlotLine], column: int) -> None:
    from matplotlib.ticker import MaxNLocator

    panel.xaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10], min_n_ticks=2))
    panel.tick_params(axis="y", length=0)
    panel.grid(axis="x")
    for height, line in enumerate(lines):
        if line.row is None:
            continue
        panel.axhline(height, color=GUIDE_COLOUR, linewidth=GUIDE_WIDTH, zorder=1)
        cell = line.row.cells[column]
        if cell is None or math.isnan(cell.mean):
            _write_instead(panel, MISSING if cell is None else table.mean_text(cell), height)
            continue
        _draw_cell(panel, table, cell, height, line.look)
        if line.row.is_ceiling:
            reach = [at for at, other in enumerate(lines) if not line.row.axes or other.group == line.group]
            ends = (reach[0] - 0.5, reach[-1] + 0.5)
            panel.plot(
                (cell.mean,) * 2, ends, color=CEILING_COLOUR, linestyle="--", linewidth=0.7, zorder=1.5
            )


def _write_instead(panel: "Axes", text: str, height: int) -> None:
    middle = sum(panel.get_xlim()) / 2
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    panel.text(middle, height, text, color=TEXT_COLOUR, ha="center", va="center", bbox=ground)


def _draw_cell(panel: "Axes", table: Table, cell: Cell, height: int, of_row: Look) -> None:
    half_width = cell.half_width
    panel.errorbar(
        cell.mean,
        height,
        xerr=half_width,
        fmt=of_row.marker,
        color=of_row.colour,
        markersize=4,
        markerfacecolor="white" if half_width is None else of_row.colour,
        elinewidth=1.3,
    )
    seeds = table.seeds_text(cell)
    if seeds and half_width is not None:
        panel.annotate(
            seeds,
            (cell.mean, height),
            xytext=(0, 2.5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            size=5.5,
            color=TEXT_COLOUR,
        )


def _label_lines(panel: "Axes", lines: Sequence[_PlotLine]) -> None:
    """Write the labels of the lines beside a panel, and set the panel's y axis."""
    panel.set_ylim(len(lines) - 0.4, -0.6)
    panel.set_yticks(range(len(lines)), [line.label for line in lines])
    for label, line in zip(panel.get_yticklabels(), lines, strict=True):
        if line.row is None:
            label.set_fontweight("bold")


def _limits(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return a range with all intervals and a margin; intervals beyond possible scores are cut off."""
    shown = [(cell.mean, cell.half_width or 0.0) for cell in cells if not math.isnan(cell.mean)]
    low = max(min((mean - half_width for mean, half_width in shown), default=0.0), LEAST_SCORE)
    high = min(max((mean + half_width for mean, half_width in shown), default=0.0), HIGHEST_SCORE)
    margin = max(MARGIN * (high - low), (SMALLEST_RANGE - (high - low)) / 2)
    return low - margin, high + margin


def _panel_height(lines: Sequence[_PlotLine]) -> float:
    return len(lines) * (max(text_height(line.label) for line in lines) + ROW_SPACING)
