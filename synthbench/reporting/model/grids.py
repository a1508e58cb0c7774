"""Tables of texts, for what is no table of scores, and their printers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.escaping import markdown_text
from synthbench.reporting.render import latex_text
from synthbench.reporting.render.latex_layout import ORIGIN, Layout, fitted, split

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

Line = tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first column names the rows, `foot` stands below a rule."""

    title: str
    header: Line
    body: tuple[Line, ...]
    foot: tuple[Line, ...] = ()


def terminal_grid(grid: Grid, notes: Iterable[str]) -> "RenderableType":
    """Return what rich prints: title, grid and notes."""
    from rich.console import Group
    from rich.text import Text

    return Group(Text(grid.title), rich_grid(grid), *map(Text, notes))


def markdown_document(grid: Grid, notes: Iterable[str]) -> str:
    """Return title, grid and notes."""
    listed = [f"- {markdown_text(note)}" for note in notes]
    return "\n".join([f"**{markdown_text(grid.title)}**", "", *markdown_grid(grid), "", *listed]) + "\n"


def latex_document(grid: Grid, notes: Iterable[str], layout: Layout) -> str:
    """Return a `table` environment, or several of a long grid."""
    return "\n".join([ORIGIN, *layout.environments(grid.title, latex_parts(grid), notes)]) + "\n"


def rich_grid(grid: Grid) -> "RichTable":
    """Return a grid as rich prints it, without its title."""
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable()
    for number, name in enumerate(grid.header):
        table.add_column(Text(name), justify="right" if number else "left")
    for line in grid.body:
        table.add_row(*map(Text, line))
    table.add_section()
    for line in grid.foot:
        table.add_row(*map(Text, line))
    return table


def markdown_grid(grid: Grid) -> list[str]:
    """Return the lines of a grid in GitHub-flavoured Markdown, without its title."""
    rows = [tuple(map(markdown_text, grid.header)), ("---", *("---:" for _ in grid.header[1:]))]
    rows += [tuple(map(markdown_text, line)) for line in (*grid.body, *grid.foot)]
    return [f"| {' | '.join(row)} |" for row in rows]


def latex_parts(grid: Grid) -> list[list[str]]:
    """Return the lines that set a grid, no wider than the text, in parts that no page is too short for."""

    def line(cells: Line) -> str:
        return " & ".join(map(latex_text.escape, cells)) + r" \\"

    foot = [r"\midrule", *map(line, grid.foot)] if grid.foot else []
    top = [
        rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
        r"\toprule",
        line(grid.header),
        r"\midrule",
    ]
    parts = split([*map(line, grid.body), *foot])
    return [fitted([*top, *part, r"\bottomrule", r"\end{tabular}"]) for part in parts]
