"""The table for a terminal."""

from typing import TYPE_CHECKING

from synthbench.reporting.table import MISSING, Cell, Table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text


def terminal_table(table: Table) -> "RenderableType":
    """Return what rich prints: the notes that explain the table, caption, table with a line between groups.

    The table comes last, so that it stays on the screen. Numbers are never cut: narrow columns fold.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table as RichTable
    from rich.text import Text

    printed = RichTable(title=Text(table.caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(table.header):
        is_name = number <= len(table.axes)
        printed.add_column(Text(title), justify="left" if is_name else "right", overflow="fold")
    for group in table.groups:
        for block in group.blocks:
            for row in block:
                names = [Text(name) for name in table.row_names(row)]
                printed.add_row(*names, *(_cell_text(table, cell) for cell in row.cells))
                if row.published_line:
                    label, *texts = row.published_line
                    cells = [Text(text, style="italic") for text in (f"  {label}", *texts)]
                    printed.add_row(*[Text("")] * len(table.axes), *cells)
            printed.add_section()
    return Group(*(Text(note) for note in table.short_notes), Text(""), printed)


def _cell_text(table: Table, cell: Cell | None) -> "Text":
    from rich.text import Text

    if cell is None:
        return Text(MISSING)
    spread = table.spread_text(cell)
    seeds = table.seeds_text(cell)
    return Text.assemble(
        (table.mean_text(cell), "bold" if cell.is_bold else ""),
        (f" ± {spread}" if spread else "", "dim"),
        (f" {seeds}" if seeds else "", "dim"),
    )
