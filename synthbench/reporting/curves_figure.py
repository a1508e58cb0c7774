"""Scores against an amount as a figure: a panel for each column, a line for each variant."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench.reporting.curves import Curve, Curves
from synthbench.reporting.figure_files import SMALL_FONT_SIZE
from synthbench.reporting.figure_text import POINTS_PER_INCH, text_width
from synthbench.reporting.panels import AXIS_WIDTH, CEILING, Look, Texts, look, panels_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DODGE = 2.0  # points between lines at the same amount, so that no interval hides another
X_MARGIN, Y_MARGIN = 0.07, 0.08
LABEL_GAP = 0.04


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
        _scale_x(panel, amounts, width)
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
            yerr=point.half_width,
            fmt=of_line.marker,
            color=of_line.colour,
            markersize=4,
            markerfacecolor="white" if point.half_width is None else of_line.colour,
            elinewidth=1.0,
            capsize=1.5,
            transform=moved,
        )


def _scale_x(panel: "Axes", amounts: Sequence[float], width: float) -> None:
    """Set scale, limits and the labels of the amounts, as many as there is room for."""
    positive = [amount for amount in amounts if amount > 0]
    if positive and positive[-1] > 10 * positive[0]:
        panel.set_xscale("symlog" if amounts[0] <= 0 else "log", **_zero(amounts, positive))
    transform = panel.xaxis.get_transform()
    ends = [float(transform.transform(amount)) for amount in (amounts[0], amounts[-1])] if amounts else [0, 1]
    margin = X_MARGIN * (ends[1] - ends[0]) or 0.5
    panel.set_xlim(
        *(float(transform.inverted().transform(end)) for end in (ends[0] - margin, ends[1] + margin))
    )
    span = ends[1] - ends[0] + 2 * margin
    places = [(float(transform.transform(amount)) - ends[0] + margin) / span * width for amount in amounts]
    panel.set_xticks(amounts, _labels(amounts, places))
    panel.minorticks_off()


def _zero(amounts: Sequence[float], positive: Sequence[float]) -> dict[str, float]:
    """Return where a scale with 0 on it stops to be logarithmic."""
    return {"linthresh": positive[0], "linscale": 0.5} if amounts[0] <= 0 else {}


def _labels(amounts: Sequence[float], places: Sequence[float]) -> list[str]:
    """Label amounts from right to left, leaving out those whose labels would meet the one before."""
    labels: list[str] = []
    free_to = float("inf")
    for amount, place in zip(reversed(amounts), reversed(places), strict=True):
        text = _amount_text(amount)
        half = text_width(text, SMALL_FONT_SIZE) / 2
        fits = place + half <= free_to
        labels.append(text if fits else "")
        free_to = place - half - LABEL_GAP if fits else free_to
    return labels[::-1]


def _amount_text(amount: float) -> str:
    """Return an amount in four digits at most, from 10,000 on in thousands."""
    if amount < 10_000:
        return f"{amount:,.0f}" if amount == round(amount) else f"{amount:.4g}"
    return f"{amount / 1000:.3g}k" if amount < 1_000_000 else f"{amount / 1000:,.0f}k"


def _scale_y(panel: "Axes", lines: Sequence[Curve]) -> None:
    ends = [
        point.cell.mean + sign * (point.half_width or 0.0)
        for line in lines
        for point in line.points
        for sign in (-1, 1)
    ] or [0.0]
    margin = max(Y_MARGIN * (max(ends) - min(ends)), 0.5)
    panel.set_ylim(min(ends) - margin, max(ends) + margin)
