"""Rank correlation of early with final dev scores as a figure: a line for each row."""

from typing import TYPE_CHECKING

from synthbench.reporting.figures.early_dev import EarlyDev, EarlyDevs, grid_notes
from synthbench.reporting.figures.panels import Texts, look, panels_figure
from synthbench.reporting.figures.style import SMALL_FONT_SIZE, TEXT_COLOUR

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What AugSBERT's paper says of its own: a correlation of over 0.8 at about 20 % of the steps.
EARLY_PERCENT, HIGH_CORRELATION = 20, 0.8


def early_dev_figure(found: EarlyDevs) -> "Figure":
    """Return the correlations against the share of the steps; call it within `figure_style`."""
    looks = [look(number) for number in range(len(found.rows))]
    handles = [of.handle(_label(row, found)) for row, of in zip(found.rows, looks, strict=True)]
    texts = Texts(found.caption, [""], "% of the steps", "rank correlation", grid_notes(found))
    figure, (panel,) = panels_figure(texts, handles)
    _draw_guides(panel)
    for row, of in zip(found.rows, looks, strict=True):
        points = [point for point in row.points if point.correlation is not None]
        panel.plot(
            [100 * point.share for point in points],
            [point.correlation for point in points],  # type: ignore[arg-type]
            color=of.colour,
            marker=of.marker,
            markersize=3.5,
            linestyle=of.dashes,
            linewidth=1.1,
        )
    panel.set_xlim(0, 102)
    panel.set_xticks(range(0, 101, 20))
    panel.set_ylim(top=1.04)
    return figure


def _label(row: EarlyDev, found: EarlyDevs) -> str:
    is_same = len({each.num_seeds for each in found.rows}) == 1
    return row.label if is_same else f"{row.label} (n = {row.num_seeds})"


def _draw_guides(panel: "Axes") -> None:
    """Draw where the paper found what, labelled at the ends of the lines."""
    panel.axvline(EARLY_PERCENT, color=TEXT_COLOUR, linewidth=0.9, linestyle=(0, (1, 1)))
    panel.axhline(HIGH_CORRELATION, color=TEXT_COLOUR, linewidth=0.9, linestyle=(0, (1, 1)))
    panel.annotate(
        f"{HIGH_CORRELATION}",
        (1.0, HIGH_CORRELATION),
        xycoords=("axes fraction", "data"),
        xytext=(2, 0),
        textcoords="offset points",
        va="center",
        size=SMALL_FONT_SIZE,
        color=TEXT_COLOUR,
    )
