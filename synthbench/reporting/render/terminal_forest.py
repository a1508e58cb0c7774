"""The forest plot in characters, fitted to a terminal's width."""

from typing import TYPE_CHECKING

from synthbench.base.listing import shortened
from synthbench.reporting.model.forest import Forest, ForestLine

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

MOST_LINES = 12
NARROWEST, WIDEST = 12, 40
"""Limits of the plot's width without names and numbers, in characters."""
LONGEST_NAME = 44
BAR, ZERO, CROSSING, SIGNIFICANT, OTHER = "─", "│", "┼", "●", "○"


def terminal_forest(forest: Forest, console: "Console") -> "list[Text]":
    """Return the plot's lines: a title, then each difference with name, interval and numbers."""
    from rich.text import Text

    shown = forest.cut(MOST_LINES)
    names = max(min(len(each.name), LONGEST_NAME) for each in shown.lines)
    numbers = max(len(each.text) for each in shown.lines)
    width = max(NARROWEST, min(WIDEST, console.width - names - numbers - 4))
    lines = [Text(shown.title, style="italic")]
    for title, of_group in shown.groups:
        lines += [Text(title, style="bold")] if title else []
        for each in of_group:
            name = shortened(each.name, LONGEST_NAME)
            style = "bold" if each.direction else ""
            track = _track(shown, each, width)
            lines.append(Text.assemble(name.ljust(names), "  ", track, "  ", (each.text, style)))
    return [*lines, *([Text(shown.more, style="dim")] if shown.more else [])]


def _track(forest: Forest, line: ForestLine, width: int) -> str:
    def place(value: float) -> int:
        return round(forest.share(value) * (width - 1))

    cells = [" "] * width
    zero, start, end = place(0.0), place(line.low), place(line.high)
    if line.direction:
        # Rounding to characters must not let a significant interval touch 0.
        start, end = (max(start, zero + 1), end) if line.direction > 0 else (start, min(end, zero - 1))
    cells[zero] = ZERO
    for index in range(start, end + 1):
        cells[index] = CROSSING if index == zero else BAR
    cells[place(line.value)] = SIGNIFICANT if line.direction else OTHER
    return "".join(cells)
