"""From a result to its table."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from synthbench.reporting import aggregate, alike
from synthbench.reporting.aggregate import RowKey
from synthbench.reporting.columns import ColumnSource, Runs, column_sources
from synthbench.reporting.comparisons import ItemErrors
from synthbench.reporting.noise import leads
from synthbench.reporting.notes import figure_notes, short_notes, table_notes
from synthbench.reporting.options import PublishedOptions, TableOptions
from synthbench.reporting.published import PublishedValue
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.table import Axes, Group, PublishedCell, Row, Table


def build_table(result: ExperimentResult) -> Table:
    """Return the table that the result's own options ask for.

    Raises pydantic.ValidationError if `result.table` does not hold TableOptions.
    """
    options = TableOptions.model_validate(result.table)
    sources = column_sources(result, options)
    members: dict[Axes, list[tuple[RowKey, Runs]]] = {}
    for key, runs in aggregate.rows(result, options.across).items():
        members.setdefault(key.axes, []).append((key, runs))
    items = ItemErrors(result)
    groups = tuple(
        _with_published(_group(rows, sources, options, items), dict(rows), sources, result)
        for rows in members.values()
    )
    numbers = [cell.num_seeds for group in groups for row in group.rows for cell in row.cells if cell]
    # Rows that no seed changes have one, however many of them there are.
    counts = Counter([number for number in numbers if number > 1] or numbers)
    table = Table(
        name=result.experiment,
        caption=_caption(result, options),
        axes=tuple(dict.fromkeys(axis for axes in members for axis, _ in axes)),
        columns=tuple(source.column for source in sources),
        groups=groups,
        decimals=options.decimals,
        num_seeds=max(counts, key=lambda number: (counts[number], number), default=0),
    )
    return replace(
        table,
        notes=table_notes(table, result, options),
        figure_notes=figure_notes(table, result),
        short_notes=short_notes(table, result, options),
    )


def _caption(result: ExperimentResult, options: TableOptions) -> str:
    """Return the file's caption; where rows were left out, of which it may speak, say which are left."""
    caption = options.caption or result.description or result.experiment
    if not any(override.startswith("--variant") for override in result.overrides):
        return caption
    rows = dict.fromkeys(run.variant for run in result.runs)
    return f"Only {', '.join(rows)} of: {caption}"


def _with_published(
    group: Group, runs: Mapping[RowKey, Runs], sources: Sequence[ColumnSource], result: ExperimentResult
) -> Group:
    """Put the published figures beside the rows that have some."""
    options = TableOptions.model_validate(result.table).published
    if options is None:
        return group

    def cells(row: Row) -> Iterator[PublishedCell | None]:
        for source, ours in zip(sources, row.cells, strict=True):
            value = _published(source, row, options, result.published)
            if value is None or ours is None:
                yield None
            else:
                yield _beside(value, runs[RowKey(row.variant, row.axes)], source, result)

    return Group(tuple(replace(row, published=tuple(cells(row))) for row in group.rows))


def _published(
    source: ColumnSource, row: Row, options: PublishedOptions, values: Sequence[PublishedValue]
) -> PublishedValue | None:
    """Return what the paper printed for a row's cell, None if it has nothing of the kind."""
    place = source.measurements[0].place
    encoder = options.encoder_at(dict((*row.axes, *place)).values())
    wanted = options.rows.get(row.variant), source.published_column(options)
    fitting = [
        value for value in values if (value.row, value.column) == wanted and encoder in (None, value.encoder)
    ]
    return fitting[-1] if fitting else None


def _beside(
    value: PublishedValue, runs: Runs, source: ColumnSource, result: ExperimentResult
) -> PublishedCell:
    scores = [score for one in source.measurements for score in aggregate.scores(runs, one)]
    here = [run for one in source.measurements for run in aggregate.runs_at(runs, one.place)]
    measured = alike.Measured(here, scores, source.column.is_average, result.overrides)
    return PublishedCell(
        value.value,
        value.sd,
        value.source,
        value.flag,
        alike.differences(value, measured),
        alike.refusal(value, measured),
    )


def _group(
    members: Sequence[tuple[RowKey, Runs]],
    sources: Sequence[ColumnSource],
    options: TableOptions,
    items: ItemErrors,
) -> Group:
    compared = [member for member in members if member[0].variant not in options.ceiling]
    ceilings = [member for member in members if member[0].variant in options.ceiling]
    winners = [_winner(source, compared, items) for source in sources]
    rows = []
    for key, runs in (*compared, *ceilings):
        cells = [source.cell(runs) for source in sources]
        marked = tuple(
            replace(cell, is_bold=True) if cell is not None and key == winner else cell
            for cell, winner in zip(cells, winners, strict=True)
        )
        rows.append(Row(key.variant, key.axes, marked, key.variant in options.ceiling))
    return Group(tuple(rows))


def _winner(source: ColumnSource, members: Sequence[tuple[RowKey, Runs]], items: ItemErrors) -> RowKey | None:
    """Return the row that leads every other row by more than the noise; a row alone leads nobody."""
    samples = {key: sample for key, runs in members if (sample := source.sample(runs)) is not None}
    if len(samples) < 2 or not source.is_even(
        [run for key, runs in members if key in samples for run in runs]
    ):
        return None
    best = max(samples, key=lambda key: -math.inf if math.isnan(samples[key].mean) else samples[key].mean)
    are_led = (
        leads(samples[best], other, items.noise(source, best, key) or ())
        for key, other in samples.items()
        if key != best
    )
    return best if all(are_led) else None
