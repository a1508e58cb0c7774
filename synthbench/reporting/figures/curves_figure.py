"""Scores against an amount as a figure: a panel for each column, a line for each variant."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench.reporting.figures.amounts import beside, scale_amounts
from synthbench.reporting.figures.curves import Curve, Curves, Point
from synthbench.reporting.figures.panels import AXIS_WIDTH, CEILING, Look, Texts, look, panels_figure
from synthbench.reporting.figures.style import SCORE, alike_limits
from synthbench.reporting.figures.text import POINTS_PER_INCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DODGE = 2.0  # points between lines at the same amount, so that no interval hides another
MARKER_SIZE = 4.0  # points
Y_MARGIN = 0.08


def curves_figure(curves: Curves) -> "Figure":
    """Return means with 95 % intervals over seeds, scores x 100; call it within `figure_style`.

    The amounts stand on a logarithmic scale if they span more than a decade; 0 stands left of it. A hollow
    marker is a single value, without an interval.
    """
    looks = _looks(curves.lines)
    has_lines = any(len(line.points) > 1 for _, lines in curves.panels for line in lines)
    handles = [
        one.handle(line.label, has_line=has_lines) for line, one in zip(curves.lines, looks, strict=True)
    ]
    titles = [title for title, _ in curves.panels]
    texts = Texts(curves.caption, titles, curves.x_title, SCORE, curves.notes)
    figure, panels = panels_figure(texts, handles)
    num_across = len({round(panel.get_position().x0, 6) for panel in panels})
    width = figure.get_figwidth() / num_across - AXIS_WIDTH
    for panel, (_, lines) in zip(panels, curves.panels, strict=True):
        at_amount = Counter(point.x for line in lines for point in line.points)
        room = MARKER_SIZE + DODGE * max(at_amount.values(), default=0) / 2
        scale_amounts(panel, sorted(at_amount), width, room=room / POINTS_PER_INCH)
        drawn: Counter[float] = Counter()
        for line, of_line in zip(lines, looks, strict=True):
            shifts = [_shift(point, drawn, at_amount) / POINTS_PER_INCH for point in line.points]
            amounts = [point.x for point in line.points]
            _draw(panel, line, of_line, beside(panel, amounts, shifts, width))
    for panel, limits in zip(
        panels, alike_limits([_reach(lines) for _, lines in curves.panels]), strict=True
    ):
        panel.set_ylim(*limits)
    return figure


def _shift(point: Point, drawn: Counter[float], at_amount: Counter[float]) -> float:
    """Return by how many points the next one at its amount stands right of it, and count it as drawn."""
    drawn[point.x] += 1
    return DODGE * (drawn[point.x] - (at_amount[point.x] + 1) / 2)


def _looks(lines: Sequence[Curve]) -> list[Look]:
    compared = [line for line in lines if not line.is_ceiling]
    return [CEILING if line.is_ceiling else look(compared.index(line)) for line in lines]


def _draw(panel: "Axes", line: Curve, of_line: Look, places: Sequence[float]) -> None:
    panel.plot(
        places,
        [point.cell.mean for point in line.points],
        color=of_line.colour,
        linestyle=of_line.dashes,
        linewidth=1.1,
    )
    for point, place in zip(line.points, places, strict=True):
        panel.errorbar(
            place,
            point.cell.mean,
            yerr=point.cell.half_width,
            fmt=of_line.marker,
            color=of_line.colour,
            markersize=MARKER_SIZE,
            markerfacecolor="white" if point.cell.half_width is None else of_line.colour,
            elinewidth=1.0,
            capsize=1.5,
        )


def _reach(lines: Sequence[Curve]) -> tuple[float, float]:
    """Return the lowest and the highest end of an interval, with a margin."""
    ends = [
        point.cell.mean + sign * (point.cell.half_width or 0.0)
        for line in lines
        for point in line.points
        for sign in (-1, 1)
    ] or [0.0]
    margin = max(Y_MARGIN * (max(ends) - min(ends)), 0.5)
    return min(ends) - margin, max(ends) + margin
