"""Shared parts of line figures: layout, legend, points with intervals, and the axis of amounts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from synthbench.reporting.figures.style import (
    CEILING_COLOUR,
    CEILING_MARKER,
    COLOURS,
    DASHES,
    MARKERS,
    NARROWEST,
    SMALL_FONT_SIZE,
    WIDEST,
    framed,
    text_height,
    text_width,
    wrapped,
)
from synthbench.reporting.model.table import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Inches.
PANEL_HEIGHT = 1.6
AXIS_HEIGHT, HANDLE_WIDTH, AXIS_WIDTH = 0.45, 0.55, 0.4
PANELS_PER_LINE = 3
MOST_PANELS = 9
"""Maximum number of panels in a figure; with legend and notes, these still fit a page."""
LEGEND_GAP = 0.12
MARKER_SIZE = 4.0  # points


@dataclass(frozen=True)
class Look:
    """Colour, marker and dashes of a line, distinct also in grey print."""

    colour: str
    marker: str
    dashes: Literal["-", "--", "-.", ":"]

    def handle(self, label: str, *, has_marker: bool = True, has_line: bool = True) -> "Line2D":
        """Return the line's entry in the legend."""
        from matplotlib.lines import Line2D

        return Line2D(
            [],
            [],
            color=self.colour,
            marker=self.marker if has_marker else "none",
            markersize=4,
            linestyle=self.dashes if has_line else "none",
            label=label,
        )


CEILING = Look(CEILING_COLOUR, CEILING_MARKER, "--")


def draw_point(axes: "Axes", at: tuple[float, Cell], of_line: Look, line_width: float) -> None:
    """Draw a mean with its interval; `at` is (x value, cell). Without an interval the marker is hollow."""
    amount, cell = at
    axes.errorbar(
        amount,
        cell.mean,
        yerr=cell.half_width,
        fmt=of_line.marker,
        color=of_line.colour,
        markersize=MARKER_SIZE,
        markerfacecolor="white" if cell.half_width is None else of_line.colour,
        elinewidth=line_width,
        capsize=1.5,
    )


def score_range(cells: Iterable[Cell], margin: float) -> tuple[float, float]:
    """Return the range of all intervals with room at each end.

    The room is `margin` x the range's width, and at least 0.5 points.
    """
    ends = [cell.mean + sign * (cell.half_width or 0.0) for cell in cells for sign in (-1, 1)] or [0.0]
    room = max(margin * (max(ends) - min(ends)), 0.5)
    return min(ends) - room, max(ends) + room


def look(number: int) -> Look:
    """Return the look of line `number`; the first 84 lines all look different."""
    return Look(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)])


@dataclass(frozen=True)
class PanelTexts:
    """The plain texts around the panels; `titles` has a title per panel, and empty titles take no space.

    Without a caption, the notes are left out.
    """

    caption: str
    titles: Sequence[str]
    x_title: str
    y_title: str
    notes: Sequence[str] = ()


def panels_figure(
    texts: PanelTexts, handles: "Sequence[Line2D]", height: float = PANEL_HEIGHT
) -> "tuple[Figure, list[Axes]]":
    """Return a figure with a legend of `handles`, and its empty panels; call it within `figure_style`.

    With one panel across, the figure is as wide as a paper's column; with three, as wide as the paper's text.
    `height` is that of a panel in inches; above PANEL_HEIGHT the figure is always as wide as the text.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    num_down = math.ceil(len(texts.titles) / PANELS_PER_LINE)
    num_across = math.ceil(len(texts.titles) / num_down)
    width = (
        WIDEST
        if height > PANEL_HEIGHT
        else min(NARROWEST + (num_across - 1) * (WIDEST - NARROWEST) / 2, WIDEST)
    )
    panel_width = width / num_across - AXIS_WIDTH / 2
    titles = [wrapped(title, panel_width) for title in texts.titles]
    frame = framed(texts.caption, texts.notes, width)
    num_columns = _legend_columns([str(handle.get_label()) for handle in handles], width)
    legend_height = _legend_height(len(handles), num_columns)

    row_height = height + max(map(text_height, titles)) + AXIS_HEIGHT
    whole = num_down * row_height + legend_height + frame.height + LEGEND_GAP
    figure = Figure((width, whole), layout=ConstrainedLayoutEngine(h_pad=0.05, hspace=0.03))
    frame.draw(figure)
    grid = figure.add_gridspec(
        num_down + 1, num_across, height_ratios=[*[row_height] * num_down, max(legend_height, 0.01)]
    )
    panels = [figure.add_subplot(grid[divmod(number, num_across)]) for number in range(len(titles))]
    for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        panel.set_title(title)
        panel.grid(axis="both")
        panel.tick_params(axis="both", length=0)
        panel.tick_params(axis="y", labelsize=SMALL_FONT_SIZE)
        panel.set_xlabel(texts.x_title if number + num_across >= len(titles) else "")
        panel.set_ylabel(texts.y_title if number % num_across == 0 else "")
    _draw_legend(figure.add_subplot(grid[num_down, :]), handles, num_columns)
    return figure, panels


def _draw_legend(axes: "Axes", handles: "Sequence[Line2D]", num_columns: int) -> None:
    axes.axis("off")
    if handles:
        axes.legend(
            handles=list(handles),
            loc="upper left",
            ncols=num_columns,
            frameon=False,
            fontsize=SMALL_FONT_SIZE,
            borderpad=0.0,
            borderaxespad=0.0,
            handlelength=2.6,
            columnspacing=1.2,
        )


def _legend_columns(labels: Sequence[str], width: float) -> int:
    widest = max((text_width(label, SMALL_FONT_SIZE) for label in labels), default=0.0)
    return max(1, min(len(labels), int(width / (widest + HANDLE_WIDTH))))


def _legend_height(num_entries: int, num_columns: int) -> float:
    lines = math.ceil(num_entries / num_columns)
    return lines * (text_height("x", SMALL_FONT_SIZE) + 0.06)


MARGIN = 0.07
MOST_ROOM = 0.3
LABEL_GAP = 0.04
MOST_TICKS = 6


def scale_amounts(
    panel: "Axes",
    amounts: Sequence[float],
    width: float,
    ticks: Sequence[float] | None = None,
    room: float = 0.0,
) -> None:
    """Set scale and limits of the x axis for amounts, and as many tick labels as fit into `width` inches.

    `amounts` are sorted and not negative; `ticks` defaults to `amounts`. At least `room` inches stay free
    left of the first and right of the last amount.
    """
    positive = [amount for amount in amounts if amount > 0]
    if needs_logarithm(amounts):
        # With 0 the scale is linear around it, and logarithmic beyond.
        zero = {"linthresh": positive[0], "linscale": 0.5} if amounts[0] <= 0 else {}
        panel.set_xscale("symlog" if zero else "log", **zero)
    transform = panel.xaxis.get_transform()
    ends = [float(transform.transform(amount)) for amount in (amounts[0], amounts[-1])] if amounts else [0, 1]
    share = min(room / width, MOST_ROOM)
    margin = max(MARGIN, share / (1 - 2 * share)) * (ends[1] - ends[0]) or 0.5
    panel.set_xlim(
        *(float(transform.inverted().transform(end)) for end in (ends[0] - margin, ends[1] + margin))
    )
    span = ends[1] - ends[0] + 2 * margin
    shown = amounts if ticks is None else ticks
    positions = [(float(transform.transform(amount)) - ends[0] + margin) / span * width for amount in shown]
    panel.set_xticks(shown, _labels(shown, positions))
    panel.minorticks_off()


def beside(panel: "Axes", amounts: Sequence[float], shifts: Sequence[float], width: float) -> list[float]:
    """Return the x values `shifts` inches to the right of `amounts`; the panel is `width` inches wide.

    Set the panel's scale with `scale_amounts` first.
    """
    transform = panel.xaxis.get_transform()
    left, right = (float(transform.transform(limit)) for limit in panel.get_xlim())
    return [
        float(transform.inverted().transform(transform.transform(amount) + shift * (right - left) / width))
        for amount, shift in zip(amounts, shifts, strict=True)
    ]


def needs_logarithm(amounts: Sequence[float]) -> bool:
    """Return whether the positive ones of these sorted amounts span more than a factor of 10."""
    positive = [amount for amount in amounts if amount > 0]
    return bool(positive) and positive[-1] > 10 * positive[0]


def round_ticks(amounts: Sequence[float]) -> list[float]:
    """Return ticks: round numbers within the range of sorted amounts, and 0 if it is one of the amounts.

    On a logarithmic scale, ticks are 1, 2 and 5 times powers of 10, or powers of 10 alone if these are many.
    """
    from matplotlib.ticker import MaxNLocator

    positive = [amount for amount in amounts if amount > 0]
    if not needs_logarithm(amounts):
        ends = (amounts[0], amounts[-1]) if amounts else (0.0, 1.0)
        found = [float(tick) for tick in MaxNLocator(MOST_TICKS - 1).tick_values(*ends)]
        return [tick for tick in found if ends[0] <= tick <= ends[1]] or list(ends)
    low, high = (math.floor(math.log10(amount)) for amount in (positive[0], positive[-1]))
    fine = [digit * 10.0**power for power in range(low, high + 1) for digit in (1, 2, 5)]
    fine = [tick for tick in fine if positive[0] <= tick <= positive[-1]]
    step = math.ceil((high - low + 1) / MOST_TICKS)
    coarse = [10.0**power for power in range(low, high + 1, step) if 10.0**power >= positive[0]]
    return [*([0.0] if amounts[0] <= 0 else []), *(fine if len(fine) <= MOST_TICKS else coarse)]


def _labels(amounts: Sequence[float], positions: Sequence[float]) -> list[str]:
    """Label amounts from right to left, leaving out labels that would overlap the previous one."""
    labels: list[str] = []
    free_to = float("inf")
    for amount, position in zip(reversed(amounts), reversed(positions), strict=True):
        text = _amount_text(amount)
        half = text_width(text, SMALL_FONT_SIZE) / 2
        fits = position + half <= free_to
        labels.append(text if fits else "")
        free_to = position - half - LABEL_GAP if fits else free_to
    return labels[::-1]


def _amount_text(amount: float) -> str:
    """Return an amount as rounded text, from 10,000 on in thousands, such as "12.3k"."""
    if amount < 10_000:
        return f"{amount:,.0f}" if amount == round(amount) else f"{amount:.4g}"
    return f"{amount / 1000:.3g}k" if amount < 999_500 else f"{amount / 1000:,.0f}k"
