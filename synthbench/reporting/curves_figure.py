"""Scores against an amount as a figure: a panel for each column, a line for each variant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench.reporting.amounts import scale_amounts
from synthbench.reporting.curves import Curve, Curves
from synthbench.reporting.figure_text import POINTS_PER_INCH
from synthbench.reporting.panels import AXIS_WIDTH, CEILING, Look, Texts, look, panels_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DODGE = 2.0  # points between lines at the same amount, so that no interval hides another
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
    texts = Texts(curves.caption, titles, curves.x_title, "score × 100", curves.notes)
    figure, panels = panels_figure(texts, handles)
    num_across = len({round(panel.get_position().x0, 6) for panel in panels})
    width = figure.get_figwidth() / num_across - AXIS_WIDTH
    for panel, (_, lines) in zip(panels, curves.panels, strict=True):
        every = [point.x for line in lines for point in line.points]
        amounts = sorted(set(every))
        scale_amounts(panel, amounts, width)
        apart = DODGE if len(amounts) < len(every) else 0.0
        for number, (line, of_line) in enumerate(zip(lines, looks, strict=True)):
            _draw(panel, line, of_line, (number - (len(lines) - 1) / 2) * apart)
        _scale_y(panel, lines)
    return figure


def _looks(lines: Sequence[Curve]) -> list[Look]:
    compared = [line for line in lines if not line.is_ceiling]
    return [CEILING if line.is_ceiling else look(compared.index(line)) for line in lines]


def _draw(panel: "Axes", line: Curve, of_line: Look, shift: float) -> None:
    from matplotlib.transforms import ScaledTranslation

    figure = panel.get_figure()
    assert figure is not None
    moved = panel.transData + ScaledTranslation(shift / POINTS_PER_INCH, 0, figure.dpi_scale_trans)
    places = [(point.x, point.cell.mean) for point in line.points]
    panel.plot(
        *zip(*places, strict=True) if places else ([], []),
        color=of_line.colour,
        linestyle=of_line.dashes,
        linewidth=1.1,
        transform=moved,
    )
    for point in line.points:
        panel.errorbar(
            point.x,
            point.cell.mean,
            yerr=point.cell.half_width,
            fmt=of_line.marker,
            color=of_line.colour,
            markersize=4,
            markerfacecolor="white" if point.cell.half_width is None else of_line.colour,
            elinewidth=1.0,
            capsize=1.5,
            transform=moved,
        )


def _scale_y(panel: "Axes", lines: Sequence[Curve]) -> None:
    ends = [
        point.cell.mean + sign * (point.cell.half_width or 0.0)
        for line in lines
        for point in line.points
        for sign in (-1, 1)
    ] or [0.0]
    margin = max(Y_MARGIN * (max(ends) - min(ends)), 0.5)
    panel.set_ylim(min(ends) - margin, max(ends) + margin)
