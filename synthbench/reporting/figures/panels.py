"""The layout of figures with lines: panels between a caption and notes, one legend for all."""

import math
from collections.abc import Sequence
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
)
from synthbench.reporting.figures.text import framed, text_height, text_width, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Inches.
PANEL_HEIGHT, AXIS_HEIGHT, HANDLE_WIDTH, AXIS_WIDTH = 1.6, 0.45, 0.55, 0.4
PANELS_PER_LINE = 3
LEGEND_GAP = 0.12


@dataclass(frozen=True)
class Look:
    """What tells a line from the others, in grey print too."""

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


def look(number: int) -> Look:
    """Return the look of the line of that number; the first 84 differ."""
    return Look(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], DASHES[number % len(DASHES)])


@dataclass(frozen=True)
class Texts:
    """What is written around the panels, plain; `titles` has one for each panel, empty ones take no room.

    Without a caption there are no notes either.
    """

    caption: str
    titles: Sequence[str]
    x_title: str
    y_title: str
    notes: Sequence[str] = ()


def panels_figure(texts: Texts, handles: "Sequence[Line2D]") -> "tuple[Figure, list[Axes]]":
    """Return a figure of empty panels, with the legend of these handles; call it within `figure_style`.

    One panel is as wide as a paper's column, three are as wide as its text.
    """
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    num_down = math.ceil(len(texts.titles) / PANELS_PER_LINE)
    num_across = math.ceil(len(texts.titles) / num_down)
    width = min(NARROWEST + (num_across - 1) * (WIDEST - NARROWEST) / 2, WIDEST)
    panel_width = width / num_across - AXIS_WIDTH / 2
    titles = [wrapped(title, panel_width) for title in texts.titles]
    frame = framed(texts.caption, texts.notes, width)
    num_columns = _legend_columns([str(handle.get_label()) for handle in handles], width)
    legend_height = _legend_height(len(handles), num_columns)

    row_height = PANEL_HEIGHT + max(map(text_height, titles)) + AXIS_HEIGHT
    height = num_down * row_height + legend_height
    height += frame.height + LEGEND_GAP
    figure = Figure((width, height), layout=ConstrainedLayoutEngine(h_pad=0.05, hspace=0.03))
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
