"""From a result to its table."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from synthbench.reporting.model import comparability as alike
from synthbench.reporting.model.notes import figure_notes, short_notes, table_notes
from synthbench.reporting.model.table import Axes, Group, PublishedCell, Row, Table
from synthbench.reporting.options import PublishedOptions, TableOptions
from synthbench.reporting.published import PublishedValue
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.aggregate import RowKey
from synthbench.reporting.statistics.columns import ColumnSource, Runs, column_sources
from synthbench.reporting.statistics.comparisons import ItemErrors
from synthbench.reporting.statistics.differences import leads


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
        shows=tuple(
            (name, options.shows[name])
            for name in dict.fromkeys(row.variant for row in table.rows)
            if name in options.shows
        ),
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
        beside = _Beside(row, runs[RowKey(row.variant, row.axes)], options, result)
        for source, ours in zip(sources, row.cells, strict=True):
            yield None if ours is None else beside.cell(source)

    return Group(tuple(replace(row, published=tuple(cells(row))) for row in group.rows))


@dataclass(frozen=True)
class _Beside:
    """What stands beside one row."""

    row: Row
    runs: Runs
    options: PublishedOptions
    result: ExperimentResult

    def cell(self, source: ColumnSource) -> PublishedCell | None:
        """Return what the paper printed for a cell of the row, None if it has nothing of the kind."""
        value = self._value(source)
        if value is None:
            return None
        measured = self._measured(source)
        own = alike.differences(value, measured)
        parts = {
            part.column.title: alike.differences(printed, self._measured(part))
            for part in source.parts
            if (printed := self._value(part)) is not None
        }
        return PublishedCell(
            value.value,
            value.sd,
            value.source,
            value.flag,
            (*own, *alike.within(parts, own)),
            alike.refusal(value, measured),
        )

    def _value(self, source: ColumnSource) -> PublishedValue | None:
        place = source.measurements[0].place
        encoder = self.options.encoder_at(dict((*self.row.axes, *place)).values())
        wanted = self.options.rows.get(self.row.variant), source.published_column(self.options)
        fitting = [
            value
            for value in self.result.published
            if (value.row, value.column) == wanted and encoder in (None, value.encoder)
        ]
        return fitting[-1] if fitting else None

    def _measured(self, source: ColumnSource) -> alike.Measured:
        scores = [score for one in source.measurements for score in aggregate.scores(self.runs, one)]
        here = [run for one in source.measurements for run in aggregate.runs_at(self.runs, one.place)]
        return alike.Measured(here, scores, source.column.is_average, self.result.overrides)


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
