"""The table as LaTeX."""

import math
import re

from synthbench.reporting.model.table import MISSING, Cell, Group, Row, Table
from synthbench.reporting.render.latex_layout import ORIGIN, PREAMBLE, Layout, fitted, split
from synthbench.reporting.render.latex_text import escape

NUMBER = re.compile(r"-?\d+(\.\d+)?")
FONTS = r"\sisetup{detect-weight=true, detect-shape=true, detect-family=true, mode=text}"
"""Numbers in the font around them: bold ones, and published ones in italics."""


def latex_table(table: Table, layout: Layout) -> str:
    """Return a `table` environment for \\input, numbers aligned by siunitx, no larger than the page.

    A long table is several of them.
    """
    columns = "".join(
        rf"S[table-format={_number_format(table, index)}]@{{\,}}l" for index in range(len(table.columns))
    )
    titles = [rf"\multicolumn{{2}}{{c}}{{{escape(column.title)}}}" for column in table.columns]
    names = table.header[: len(table.axes) + 1]
    top = [
        rf"\begin{{tabular}}{{{'l' * len(names)}{columns}}}",
        r"\toprule",
        _line([*map(escape, names), *titles]),
        r"\midrule",
    ]
    body = [line for group in table.groups for line in (r"\midrule", *_group_lines(table, group))][1:]
    parts = [[FONTS, *fitted([*top, *part, r"\bottomrule", r"\end{tabular}"])] for part in split(body)]
    shows = (f"{name}: {text}" for name, text in table.shows)
    notes = table.short_notes if layout.options.notes == "short" else (*shows, *table.notes)
    return "\n".join([ORIGIN, *layout.environments(table.caption, parts, notes)]) + "\n"


def latex_document(table: Table, layout: Layout) -> str:
    """Return a whole document that holds only this table."""
    return PREAMBLE + latex_table(table, layout) + r"\end{document}" + "\n"


def _group_lines(table: Table, group: Group) -> list[str]:
    lines: list[str] = []
    for block in group.blocks:
        if lines:
            lines.append(rf"\cmidrule{{{len(table.axes) + 1}-{len(table.header) + len(table.columns)}}}")
        for row in block:
            lines.append(_row_line(table, row, repeats_axes=bool(lines)))
            if row.published_line:
                lines.append(_published_line(table, row))
    return lines


def _row_line(table: Table, row: Row, *, repeats_axes: bool) -> str:
    *axes, label = table.row_names(row)
    shown = [""] * len(axes) if repeats_axes else [escape(value) for value in axes]
    return _line([*shown, escape(label), *(text for cell in row.cells for text in _cell_texts(table, cell))])


def _published_line(table: Table, row: Row) -> str:
    label, *texts = row.published_line
    cells = [text for published in texts for text in _published_texts(published)]
    return _line([*[""] * len(table.axes), rf"\quad {{\footnotesize\itshape {escape(label)}}}", *cells])


def _published_texts(published: str) -> tuple[str, str]:
    """Return the number, and what stands behind it, as the texts of two columns."""
    if not published:
        return "", ""
    found = NUMBER.match(published)
    number, rest = (found[0], published[found.end() :].strip()) if found else ("", published)
    font = r"\footnotesize\itshape "
    return font + number if number else "", font + escape(rest) if rest else ""


def _cell_texts(table: Table, cell: Cell | None) -> tuple[str, str]:
    """Return the mean, and what stands behind it, as the texts of two columns."""
    if cell is None:
        return f"{{{escape(MISSING)}}}", ""
    mean = table.mean_text(cell) if math.isfinite(cell.mean) else f"{{{table.mean_text(cell)}}}"
    spread = rf"$\pm$ {table.spread_text(cell)}" if table.spread_text(cell) else ""
    behind = " ".join(filter(None, (spread, escape(table.seeds_text(cell)))))
    return (r"\bfseries " if cell.is_bold else "") + mean, rf"{{\scriptsize {behind}}}" if behind else ""


def _number_format(table: Table, index: int) -> str:
    """Return siunitx's format of a column's numbers: room for the widest on both sides of the point."""
    ours = [table.mean_text(cell) for cell in table.cells(index) if math.isfinite(cell.mean)]
    published = [row.published_line[index + 1] for row in table.rows if row.published_line]
    numbers = [found[0] for text in (*ours, *published) if (found := NUMBER.match(text))] or ["0"]
    whole = max(len(number.partition(".")[0].lstrip("-")) for number in numbers)
    places = max(len(number.partition(".")[2]) for number in numbers)
    sign = "-" if any(number.startswith("-") for number in numbers) else ""
    return f"{sign}{whole}.{places}" if places else f"{sign}{whole}"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
