"""Tables and sections for a terminal, fitted to its width; a line names all that was left out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.base.listing import counted
from synthbench.base.patterns import linear_pattern
from synthbench.reporting.model.experiment_notes import flat_labels
from synthbench.reporting.model.notes import warnings
from synthbench.reporting.model.sections import Block, Grid, ReportSection
from synthbench.reporting.model.table import MISSING, Cell, Table
from synthbench.reporting.render.markdown import NOTES
from synthbench.reporting.report import Report

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

NAME_WIDTH = 20
"""Row names longer than this are wrapped if space is short."""
TITLE_WIDTHS = (16, 12, 9, 6)
"""Widths at which longer column titles are wrapped, tried in this order until the table fits."""


@dataclass(frozen=True)
class Shown:
    """A rich renderable, its width in characters, and descriptions of the parts left out."""

    renderable: "RenderableType"
    width: int
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Layout:
    """Limits on the table's widths and number of columns; None: unlimited."""

    spread: str | None = " ± "
    """The text between a mean and its standard deviation; None leaves the deviation out."""
    title_width: int | None = None
    name_width: int | None = None
    num_columns: int | None = None


def terminal_table(table: Table, console: "Console", *, fits: bool = False) -> Shown:
    """Return the caption and the table, with a line between groups; `fits` limits it to the console's width.

    A table that is too wide is narrowed in this order: wrap titles, drop spaces around ±, wrap names, drop
    standard deviations, drop columns (averages last).
    """
    from rich.console import Group
    from rich.text import Text

    layouts = list(_layouts(table)) if fits else [_Layout()]
    narrow = (each for each in layouts if _width(table, each, console) <= console.width)
    layout = next(narrow, layouts[-1])
    caption = Text(" ".join(table.caption.split()), style="italic")
    whole = Group(caption, _grid(table, layout))
    return Shown(whole, _width(table, layout, console), tuple(_left_out(table, layout)))


def _layouts(table: Table) -> Iterator[_Layout]:
    """Yield layouts from the widest to the narrowest."""
    yield _Layout()
    for spread, name_width in (" ± ", None), ("±", None), ("±", NAME_WIDTH), (None, None), (None, NAME_WIDTH):
        for title_width in TITLE_WIDTHS:
            yield _Layout(spread, title_width, name_width)
    for number in range(len(table.columns) - 1, 0, -1):
        yield _Layout(None, TITLE_WIDTHS[-1], NAME_WIDTH, number)


def _left_out(table: Table, layout: _Layout) -> Iterator[str]:
    has_spread = any(table.spread_text(cell) for row in table.rows for cell in row.cells if cell)
    if layout.spread is None and has_spread:
        yield "±"
    if layout.num_columns is not None:
        yield f"{len(table.columns) - layout.num_columns} of {len(table.columns)} columns"


def _width(table: Table, layout: _Layout, console: "Console") -> int:
    options = console.options.update(width=100_000)
    return console.measure(_grid(table, layout), options=options).maximum


def _grid(table: Table, layout: _Layout) -> "RichTable":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    printed = RichTable(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    indices = _columns(table, layout)
    names = len(table.axes) + 1
    for number, title in enumerate(_titles(table, layout, indices)):
        if number < names:
            printed.add_column(Text(title), overflow="fold", max_width=layout.name_width)
        else:
            printed.add_column(Text(title), overflow="fold", justify="right")
    for block in (block for group in table.groups for block in group.blocks):
        for row in block:
            named = [_name(name, layout) for name in table.row_names(row)]
            printed.add_row(*named, *(_cell(table, layout, row.cells[index]) for index in indices))
            if row.published_line:
                label, *texts = row.published_line
                cells = [f"  {label}", *(texts[index] for index in indices)]
                printed.add_row(*[""] * len(table.axes), *(Text(text, style="italic") for text in cells))
        printed.add_section()
    return printed


def _titles(table: Table, layout: _Layout, indices: Sequence[int]) -> list[str]:
    """Return the titles of name columns and score columns, padded at the top to equal heights."""
    names = list(table.header[: len(table.axes) + 1])
    titles = [table.columns[index].heading for index in indices]
    if layout.title_width is not None:
        for number, index in enumerate(indices):
            cells = (len(_cell(table, layout, cell)) for cell in table.cells(index))
            titles[number] = _broken(titles[number], max(layout.title_width, *cells, 0))
    most = max(title.count("\n") for title in (*names, *titles))
    return ["\n" * (most - title.count("\n")) + title for title in (*names, *titles)]


def _columns(table: Table, layout: _Layout) -> list[int]:
    """Return the indices of the columns shown; averages are left out last."""
    indices = sorted(range(len(table.columns)), key=lambda index: not table.columns[index].is_average)
    return sorted(indices[: layout.num_columns])


def _name(name: str, layout: _Layout) -> "Text":
    from rich.text import Text

    return Text(name if layout.name_width is None else _broken(name, layout.name_width))


_PIECES = linear_pattern(r"[^-_ :./]++[-_ :./]?+|[-_ :./]")


def _broken(text: str, width: int) -> str:
    """Wrap a title or name to lines of at most `width` characters, after hyphens, blanks and the like."""
    lines = [""]
    for piece in _PIECES.findall(text):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _cell(table: Table, layout: _Layout, cell: Cell | None) -> "Text":
    from rich.text import Text

    if cell is None:
        return Text(MISSING)
    spread = table.spread_text(cell) if layout.spread is not None else ""
    seeds = table.seeds_text(cell)
    return Text.assemble(
        (table.mean_text(cell), "bold" if cell.is_bold else ""),
        (f"{layout.spread}{spread}" if spread else "", "dim"),
        (f" {seeds}" if seeds else "", "dim"),
    )


@dataclass(frozen=True)
class Notes:
    """The number of notes, the file with most of them, and counts of problems: ("1 failure",)."""

    number: int
    file: str
    first: tuple[str, ...]


def terminal_report(report: Report, console: "Console", *, fits: bool = False) -> Shown:
    """Return the table of scores without its notes; `fits` limits it to the console's width.

    Without scores, return all sections.
    """
    if report.result.has_scores:
        return terminal_table(report.table, console, fits=fits)
    from rich.console import Group
    from rich.text import Text

    parts = [piece for each in _printed(report) for piece in (Text(""), terminal_section(each))]
    whole = Group(*parts[1:])
    return Shown(whole, console.measure(whole).maximum)


def terminal_section(section: ReportSection) -> "RenderableType":
    """Return a section as a rich renderable: each block, then the section's notes."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for block in section.blocks:
        parts += [Text("")] if parts and block.grids else []
        parts.append(terminal_block(block))
    notes = ("", *section.notes) if section.notes and section.is_numbered else section.notes
    return Group(*parts, *map(Text, notes))


def terminal_block(block: Block) -> "RenderableType":
    """Return a block as a rich renderable: titles, grids and notes."""
    from rich.console import Group
    from rich.text import Text

    if not block.grids:
        return Text(block.title)
    grids = (part for grid in block.grids for part in (Text(block.heading(grid)), terminal_grid(grid)))
    return Group(*grids, *map(Text, block.notes))


def terminal_grid(grid: Grid) -> "RichTable":
    """Return a grid as a rich table, without its title."""
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


def notes_of(report: Report) -> Notes:
    """Count problems, and the notes in notes.md.

    Without that file, counts the notes below the table of scores or below the first section.
    """
    missing = 0
    if report.result.has_scores:
        table = report.table
        file, number = "table.md", len(table.below)
        missing = sum(cell is None for row in table.rows for cell in row.cells)
        num_warnings = len(warnings(table, report.analysis))
    else:
        num_warnings = len(list(flat_labels(report.result)))
        file, number = NOTES, 0
        for first in _printed(report)[:1]:
            file, number = f"{first.name}.md", len(first.first_notes)
    if report.further_notes:
        file, number = NOTES, sum(map(len, report.further_notes.values()))
    counts = {
        "failure": len(report.result.failures),
        "result pending": len(report.result.pending),
        "cell without a score": missing,
        "warning": num_warnings,
    }
    return Notes(number, file, tuple(_count(number, what) for what, number in counts.items() if number))


def _printed(report: Report) -> list[ReportSection]:
    """Return the sections with tables, except the comparisons, which belong to the scores."""
    return [each for each in report.sections if each.blocks and each.name != "comparisons"]


def _count(number: int, what: str) -> str:
    noun, space, rest = what.partition(" ")
    return f"{counted(number, noun)}{space}{rest}"
