"""A figure of scores against costs, with the Pareto frontier: rows that none beats at equal or lower cost."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from synthbench.base.grouping import grouped
from synthbench.config.coordinates import RowKey, values_text
from synthbench.config.table_options import CostKind, FrontierOptions
from synthbench.reporting.figures.panels import (
    AXIS_WIDTH,
    CEILING,
    PANEL_HEIGHT,
    Look,
    PanelTexts,
    draw_point,
    panels_figure,
    round_ticks,
    scale_amounts,
    score_range,
)
from synthbench.reporting.figures.style import COLOURS, MARKERS, SCORE, SMALL_FONT_SIZE, equal_ranges
from synthbench.reporting.model.aggregate import ColumnSource
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.experiment_notes import asked_llms
from synthbench.reporting.model.notes import without_gaps
from synthbench.reporting.model.sections import CsvTable, ReportSection
from synthbench.reporting.model.spending import RowSpending, spending
from synthbench.reporting.model.table import Cell, Row, csv_numbers
from synthbench.reporting.results import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

TITLES: dict[CostKind, str] = {
    "dollars": "US dollars",
    "tokens": "tokens",
    "seconds": "seconds",
    "total": "US dollars in all",
}
MEANINGS: dict[CostKind, str] = {
    "dollars": (
        "US dollars: what LLMs were paid for a row's data and for those of the row it starts from, in full"
        " for each row that shares them, without cached answers."
    ),
    "tokens": (
        "Tokens: what LLMs read and wrote for a row's data and for those of the row it starts from, in full"
        " for each row that shares them, without cached answers. A method's own language model costs seconds"
        " only."
    ),
    "seconds": (
        "Seconds: wall-clock time of the stages behind a seed's scores, from data to evaluation, waiting for"
        " LLMs included, in full for each row that shares them. Compare only if the machines were alike."
    ),
    "total": (
        "US dollars in all: what LLMs were paid, and the seconds of the stages behind a seed's scores at"
        " {price} an hour; both in full for each row that shares them, without cached answers."
    ),
}

Y_MARGIN = 0.12
JOINT_COLOUR = "#999999"
NAME_HEIGHT, HIGHEST_PANEL = 0.32, 6.4  # inches of a panel on its own: for each name, and in all
MOST_NAMES = 5  # names for which a panel beside others has room
LEADERS = {"linecolor": "#888888", "linewidth": 0.4, "min_distance": 0.012, "max_distance": 0.5}
FIELDS = ("cost", "row", "axis", "amount", "mean", "low", "high", "sd", "n_seeds", "on_frontier", "left_out")
MEAN = "mean"
JOINED = (
    "Joined: rows that no other beats at the same cost or less, by their means. The comparisons say which"
    " differences are significant."
)


@dataclass(frozen=True)
class RowAtCost:
    """A row's score x 100 and its cost (`amount`); `left_out`: why the row is not drawn, "" if it is.

    `group`: the index of the row's point of the grid.
    """

    row: Row
    group: int
    amount: float | None
    cell: Cell | None
    left_out: str = ""
    on_frontier: bool = False

    @property
    def name(self) -> str:
        """The row's name, with a mark if it is a ceiling."""
        return RowKey(self.row.label, self.row.axes).title


@dataclass(frozen=True)
class CostPanel:
    """All rows with one kind of cost, in the table's order."""

    kind: CostKind
    meaning: str
    rows: tuple[RowAtCost, ...]

    @property
    def shown(self) -> tuple[tuple[RowAtCost, float, Cell], ...]:
        """The rows that can be drawn, with cost and score."""
        return tuple(
            (bought, bought.amount, bought.cell)
            for bought in self.rows
            if bought.amount is not None and bought.cell is not None and not bought.left_out
        )


@dataclass(frozen=True)
class Frontier:
    """The figure's content: a panel per kind of cost; `groups` name the grid's points."""

    name: ClassVar = "frontier"
    title: ClassVar = "Scores against what they cost"
    caption: str
    score: str
    groups: tuple[str, ...]
    panels: tuple[CostPanel, ...]
    notes: tuple[str, ...]

    @property
    def section(self) -> ReportSection:
        """The rows and costs as a table, with the reason if a row is not drawn; scores x 100."""
        lines = [
            [
                *(panel.kind, bought.row.variant, bought.row.key.csv_axes),
                "" if bought.amount is None else f"{bought.amount:.10g}",
                *csv_numbers(bought.cell),
                "yes" if bought.on_frontier else "no",
                bought.left_out,
            ]
            for panel in self.panels
            for bought in panel.rows
        ]
        return ReportSection(self.name, CsvTable(FIELDS, lines), notes=_with_meanings(self))

    @property
    def most_names(self) -> int:
        """The largest number of points in a panel."""
        return max(len(panel.shown) for panel in self.panels)

    @property
    def parts(self) -> "tuple[Frontier, ...]":
        """All panels together or, with many rows, each panel as a part of its own."""
        shown = [panel for panel in self.panels if panel.shown]
        if len(shown) < 2 or self.most_names <= MOST_NAMES:
            return (self,)
        return tuple(replace(self, panels=(panel,)) for panel in shown)

    def draw(self, *, has_caption: bool = True) -> "Figure | None":
        """Return a figure of means with 95 % intervals over seeds against costs; None if no row can be drawn.

        Each point has its variant's name beside it, or at the end of a thin line; many rows make the panel
        higher. The x axis is logarithmic if the costs span more than a factor of 10; a cost of 0 then stands
        left of the others. Colour and marker show the point of the grid; ceilings are diamonds. A hollow
        marker is a single value, without an interval. Call it within `figure_style`.
        """
        if not self.most_names:
            return None
        is_crowded = self.most_names > MOST_NAMES
        height = min(NAME_HEIGHT * self.most_names, HIGHEST_PANEL) if is_crowded else PANEL_HEIGHT
        texts = PanelTexts(
            self.caption if has_caption else "",
            [""] * len(self.panels),
            "",
            f"{self.score} {SCORE}",
            self.section.first_notes,
        )
        figure, axes = panels_figure(texts, _handles(self), height)
        width = figure.get_figwidth() / min(len(axes), 3) - AXIS_WIDTH
        ranges = [score_range((cell for _, _, cell in panel.shown), Y_MARGIN) for panel in self.panels]
        for on, panel, limits in zip(axes, self.panels, equal_ranges(ranges), strict=True):
            _draw_panel(on, panel, width)
            on.set_ylim(*limits)
        figure.draw_without_rendering()
        for on, panel in zip(axes, self.panels, strict=True):
            _write_names(on, panel)
        return figure


def frontier(analysis: Analysis) -> Frontier | None:
    """Return the frontier that `table.figures.frontier` asks for; None if unset or nothing was scored."""
    wanted = analysis.options.figures.frontier
    if wanted is None:
        return None
    score, over = _score(analysis, wanted)
    if not over:
        return None
    narrowed = analysis.with_options(
        columns=(score,), averages={score: over}, published=None, compare_to={}, best=False
    )
    if not narrowed.columns:
        return None
    table = build_table(narrowed)
    rows = [(group, row) for group, of_group in enumerate(table.groups) for row in of_group.rows]
    price = wanted.hour_usd or 0.0
    panels = tuple(_panel(narrowed, rows, kind, price) for kind in dict.fromkeys(wanted.costs))
    groups = tuple(values_text(group.rows[0].axes) or table.heading(group) for group in table.groups)
    score_note = () if len(over) == 1 else (f"Score: mean of {', '.join(over)} per seed.",)
    notes = (
        " ".join((*without_gaps(table.figure_notes), *score_note)),  # the section gives reasons by row
        JOINED,
        *asked_llms(analysis.result),
        *(note for panel in panels for note in _notes(panel)),
        *_prices(panels, narrowed.options.record_usd),
    )
    return Frontier(table.caption, over[0] if len(over) == 1 else score, groups, panels, notes)


def _score(analysis: Analysis, wanted: FrontierOptions) -> tuple[str, tuple[str, ...]]:
    """Return the score's name, and the test sets that it averages."""
    if wanted.score is not None:
        return wanted.score, analysis.options.averages.get(wanted.score, (wanted.score,))
    test_sets = [source.column.title for source in analysis.columns if not source.column.is_average]
    return MEAN, tuple(test_sets or (one.label for one in analysis.measurements))


def _panel(analysis: Analysis, rows: Sequence[tuple[int, Row]], kind: CostKind, hour_usd: float) -> CostPanel:
    source = analysis.columns[0]
    bought = []
    for group, row in rows:
        runs = _runs_of(analysis.rows[row.key], source)
        spent = spending(analysis.result, runs, kind, hour_usd) if runs else None
        bought.append(_row_at_cost(row, group, spent))
    points = {
        index: (each.amount, each.cell.mean)
        for index, each in enumerate(bought)
        if each.amount is not None and each.cell is not None and not each.left_out and not each.row.is_ceiling
    }
    best = pareto_optimal(points)
    meaning = MEANINGS[kind].replace("{price}", f"{hour_usd:g} dollars")
    on_frontier = (replace(each, on_frontier=index in best) for index, each in enumerate(bought))
    return CostPanel(kind, meaning, tuple(on_frontier))


def _runs_of(runs: Sequence[RunResult], source: ColumnSource) -> list[RunResult]:
    """Return the runs whose scores the column averages, each once."""
    found = {run.identity: run for one in source.measurements for run in one.runs(runs)}
    return list(found.values())


def _row_at_cost(row: Row, group: int, spent: RowSpending | None) -> RowAtCost:
    (cell,) = row.cells
    if cell is None or spent is None:
        return RowAtCost(
            row, group, None if spent is None else spent.amount, cell, "not scored on all of them"
        )
    if math.isnan(cell.mean):
        return RowAtCost(row, group, spent.amount, cell, "its score is undefined (NaN)")
    return RowAtCost(row, group, spent.amount, cell, spent.why_unknown)


def pareto_optimal(points: Mapping[int, tuple[float, float]]) -> frozenset[int]:
    """Return the indices of Pareto-optimal (cost, score) points: no other is at least as good in both."""
    return frozenset(
        index
        for index, (cost, mean) in points.items()
        if not any(
            other_cost <= cost and other_mean >= mean and (other_cost, other_mean) != (cost, mean)
            for other_cost, other_mean in points.values()
        )
    )


def _with_meanings(found: Frontier) -> tuple[str, ...]:
    """Return the notes; the second one explains the costs of all panels."""
    first, *others = found.notes
    return (first, " ".join(panel.meaning for panel in found.panels), *others)


def _notes(panel: CostPanel) -> Iterator[str]:
    free = [bought.name for bought, amount, _ in panel.shown if amount == 0]
    if free:
        yield f"0 {TITLES[panel.kind]}: {', '.join(free)}."
    reasons = grouped((bought.left_out, bought.name) for bought in panel.rows if bought.left_out)
    for reason, names in reasons.items():
        yield f"Not drawn against {TITLES[panel.kind]}: {', '.join(names)}: {reason}."


def _prices(panels: Sequence[CostPanel], prices: Mapping[str, float]) -> Iterator[str]:
    if prices and {"dollars", "total"} & {panel.kind for panel in panels}:
        each = ", ".join(f"{name} {usd:.3g}" for name, usd in prices.items())
        yield f"Dollars hold the price of each record of these sources, as the file states it: {each}."


def _draw_panel(axes: "Axes", panel: CostPanel, width: float) -> None:
    amounts = sorted(amount for _, amount, _ in panel.shown)
    axes.set_xlabel(TITLES[panel.kind])
    scale_amounts(axes, amounts, width, round_ticks(amounts))
    for bought, amount, cell in panel.shown:
        draw_point(axes, (amount, cell), _look(bought), 0.9)
    if joint := _joint(axes, panel):
        axes.plot(*zip(*joint, strict=True), color=JOINT_COLOUR, linewidth=1.0, zorder=1.5)


def _write_names(axes: "Axes", panel: CostPanel) -> None:
    """Write each point's variant near the point, where the text covers few points, lines and other names."""
    from textalloc import allocate

    if not panel.shown:
        return
    xs, ys = ([*each] for each in zip(*((x, cell.mean) for _, x, cell in panel.shown), strict=True))
    half_widths = [cell.half_width or 0.0 for *_, cell in panel.shown]
    bars = [((x, y - half), (x, y + half)) for x, y, half in zip(xs, ys, half_widths, strict=True)]
    lines = [[*zip(*ends, strict=True)] for ends in (*bars, *pairwise(_joint(axes, panel)))]
    _, _, texts, _ = allocate(
        axes,
        xs,
        ys,
        [bought.row.label for bought, *_ in panel.shown],
        x_scatter=xs,
        y_scatter=ys,
        x_lines=[x for x, _ in lines],
        y_lines=[y for _, y in lines],
        textsize=SMALL_FONT_SIZE,
        **LEADERS,
    )
    for text in texts:
        text.set_in_layout(False)


def _look(bought: RowAtCost) -> Look:
    if bought.row.is_ceiling:
        return CEILING
    return Look(COLOURS[bought.group % len(COLOURS)], MARKERS[bought.group % len(MARKERS)], "-")


def _handles(found: Frontier) -> "list[Line2D]":
    """Return the legend's entries, one for each point of the grid; [] if there is only one point."""
    if len(found.groups) == 1:
        return []
    first = {each.group: each for each in found.panels[0].rows if not each.row.is_ceiling}
    return [_look(bought).handle(found.groups[group], has_line=False) for group, bought in first.items()]


def _joint(axes: "Axes", panel: CostPanel) -> list[tuple[float, float]]:
    """Return the corners of the frontier's steps: the best score at or below each cost."""
    best = sorted({(amount, cell.mean) for bought, amount, cell in panel.shown if bought.on_frontier})
    corners = best[:1]
    for amount, mean in best[1:]:
        corners += [(amount, corners[-1][1]), (amount, mean)]
    return [*corners, (axes.get_xlim()[1], corners[-1][1])] if corners else []
