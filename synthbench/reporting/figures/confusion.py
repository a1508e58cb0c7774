"""A figure of audits: intended against judged labels, a panel per audit."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from synthbench.reporting.figures.style import (
    NARROWEST,
    SMALL_FONT_SIZE,
    WIDEST,
    framed,
    text_height,
    text_width,
    wrapped,
)
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.audit_section import waiting_title
from synthbench.reporting.model.experiment_notes import overridden
from synthbench.reporting.model.sections import ReportSection
from synthbench.reporting.results import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from synthbench.auditing.confusion import Confusion

# Inches.
CELL_WIDTH, CELL_GAP, PANEL_GAP, AXIS_HEIGHT = 0.48, 0.06, 0.35, 0.5
TINY_FONT_SIZE = 5.5
DARK = 55.0  # percent; darker cells have light text
MEANING = (
    "Percent of the column's intended label that were judged as the row's, with 95 % interval (Wilson);"
    " n: number judged."
)


@dataclass(frozen=True)
class _Panel:
    """One audit, with its cells' texts and its size."""

    title: str
    confusion: "Confusion"
    published: Mapping[str, Mapping[str, str]]

    @cached_property
    def columns(self) -> list[str]:
        """The labels of the columns."""
        return [f"{name}\nn = {self.confusion.totals[name]:,}" for name in self.confusion.columns]

    @property
    def label_width(self) -> float:
        """The width in inches of the row names and their axis title."""
        return max(text_width(row, SMALL_FONT_SIZE) for row in self.confusion.rows) + PANEL_GAP

    @property
    def width(self) -> float:
        """The panel's width in inches, with its labels."""
        parts = [part for column in self.columns for part in column.splitlines()]
        widest = max(text_width(part, SMALL_FONT_SIZE) for part in parts)
        return self.label_width + len(self.columns) * max(CELL_WIDTH, widest + CELL_GAP)

    @property
    def height(self) -> float:
        """The height of the cells in inches."""
        lines = "\n".join(["x"] * (3 if self.published else 2))
        return len(self.confusion.rows) * (text_height(lines, SMALL_FONT_SIZE) + CELL_GAP)


@dataclass(frozen=True)
class Confusions:
    """A panel for each judged audit, and the notes below."""

    name: ClassVar = "confusion"
    title: ClassVar = "Intended and judged labels"
    section: ClassVar[ReportSection | None] = None
    caption: str
    panels: Sequence[_Panel]
    notes: tuple[str, ...]

    def draw(self, *, has_caption: bool = True) -> "Figure":
        """Return a figure of judged labels' shares in percent, with a paper's shares if there are any.

        Call it within `figure_style`.
        """
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        panels = self.panels
        num_across = max(1, min(len(panels), int(WIDEST / max(panel.width for panel in panels))))
        widest = min(max(panel.width for panel in panels), WIDEST)
        width = max(NARROWEST, num_across * widest)
        lines = [panels[first : first + num_across] for first in range(0, len(panels), num_across)]
        titles = [wrapped(panel.title, width / num_across - CELL_GAP) for panel in panels]
        frame = framed(self.caption if has_caption else "", self.notes, width)

        above = max(map(text_height, titles)) + AXIS_HEIGHT
        heights = [max(panel.height for panel in line) + above for line in lines]
        height = sum(heights) + frame.height + AXIS_HEIGHT / 2
        figure = Figure((width, height), layout=ConstrainedLayoutEngine(h_pad=0.06, hspace=0.04))
        frame.draw(figure)
        grid = figure.add_gridspec(len(lines), num_across, height_ratios=heights)
        for number, (panel, title) in enumerate(zip(panels, titles, strict=True)):
            _draw(figure.add_subplot(grid[divmod(number, num_across)]), panel, title)
        return figure


def confusions(analysis: Analysis) -> Confusions | None:
    """Return the confusions of all audits; None if none is judged."""
    result = analysis.result
    panels = [
        _Panel(each.title, each.audit.confusion, each.published.cells if each.published else {})
        for each in result.audits
        if each.audit is not None and each.audit.confusion.columns
    ]
    caption = (result.description or result.experiment).rstrip(".?!")
    caption = f"{caption}: intended and judged labels"
    return Confusions(caption, panels, tuple(_notes(result))) if panels else None


def _notes(result: ExperimentResult) -> Iterator[str]:
    yield from overridden(result)
    yield MEANING
    yield from dict.fromkeys(f"Judged by: {each.audit.judge}." for each in result.audits if each.audit)
    sources = (each.published.source for each in result.audits if each.published)
    yield from (f"Paper: percent of the paper's own data, {source}." for source in dict.fromkeys(sources))
    yield from (f"{waiting_title(each)}." for each in result.audits if each.audit is None)


def _draw(axes: "Axes", panel: _Panel, title: str) -> None:
    confusion = panel.confusion
    columns = confusion.columns
    shares = [[confusion.cells[row][column].percent for column in columns] for row in confusion.rows]
    axes.pcolormesh(shares, cmap="Blues", vmin=0, vmax=100, edgecolors="white", linewidth=1.0)
    axes.invert_yaxis()
    for height, row in enumerate(confusion.rows):
        for index, column in enumerate(columns):
            _write(axes, (index + 0.5, height + 0.5), _texts(panel, row, column), shares[height][index])
    axes.set_title(title, loc="right")  # on the right, above the row names
    axes.set_xticks([index + 0.5 for index in range(len(panel.columns))], panel.columns)
    axes.set_yticks([index + 0.5 for index in range(len(confusion.rows))], confusion.rows)
    axes.tick_params(axis="both", length=0, labelsize=SMALL_FONT_SIZE)
    axes.set_xlabel("intended")
    axes.set_ylabel("judged")
    axes.spines["bottom"].set_visible(False)


def _texts(panel: _Panel, row: str, column: str) -> tuple[str, str]:
    """Return a cell's large and small text."""
    share = panel.confusion.cells[row][column]
    theirs = panel.published.get(row, {}).get(column)
    interval = f"{share.low:.0f} to {share.high:.0f}"
    return f"{share.percent:.1f}", interval if theirs is None else f"{interval}\npaper {theirs}"


def _write(axes: "Axes", at: tuple[float, float], texts: tuple[str, str], percent: float) -> None:
    colour = "white" if percent > DARK else "black"
    for text, side, size in zip(texts, ("bottom", "top"), (SMALL_FONT_SIZE, TINY_FONT_SIZE), strict=True):
        axes.annotate(text, at, ha="center", va=side, size=size, color=colour, linespacing=1.1)
