"""The table as long-format CSV, one line for each cell."""

import io

from synthbench.escaping import CsvWriter
from synthbench.reporting.model.table import Cell, Column, PublishedCell, Row, Table

FIELDS = (
    "row", "axis", "column", "mean", "sd", "n_seeds", "n_items", "n_dropped", "metric", "bold", "ceiling",
    "published", "published_sd", "published_source", "published_flag", "published_differs",
)  # fmt: skip


def csv_table(table: Table) -> str:
    """Return one line per row and column, missing cells included; scores x 100 with six decimals.

    `axis` reads "base=static; size=1000".
    """
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for row in table.rows:
        published = row.published or (None,) * len(row.cells)
        for column, cell, beside in zip(table.columns, row.cells, published, strict=True):
            writer.writerow([*_values(row, column, cell), *_published(beside)])
    return text.getvalue()


def _values(row: Row, column: Column, cell: Cell | None) -> list[str]:
    axis = "; ".join(f"{name}={value}" for name, value in row.axes)
    numbers = ["", "", "0", "", ""] if cell is None else _numbers(cell)
    marks = [column.metric, _truth(value=cell is not None and cell.is_bold), _truth(value=row.is_ceiling)]
    return [row.variant, axis, column.title, *numbers, *marks]


def _published(cell: PublishedCell | None) -> list[str]:
    """Return the figure, its deviation, source, flag, and in what it differs; all empty if there is none."""
    if cell is None or cell.refusal:
        return [""] * 5
    why = "; ".join(difference.text for difference in cell.differences)
    return [cell.value, cell.standard_deviation, cell.source, cell.flag, why]


def _numbers(cell: Cell) -> list[str]:
    spread = "" if cell.standard_deviation is None else f"{cell.standard_deviation:.6f}"
    counts = ["" if count is None else str(count) for count in (cell.num_items, cell.num_dropped)]
    return [f"{cell.mean:.6f}", spread, str(cell.num_seeds), *counts]


def _truth(*, value: bool) -> str:
    return "true" if value else "false"
