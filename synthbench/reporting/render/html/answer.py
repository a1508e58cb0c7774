"""The first screen of the page: the claims, with a plot of differences or else of the rows' means."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.base.listing import counted
from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.decisions import primary_columns
from synthbench.reporting.model.forest import Forest
from synthbench.reporting.model.table import Cell, Row, Table
from synthbench.reporting.model.verdicts import verdict

MOST_ROWS, MOST_LINES = 14, 20
ROOM = 0.06
"""The share of the plot's width that stays free at each end."""


@dataclass(frozen=True)
class Mark:
    """A line of the plot; `at`, `low` and `high` are percentages of the width, from the left.

    `is_hollow`: the difference is not significant.
    """

    label: str
    value: str
    hint: str
    at: float
    low: float
    high: float
    is_bold: bool
    is_ceiling: bool = False
    is_hollow: bool = False


@dataclass(frozen=True)
class FirstScreen:
    """The claims as sentences, and a plot with titled groups of lines.

    `ends` are the values at the plot's left and right end. `zero` is the position of 0 in percent of the
    width, None if 0 is not drawn. `more` says how many lines are left out.
    """

    sentences: tuple[str, ...]
    title: str
    groups: tuple[tuple[str, tuple[Mark, ...]], ...]
    ends: tuple[str, str]
    zero: float | None = None
    more: str = ""


def answer(analysis: Analysis, table: Table, forest: Forest | None) -> FirstScreen | None:
    """Return the claims and a plot: the forest plot if given, else the rows' means; None without scores."""
    sentences = tuple(verdict(analysis)) if table.has_rivals or analysis.comparisons else ()
    return _means(analysis, table, sentences) if forest is None else _differences(forest, sentences)


def _differences(forest: Forest, sentences: tuple[str, ...]) -> FirstScreen:
    shown = forest.cut(MOST_LINES)

    def at(value: float) -> float:
        return round(100 * shown.share(value), 2)

    groups = tuple(
        (
            title,
            tuple(
                Mark(
                    label=each.name,
                    value=each.text,
                    hint=each.text if each.is_tested else f"{each.text}, not tested",
                    at=at(each.value),
                    low=at(each.low),
                    high=at(each.high),
                    is_bold=bool(each.direction),
                    is_hollow=not each.direction,
                )
                for each in lines
            ),
        )
        for title, lines in shown.groups
    )
    return FirstScreen(sentences, shown.title, groups, shown.ends, at(0.0), shown.more)


def _means(analysis: Analysis, table: Table, sentences: tuple[str, ...]) -> FirstScreen | None:
    """Plot the rows' means in the last primary average, else the first primary column; None without means."""
    primary = primary_columns(analysis.columns, analysis.options)
    if not primary:
        return None
    main = next((each for each in reversed(primary) if each.column.is_average), primary[0])
    index = analysis.columns.index(main)
    rows = [(row, cell) for row in table.rows if (cell := row.cells[index]) and math.isfinite(cell.mean)]
    compared = [each for each in rows if not each[0].is_ceiling]
    if not compared:
        return None
    best = max(compared, key=lambda each: each[1].mean)
    drawn, num_left_out = _chosen(rows, best[0], analysis)
    low, high = _range([cell for _, cell in drawn])
    column = table.columns[index]
    bars = "; bars: 95 % intervals over seeds" if any(cell.half_width for _, cell in drawn) else ""
    return FirstScreen(
        sentences=sentences,
        title=f"{column.title}, {column.metric_title} × 100{bars}",
        groups=(("", tuple(_mark(row, cell, table, (low, high)) for row, cell in drawn)),),
        ends=(f"{low:.{table.decimals}f}", f"{high:.{table.decimals}f}"),
        more=f"{num_left_out} further rows are in the table." if num_left_out else "",
    )


def _chosen(
    rows: Sequence[tuple[Row, Cell]], best: Row, analysis: Analysis
) -> tuple[list[tuple[Row, Cell]], int]:
    """Return the rows to draw, and how many are left out.

    If there are too many rows, draws the best row, its baselines and ceilings, then the next best rows.
    """
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


def _mark(row: Row, cell: Cell, table: Table, ends: tuple[float, float]) -> Mark:
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
        is_bold=cell.is_bold,
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
    parts.append(counted(cell.num_seeds, "seed"))
    if cell.num_items is not None:
        parts.append(f"{cell.num_items:,} test items")
    return "; ".join(parts)
