"""The first screen of the page: the result in two sentences, and a plot of the rows' means and intervals."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.table import Cell, Column, Row, RowKey, Table
from synthbench.reporting.render.html.summary import direction, finding_of

MOST_ROWS = 14
ROOM = 0.06
"""The share of the plot's width that stays free at each end."""


@dataclass(frozen=True)
class Mark:
    """A row in the plot; `at`, `low` and `high` are percentages of the width, from the left."""

    label: str
    value: str
    hint: str
    at: float
    low: float
    high: float
    is_best: bool
    is_ceiling: bool


@dataclass(frozen=True)
class LeadingRow:
    """The best row of the main column, whether its lead is significant, and the rows as a plot.

    `ends` are the scores at the left and right end; `num_left_out` rows are not drawn.
    """

    sentences: tuple[str, ...]
    column: str
    marks: tuple[Mark, ...]
    ends: tuple[str, str]
    num_left_out: int


def answer(analysis: Analysis, table: Table) -> LeadingRow | None:
    """Return the page's answer, None if nothing is scored.

    The main column is the table's last average, or its first column without averages.
    """
    if not table.columns:
        return None
    index = max((at for at, column in enumerate(table.columns) if column.is_average), default=0)
    rows = [(row, cell) for row in table.rows if (cell := row.cells[index]) and math.isfinite(cell.mean)]
    compared = [each for each in rows if not each[0].is_ceiling]
    if not compared:
        return None
    best = max(compared, key=lambda each: each[1].mean)
    drawn, num_left_out = _chosen(rows, best[0], analysis)
    low, high = _range([cell for _, cell in drawn])
    column = table.columns[index]
    return LeadingRow(
        sentences=(
            _lead(best, column, table, analysis, len(compared)),
            *_differences(analysis, column, table),
        ),
        column=f"{column.title}, {column.metric_title} × 100",
        marks=tuple(_mark(row, cell, table, (low, high), is_best=row is best[0]) for row, cell in drawn),
        ends=(f"{low:.{table.decimals}f}", f"{high:.{table.decimals}f}"),
        num_left_out=num_left_out,
    )


def _lead(best: tuple[Row, Cell], column: Column, table: Table, analysis: Analysis, num_rows: int) -> str:
    row, cell = best
    score = f"{row.key.title} scores highest on {column.title}: {table.mean_text(cell)}"
    reach = cell.half_width
    score += f" ± {reach:.{table.decimals}f} (95 % interval over seeds)." if reach is not None else "."
    if num_rows == 1:
        return score
    if len(analysis.seeds) == 1:
        return f"{score} One seed supports no claim that it is better."
    where = " at this point of the grid" if row.axes else ""
    noise = "seeds and test items" if analysis.result.item_noise else "seeds"
    if cell.is_bold:
        return f"{score} Its lead over every other row{where} is larger than the noise of {noise}."
    return f"{score} Its lead over at least one other row{where} is within the noise of {noise}."


def _differences(analysis: Analysis, column: Column, table: Table) -> Iterator[str]:
    """Say how many comparisons in the column are significant, and name the largest."""
    of_column = [
        each for found in analysis.comparisons if found.column == column for each in found.comparisons
    ]
    tested = [each for each in of_column if finding_of(each) is not None]
    if not tested:
        return
    found = [each for each in tested if direction(each)]
    counted = (
        f"{len(found)} of {len(tested)} comparisons with a baseline" if len(tested) > 1 else "The comparison"
    )
    if not found:
        none = f"No comparison with a baseline is significant at 5 % on {column.title}"
        yield f"{none}; that does not prove equality."
        return
    largest = max(found, key=lambda each: abs(each.value))
    finding = finding_of(largest)
    assert finding is not None
    size, reach = 100 * finding.difference.value, 100 * finding.difference.half_width
    verb = "are" if len(tested) > 1 else "with the baseline is"
    about = RowKey(f"{largest.row.variant} against {largest.baseline.variant}", largest.row.axes).title
    yield (
        f"{counted} {verb} significant at 5 % on {column.title}; the largest: {about},"
        f" {size:+.{table.decimals}f} ± {reach:.{table.decimals}f}."
    )


def _chosen(
    rows: Sequence[tuple[Row, Cell]], best: Row, analysis: Analysis
) -> tuple[list[tuple[Row, Cell]], int]:
    """Return the rows to draw: if too many, the best, its baselines and ceilings, and the next best."""
    if len(rows) <= MOST_ROWS:
        return list(rows), 0
    baselines = {each.baseline for found in analysis.comparisons for each in found.comparisons}
    here = [row for row, _ in rows if row.axes == best.axes and (row.is_ceiling or row.key in baselines)]
    by_score = [row for row, _ in sorted(rows, key=lambda each: -each[1].mean)]
    kept = {row.key for row in list(dict.fromkeys([best, *here, *by_score]))[:MOST_ROWS]}
    return [each for each in rows if each[0].key in kept], len(rows) - len(kept)


def _range(cells: Sequence[Cell]) -> tuple[float, float]:
    low = min(cell.mean - (cell.half_width or 0.0) for cell in cells)
    high = max(cell.mean + (cell.half_width or 0.0) for cell in cells)
    room = ROOM * (high - low) or 1.0
    return low - room, high + room


def _mark(row: Row, cell: Cell, table: Table, ends: tuple[float, float], *, is_best: bool) -> Mark:
    def at(score: float) -> float:
        return round(100 * (score - ends[0]) / (ends[1] - ends[0]), 2)

    reach = cell.half_width or 0.0
    return Mark(
        label=RowKey(row.label, row.axes).title,
        value=table.mean_text(cell),
        hint=cell_hint(cell),
        at=at(cell.mean),
        low=at(cell.mean - reach),
        high=at(cell.mean + reach),
        is_best=is_best,
        is_ceiling=row.is_ceiling,
    )


def cell_hint(cell: Cell) -> str:
    """Return a cell's tooltip: more digits, interval, standard deviation, seeds and items."""
    parts = [f"mean {cell.mean:.4f}"]
    if cell.half_width is not None:
        parts.append(
            f"95 % interval {cell.mean - cell.half_width:.4f} to {cell.mean + cell.half_width:.4f} over seeds"
        )
    if cell.standard_deviation is not None:
        parts.append(f"standard deviation {cell.standard_deviation:.4f}")
    parts.append(f"{cell.num_seeds} seed{'s' * (cell.num_seeds != 1)}")
    if cell.num_items is not None:
        parts.append(f"{cell.num_items:,} test items")
    return "; ".join(parts)
