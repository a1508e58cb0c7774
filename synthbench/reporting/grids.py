"""Tables of texts, for what is no table of scores, and their printers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.reporting import latex_text, markdown

if TYPE_CHECKING:
    from rich.table import Table as RichTable

Line = tuple[str, ...]


@dataclass(frozen=True)
class Grid:
    """A table of texts; the first column names the rows, `foot` stands below a rule."""

    title: str
    header: Line
    body: tuple[Line, ...]
    foot: tuple[Line, ...] = ()


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
    rows = [grid.header, ("---", *("---:" for _ in grid.header[1:]))]
    rows += [tuple(map(markdown.escape, line)) for line in (*grid.body, *grid.foot)]
    return [f"| {' | '.join(row)} |" for row in rows]


def latex_grid(grid: Grid) -> list[str]:
    """Return the lines of a booktabs `tabular`."""

    def line(cells: Line) -> str:
        return " & ".join(map(latex_text.escape, cells)) + r" \\"

    foot = [r"\midrule", *map(line, grid.foot)] if grid.foot else []
    return [
        rf"\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}",
        r"\toprule",
        line(grid.header),
        r"\midrule",
        *map(line, grid.body),
        *foot,
        r"\bottomrule",
        r"\end{tabular}",
    ]
