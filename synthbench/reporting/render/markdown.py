"""The table as GitHub-flavoured Markdown."""

from synthbench.escaping import markdown_text
from synthbench.reporting.model.table import MISSING, SHOWS, Cell, Table


def markdown_table(table: Table) -> str:
    """Return caption, table, what each row shows, and notes."""
    names = len(table.axes) + 1
    lines = [
        f"**{markdown_text(table.caption)}**",
        "",
        _line([markdown_text(title) for title in table.header]),
        _line(["---"] * names + ["---:"] * len(table.columns)),
    ]
    for row in table.rows:
        cells = [_cell_text(table, cell) for cell in row.cells]
        lines.append(_line([*(markdown_text(name) for name in table.row_names(row)), *cells]))
        if row.published_line:
            texts = (f"*{markdown_text(text)}*" if text else "" for text in row.published_line)
            lines.append(_line([*[""] * len(table.axes), *texts]))
    shows = [f"- {markdown_text(name)}: {markdown_text(text)}" for name, text in table.shows]
    if shows:
        lines += ["", f"{SHOWS}:", "", *shows]
    notes = [f"- {markdown_text(note)}" for note in table.notes]
    if notes:
        # Two lists in a row would be one.
        lines += ["", *(["Notes:", ""] if shows else []), *notes]
    return "\n".join(lines) + "\n"


def _cell_text(table: Table, cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    mean = f"**{table.mean_text(cell)}**" if cell.is_bold else table.mean_text(cell)
    spread = f" ± {table.spread_text(cell)}" if table.spread_text(cell) else ""
    seeds = f" {markdown_text(table.seeds_text(cell))}" if table.seeds_text(cell) else ""
    return mean + spread + seeds


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
