"""The table as booktabs LaTeX."""

from synthbench.reporting.latex_text import escape
from synthbench.reporting.table import MISSING, Cell, Group, Row, Table

PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper, landscape, margin=15mm]{geometry}
\usepackage{booktabs}
\begin{document}
"""


def latex_table(table: Table) -> str:
    """Return a `table` environment for \\input; it needs the booktabs package only."""
    names = len(table.axes) + 1
    lines = [
        r"% Needs \usepackage{booktabs}. Written by synthbench; the next run writes it anew.",
        r"\begin{table}",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{4pt}",
        # LaTeX's own classes leave no space between a caption and the table below it.
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{escape(table.caption)}}}",
        rf"\begin{{tabular}}{{{'l' * names}{'r' * len(table.columns)}}}",
        r"\toprule",
        _line([escape(title) for title in table.header]),
    ]
    for group in table.groups:
        lines += [r"\midrule", *_group_lines(table, group)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if table.notes:
        notes = r" \\".join(f"\n{escape(note)}" for note in table.notes)
        lines += [
            r"\par\medskip",
            rf"\begin{{minipage}}{{\linewidth}}\footnotesize{notes}",
            r"\end{minipage}",
        ]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_document(table: Table) -> str:
    """Return a whole document that holds only this table."""
    return PREAMBLE + latex_table(table) + r"\end{document}" + "\n"


def _group_lines(table: Table, group: Group) -> list[str]:
    lines: list[str] = []
    for block in group.blocks:
        if lines:
            lines.append(rf"\cmidrule{{{len(table.axes) + 1}-{len(table.header)}}}")
        for row in block:
            lines.append(_row_line(table, row, repeats_axes=bool(lines)))
            if row.published_line:
                lines.append(_published_line(table, row))
    return lines


def _row_line(table: Table, row: Row, *, repeats_axes: bool) -> str:
    *axes, label = table.row_names(row)
    shown = [""] * len(axes) if repeats_axes else [escape(value) for value in axes]
    return _line([*shown, escape(label), *(_cell_text(table, cell) for cell in row.cells)])


def _published_line(table: Table, row: Row) -> str:
    label, *texts = (
        rf"{{\footnotesize\itshape {escape(text)}}}" if text else "" for text in row.published_line
    )
    return _line([*[""] * len(table.axes), rf"\quad {label}", *texts])


def _cell_text(table: Table, cell: Cell | None) -> str:
    if cell is None:
        return escape(MISSING)
    mean = rf"\textbf{{{table.mean_text(cell)}}}" if cell.is_bold else table.mean_text(cell)
    spread = rf" {{\scriptsize $\pm$ {table.spread_text(cell)}}}" if table.spread_text(cell) else ""
    seeds = rf" {{\scriptsize {escape(table.seeds_text(cell))}}}" if table.seeds_text(cell) else ""
    return mean + spread + seeds


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
