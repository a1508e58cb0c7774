"""A result as the output of a notebook cell: the claims and the table of scores."""

from collections.abc import Iterator
from html import escape

from synthbench.reporting.model.table import MISSING, Cell, Table
from synthbench.reporting.model.verdicts import verdict
from synthbench.reporting.render.html.answer import cell_hint
from synthbench.reporting.report import Report


def html_cell(report: Report) -> str:
    """Return HTML: warning, claims, table, and the number of its notes. All texts are escaped."""
    analysis, table = report.analysis, report.table
    sentences = " ".join(verdict(analysis)) if table.has_rivals or analysis.comparisons else ""
    parts = [f"<p><b>{escape(report.result.title)}</b>{': ' * bool(sentences)}{escape(sentences)}</p>"]
    if report.warning:
        parts.insert(0, f"<p><b>Warning:</b> {escape(report.warning)}</p>")
    if table.columns:
        caption = f"<caption>{escape(table.caption)}</caption>"
        head = "".join(f"<th>{escape(name)}</th>" for name in table.header)
        body = "".join(f"<tr>{''.join(_cells(table, index))}</tr>" for index in range(len(table.rows)))
        parts.append(f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
        parts.append(f"<p>Notes: {len(table.notes)}, in the report's page.</p>")
    return "\n".join(parts)


def _cells(table: Table, index: int) -> Iterator[str]:
    row = table.rows[index]
    yield from (f"<th>{escape(name)}</th>" for name in table.row_names(row))
    yield from (f"<td{_hint(cell)}>{_text(table, cell)}</td>" for cell in row.cells)


def _hint(cell: Cell | None) -> str:
    return "" if cell is None else f' title="{escape(cell_hint(cell))}"'


def _text(table: Table, cell: Cell | None) -> str:
    if cell is None:
        return MISSING
    mean = escape(table.mean_text(cell))
    spread = f" ± {table.spread_text(cell)}" if table.spread_text(cell) else ""
    return (f"<b>{mean}</b>" if cell.is_bold else mean) + escape(spread)
