"""Render tables and sections as GitHub-flavoured Markdown."""

from collections.abc import Iterable, Mapping, Sequence

from synthbench.base.escaping import markdown_text
from synthbench.reporting.model.sections import Grid, ReportSection
from synthbench.reporting.model.table import MISSING, SHOWS, Cell, Table

NOTES = "notes.md"
POINTER = f"Further notes: [{NOTES}]({NOTES})."


def markdown_table(table: Table) -> str:
    """Return caption, table, the rows' descriptions, and the first notes."""
    names = len(table.axes) + 1
    lines = [*_title(table.caption), _line(map(markdown_text, table.header))]
    lines.append(_line(["---"] * names + ["---:"] * len(table.columns)))
    for row in table.rows:
        cells = [_cell_text(table, cell) for cell in row.cells]
        lines.append(_line([*map(markdown_text, table.row_names(row)), *cells]))
        if row.published_line:
            texts = (f"*{markdown_text(text)}*" if text else "" for text in row.published_line)
            lines.append(_line([*[""] * len(table.axes), *texts]))
    shows = _list([f"{name}: {text}" for name, text in table.shows])
    if shows:
        lines += ["", f"{SHOWS}:", "", *shows]
    if table.below:
        # Markdown would join two successive lists.
        lines += ["", *(["Notes:", ""] if shows else []), *_list(table.below)]
    if table.further_notes:
        lines += ["", POINTER]
    return "\n".join(lines) + "\n"


def markdown_section(section: ReportSection) -> str:
    """Return the grids of each block with the block's first notes, then the section's first notes."""
    lines: list[str] = []
    for block in section.blocks:
        for grid in block.grids:
            lines += [*_title(block.heading(grid)), *_grid(grid), ""]
        if not block.grids:
            lines += _title(block.title)
        if block.notes:
            lines += [*_list(block.first_notes), ""]
    lines += _list(section.first_notes)
    if section.further_notes:
        lines += ["", POINTER]
    return "\n".join(lines).rstrip() + "\n"


def markdown_notes(parts: Mapping[str, Sequence[str]]) -> str:
    """Return the text of notes.md: the notes that stand below no table, by part of the report."""
    lines: list[str] = []
    for title, notes in parts.items():
        lines += [f"## {markdown_text(title)}", "", *_list(notes), ""]
    return "\n".join(lines).rstrip() + "\n"


def _title(text: str) -> list[str]:
    return [f"**{markdown_text(text)}**", ""]


def _list(texts: Sequence[str]) -> list[str]:
    return [f"- {markdown_text(text)}" for text in texts]


def _grid(grid: Grid) -> list[str]:
    lines = (grid.header, *grid.body, *grid.foot)
    head, *rows = (_line(map(markdown_text, line)) for line in lines)
    return [head, _line(["---", *["---:"] * (len(grid.header) - 1)]), *rows]


def _cell_text(table: Table, cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    mean = f"**{table.mean_text(cell)}**" if cell.is_bold else table.mean_text(cell)
    spread = f" ± {table.spread_text(cell)}" if table.spread_text(cell) else ""
    seeds = f" {markdown_text(table.seeds_text(cell))}" if table.seeds_text(cell) else ""
    return mean + spread + seeds


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
