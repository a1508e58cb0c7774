"""Build the table of scores from a report's rows and columns, with published values and bold marks."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from synthbench.base.grouping import grouped
from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.aggregate import ColumnSource, Runs
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.notes import figure_notes, first_notes, table_notes
from synthbench.reporting.model.published_values import published_cells
from synthbench.reporting.model.table import Cell, Group, Row, Table

Members = Sequence[tuple[RowKey, Runs]]


def build_table(analysis: Analysis) -> Table:
    """Return the table according to the result's options.

    Raises pydantic.ValidationError if `result.table` is no valid TableOptions.
    """
    members = grouped((key.axes, (key, runs)) for key, runs in analysis.rows.items())
    groups = tuple(_group(of_group, analysis) for of_group in members.values())
    numbers = [cell.num_seeds for group in groups for row in group.rows for cell in row.cells if cell]
    # Rows that seeds do not change have one value; they count only if no row has several.
    counts = Counter([number for number in numbers if number > 1] or numbers)
    table = Table(
        name=analysis.result.experiment,
        caption=_caption(analysis),
        axes=tuple(dict.fromkeys(axis for axes in members for axis, _ in axes)),
        columns=tuple(source.column for source in analysis.columns),
        groups=groups,
        decimals=analysis.options.decimals,
        num_seeds=max(counts, key=lambda number: (counts[number], number), default=0),
    )
    shows = analysis.options.shows
    return replace(
        table,
        notes=table_notes(table, analysis),
        first_notes=first_notes(table, analysis),
        figure_notes=figure_notes(table, analysis),
        shows=tuple(
            (name, shows[name]) for name in dict.fromkeys(row.variant for row in table.rows) if name in shows
        ),
    )


def _caption(analysis: Analysis) -> str:
    """Return the caption; with `--variant`, name the remaining rows, since the caption may mention others."""
    result = analysis.result
    caption = analysis.options.caption or result.description or result.experiment
    if not any(override.startswith("--variant") for override in result.overrides):
        return caption
    rows = dict.fromkeys(run.variant for run in result.runs)
    return f"Only {', '.join(rows)} of: {caption}"


def _group(members: Members, analysis: Analysis) -> Group:
    ceiling = analysis.options.ceiling
    compared = [member for member in members if member[0].variant not in ceiling]
    ceilings = [member for member in members if member[0].variant in ceiling]
    rows = []
    for key, runs in (*compared, *ceilings):
        cells = tuple(_cell(key, runs, source, analysis) for source in analysis.columns)
        beside = tuple(
            value if cell is not None else None
            for cell, value in zip(cells, published_cells(key, runs, analysis), strict=True)
        )
        rows.append(Row(key, cells, key.variant in ceiling, beside if analysis.options.published else ()))
    return Group(tuple(rows))


def _cell(key: RowKey, runs: Runs, source: ColumnSource, analysis: Analysis) -> Cell | None:
    cell = source.cell(runs)
    return cell and replace(cell, is_bold=analysis.decisions.is_bold(key, source))
