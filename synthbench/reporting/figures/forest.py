"""The forest plot as a figure: a line per primary difference, with its interval and its numbers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from synthbench.reporting.figures.style import (
    COLOURS,
    GUIDE_COLOUR,
    GUIDE_WIDTH,
    HIGHEST,
    NARROWEST,
    SMALL_FONT_SIZE,
    TEXT_COLOUR,
    WIDEST,
    folded,
    framed,
    text_height,
    text_width,
    write_at_right,
)
from synthbench.reporting.model.forest import Forest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches.
TRACK_WIDTH, LINE_SPACING, AXIS_HEIGHT, GAP = 2.2, 0.06, 0.4, 0.08
LABEL_LENGTH = 44
TALLEST = HIGHEST - 1.4
"""Maximum height of all lines in inches; title, notes and axis need the rest of a page."""


def forest_figure(forest: Forest, notes: Sequence[str] = (), *, has_caption: bool = True) -> "Figure":
    """Return the figure; call it within `figure_style`. A filled marker is a significant difference."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    line_height = max(text_height(folded(label, LABEL_LENGTH)) for label in forest.labels) + LINE_SPACING
    shown = forest.cut(int(TALLEST / line_height))
    labels = [folded(label, LABEL_LENGTH) for label in shown.labels]
    numbers = max(text_width(each.text, SMALL_FONT_SIZE) for each in shown.lines) + GAP
    names = max(text_width(part) for label in labels for part in label.splitlines()) + GAP
    width = min(max(names + TRACK_WIDTH + numbers, NARROWEST), WIDEST)
    frame = framed(shown.title if has_caption else "", [*filter(None, [shown.more]), *notes], width)
    height = len(labels) * line_height + AXIS_HEIGHT + frame.height
    figure = Figure((width, height), layout=ConstrainedLayoutEngine(h_pad=0.04, w_pad=0.04))
    frame.draw(figure)
    axes = figure.subplots()
    axes.set_xlim(shown.low, shown.high)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.axvline(0.0, color=TEXT_COLOUR, linewidth=0.7, zorder=1.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("difference × 100")
    axes.set_yticks(range(len(labels)), labels)
    _draw(axes, shown)
    return figure


def _draw(axes: "Axes", forest: Forest) -> None:
    height, ticks = 0, axes.get_yticklabels()
    for title, lines in forest.groups:
        if title:
            ticks[height].set_fontweight("bold")
            height += 1
        for each in lines:
            colour = COLOURS[0] if each.direction else TEXT_COLOUR
            axes.axhline(height, color=GUIDE_COLOUR, linewidth=GUIDE_WIDTH, zorder=1)
            axes.plot((each.low, each.high), (height, height), color=colour, lw=1.3, solid_capstyle="butt")
            axes.plot(each.value, height, "o", color=colour, ms=4, mfc=colour if each.direction else "white")
            weight = "bold" if each.direction else "normal"
            write_at_right(axes, each.text, height, 4, weight=weight)
            height += 1
