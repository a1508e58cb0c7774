"""Scores against costs as a figure: a panel for each cost, a named point for each row, the best joined."""

from typing import TYPE_CHECKING

from synthbench.reporting.figures.amounts import round_ticks, scale_amounts
from synthbench.reporting.figures.frontier import Bought, CostPanel, Frontier
from synthbench.reporting.figures.panels import AXIS_WIDTH, CEILING, Look, Texts, panels_figure
from synthbench.reporting.figures.point_labels import Named, label_points
from synthbench.reporting.figures.spending import TITLES
from synthbench.reporting.figures.style import COLOURS, MARKERS, SCORE, alike_limits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Y_MARGIN = 0.12
JOINT_COLOUR = "#999999"
MOST_HIDDEN = 6.0  # square points, of all names of a panel: about the edge of a letter


def frontier_figure(found: Frontier) -> "Figure":
    """Return means with 95 % intervals over seeds against costs; call it within `figure_style`.

    Points are named; where the names would hide each other they are numbered, and named in the legend.
    Costs stand on a logarithmic scale if they span more than a decade; 0 stands left of it. Points of the
    grid differ in colour and marker, ceilings are diamonds. A hollow marker is a single value, without an
    interval.
    """
    figure, hidden = _drawn(found, is_numbered=False)
    return figure if hidden <= MOST_HIDDEN else _drawn(found, is_numbered=True)[0]


def _drawn(found: Frontier, *, is_numbered: bool) -> "tuple[Figure, float]":
    """Return the figure, and what the names of the panel that has the least room hide."""
    rows = _rows_shown(found)
    numbers = {row: str(number) for number, row in enumerate(rows, start=1)} if is_numbered else {}
    texts = Texts(found.caption, [""] * len(found.panels), "", f"{found.score} {SCORE}", found.notes)
    figure, panels = panels_figure(texts, _handles(found, numbers))
    width = figure.get_figwidth() / min(len(panels), 3) - AXIS_WIDTH
    for axes, panel in zip(panels, found.panels, strict=True):
        axes.set_xlabel(TITLES[panel.kind])
        amounts = sorted(amount for _, amount, _ in panel.shown)
        scale_amounts(axes, amounts, width, round_ticks(amounts))
        _draw_points(axes, panel)
        if joint := _joint(axes, panel):
            axes.plot(*zip(*joint, strict=True), color=JOINT_COLOUR, linewidth=1.0, zorder=1.5)
    for axes, limits in zip(panels, alike_limits([_reach(panel) for panel in found.panels]), strict=True):
        axes.set_ylim(*limits)
    figure.draw_without_rendering()
    hidden = [
        label_points(axes, _named(panel, numbers), _joint(axes, panel))
        for axes, panel in zip(panels, found.panels, strict=True)
    ]
    return figure, max(hidden)


def _rows_shown(found: Frontier) -> list[str]:
    """Return the names of all rows that have a place somewhere, in the table's order."""
    shown = {bought.name for panel in found.panels for bought, _, _ in panel.shown}
    return [bought.name for bought in found.panels[0].rows if bought.name in shown]


def _named(panel: CostPanel, numbers: dict[str, str]) -> list[Named]:
    """Return what is written beside each point: variant or number."""
    return [
        Named(numbers.get(bought.name, bought.row.label), amount, cell.mean, cell.half_width or 0.0)
        for bought, amount, cell in panel.shown
    ]


def _look(bought: Bought) -> Look:
    if bought.row.is_ceiling:
        return CEILING
    return Look(COLOURS[bought.group % len(COLOURS)], MARKERS[bought.group % len(MARKERS)], "-")


def _handles(found: Frontier, numbers: dict[str, str]) -> "list[Line2D]":
    """Return the legend: rows by number, or the points of the grid, where there is one."""
    rows = found.panels[0].rows
    if numbers:
        return [
            _look(bought).handle(f"{numbers[bought.name]}  {bought.name}", has_line=False)
            for bought in rows
            if bought.name in numbers
        ]
    if len(found.groups) < 2:
        return []
    first = {bought.group: bought for bought in rows if not bought.row.is_ceiling}
    return [_look(bought).handle(found.groups[group], has_line=False) for group, bought in first.items()]


def _draw_points(axes: "Axes", panel: CostPanel) -> None:
    for bought, amount, cell in panel.shown:
        of = _look(bought)
        axes.errorbar(
            amount,
            cell.mean,
            yerr=cell.half_width,
            fmt=of.marker,
            color=of.colour,
            markersize=4,
            markerfacecolor="white" if cell.half_width is None else of.colour,
            elinewidth=0.9,
            capsize=1.5,
        )


def _joint(axes: "Axes", panel: CostPanel) -> list[tuple[float, float]]:
    """Return the corners of the steps that join the frontier: so much can be had for so much or less."""
    best = sorted({(amount, cell.mean) for bought, amount, cell in panel.shown if bought.on_frontier})
    corners = best[:1]
    for amount, mean in best[1:]:
        corners += [(amount, corners[-1][1]), (amount, mean)]
    return [*corners, (axes.get_xlim()[1], corners[-1][1])] if corners else []


def _reach(panel: CostPanel) -> tuple[float, float]:
    """Return the lowest and the highest end of an interval, with a margin."""
    ends = [
        cell.mean + sign * (cell.half_width or 0.0) for _, _, cell in panel.shown for sign in (-1, 1)
    ] or [0.0]
    margin = max(Y_MARGIN * (max(ends) - min(ends)), 0.5)
    return min(ends) - margin, max(ends) + margin
