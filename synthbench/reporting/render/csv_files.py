"""Render tables as CSV."""

import io
from collections.abc import Iterable, Iterator

from synthbench.base.escaping import CsvWriter
from synthbench.reporting.model.aggregate import row_of
from synthbench.reporting.model.sections import CsvTable
from synthbench.reporting.model.table import Cell, Column, PublishedCell, Row, Table
from synthbench.reporting.results import ExperimentResult

FIELDS = (
    "row", "axis", "column", "mean", "sd", "n_seeds", "n_items", "n_dropped", "metric", "bold", "ceiling",
    "published", "published_sd", "published_source", "published_flag", "published_differs",
)  # fmt: skip

SEED_FIELDS = (
    "row", "axis", "test_set", "evaluator", "metric", "seed", "score", "n_items", "n_dropped"
)  # fmt: skip


def csv_table(table: Table) -> str:
    """Return CSV with a line per row and column, also for empty cells; scores x 100 with six decimals."""
    return csv_text(CsvTable(FIELDS, list(_lines(table))))


def seeds_csv(result: ExperimentResult) -> str:
    """Return CSV with a line per row, seed and test set; scores x 100 with six decimals."""
    return csv_text(CsvTable(SEED_FIELDS, list(_seed_lines(result))))


def csv_text(table: CsvTable) -> str:
    """Return the text of a CSV file."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(table.fields)
    writer.writerows(table.lines)
    return text.getvalue()


def _seed_lines(result: ExperimentResult) -> Iterator[list[str]]:
    for run in result.runs:
        row = (run.variant, row_of(run).csv_axes)
        for each in run.scores:
            value = f"{100 * each.scores[each.main_score]:.6f}"
            counts = (str(each.num_items), str(each.num_dropped))
            yield [*row, each.task, each.evaluator, each.main_score, str(run.seed), value, *counts]


def _lines(table: Table) -> Iterator[list[str]]:
    for row in table.rows:
        published = row.published or (None,) * len(row.cells)
        for column, cell, beside in zip(table.columns, row.cells, published, strict=True):
            yield [*_values(row, column, cell), *_published(beside)]


def _values(row: Row, column: Column, cell: Cell | None) -> Iterable[str]:
    numbers = ["", "", "0", "", ""] if cell is None else _numbers(cell)
    is_bold = cell is not None and cell.is_bold
    marks = ["true" if mark else "false" for mark in (is_bold, row.is_ceiling)]
    return [row.variant, row.key.csv_axes, column.title, *numbers, column.metric, *marks]


def _published(cell: PublishedCell | None) -> list[str]:
    """Return a published value, standard deviation, source, flag and differences; each "" if not shown."""
    if cell is None or cell.refusal:
        return [""] * 5
    why = "; ".join(difference.text for difference in cell.differences)
    return [cell.value, cell.standard_deviation, cell.source, cell.flag, why]


def _numbers(cell: Cell) -> list[str]:
    spread = "" if cell.standard_deviation is None else f"{cell.standard_deviation:.6f}"
    counts = ["" if count is None else str(count) for count in (cell.num_items, cell.num_dropped)]
    return [f"{cell.mean:.6f}", spread, str(cell.num_seeds), *counts]
