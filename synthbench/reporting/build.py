"""From a result to its table."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from synthbench.reporting import aggregate, alike
from synthbench.reporting.aggregate import Measurement, RowKey
from synthbench.reporting.noise import Sample, leads
from synthbench.reporting.notes import figure_notes, table_notes
from synthbench.reporting.options import PublishedOptions, TableOptions
from synthbench.reporting.published import PublishedValue
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.table import Axes, Cell, Column, Group, PublishedCell, Row, Table

Runs = tuple[RunResult, ...]


def build_table(result: ExperimentResult) -> Table:
    """Return the table that the result's own options ask for.

    Raises pydantic.ValidationError if `result.table` does not hold TableOptions.
    """
    options = TableOptions.model_validate(result.table)
    sources = _column_sources(result, options)
    members: dict[Axes, list[tuple[RowKey, Runs]]] = {}
    for key, runs in aggregate.rows(result, options.across).items():
        members.setdefault(key.axes, []).append((key, runs))
    groups = tuple(
        _with_published(_group(rows, sources, options), dict(rows), sources, result)
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
    return replace(table, notes=table_notes(table, result, options), figure_notes=figure_notes(table, result))


def _caption(result: ExperimentResult, options: TableOptions) -> str:
    """Return the file's caption; where rows were left out, of which it may speak, say which are left."""
    caption = options.caption or result.description or result.experiment
    if not any(override.startswith("--variant") for override in result.overrides):
        return caption
    rows = dict.fromkeys(run.variant for run in result.runs)
    return f"Only {', '.join(rows)} of: {caption}"


@dataclass(frozen=True)
class _ColumnSource:
    """Where a column's cells come from; `is_even` if all rows were scored on the same items alike."""

    column: Column
    measurements: tuple[Measurement, ...]
    is_even: bool

    def sample(self, runs: Runs) -> Sample | None:
        if self.column.is_average:
            return aggregate.average(runs, self.measurements)
        return aggregate.sample(runs, self.measurements[0])

    def published_column(self, options: PublishedOptions) -> str:
        """Return what the paper calls it: by its title, if its file gives it no other name."""
        title = self.column.title
        names = () if self.column.is_average else self.measurements[0].names
        return options.columns.get(title) or next(
            (options.columns[name] for name in sorted(names) if name in options.columns), title
        )

    def cell(self, runs: Runs) -> Cell | None:
        sample = self.sample(runs)
        if sample is None:
            return None
        spread = sample.standard_deviation
        cell = Cell(100 * sample.mean, None if spread is None else 100 * spread, sample.num_seeds)
        if self.column.is_average:
            return cell
        first = aggregate.scores(runs, self.measurements[0])[0]
        return replace(cell, num_items=first.num_items, num_dropped=first.num_dropped)


def _column_sources(result: ExperimentResult, options: TableOptions) -> tuple[_ColumnSource, ...]:
    measured = aggregate.measurements(result, options.across)
    shown = options.columns or tuple(one.label for one in measured)
    sources = []
    for name in dict.fromkeys([*shown, *options.averages]):
        if name not in options.averages:
            sources += [_source(result, (one,)) for one in measured if _is_called(one, name, options)]
            continue
        named = options.averages[name]
        over = tuple(dict.fromkeys(one for other in named for one in measured if other in one.names))
        if all(any(other in one.names for one in over) for other in named):
            sources.append(_source(result, over, average=name))
    return tuple(dict.fromkeys(sources))


def _is_called(measurement: Measurement, name: str, options: TableOptions) -> bool:
    return name in measurement.names if options.columns else name == measurement.label


def _source(result: ExperimentResult, over: tuple[Measurement, ...], *, average: str = "") -> _ColumnSource:
    found = [aggregate.scores(result.runs, one) for one in over]
    metrics = {score.main_score: score.title or score.main_score for scores in found for score in scores}
    is_even = all(len({(score.main_score, score.num_items) for score in scores}) == 1 for scores in found)
    titles = tuple(dict.fromkeys(metrics.values()))
    column = Column(average or over[0].label, tuple(metrics), titles, is_average=bool(average))
    return _ColumnSource(column, over, is_even)


def _with_published(
    group: Group, runs: Mapping[RowKey, Runs], sources: Sequence[_ColumnSource], result: ExperimentResult
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
    source: _ColumnSource, row: Row, options: PublishedOptions, values: Sequence[PublishedValue]
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
    value: PublishedValue, runs: Runs, source: _ColumnSource, result: ExperimentResult
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
    members: Sequence[tuple[RowKey, Runs]], sources: Sequence[_ColumnSource], options: TableOptions
) -> Group:
    compared = [member for member in members if member[0].variant not in options.ceiling]
    ceilings = [member for member in members if member[0].variant in options.ceiling]
    winners = [_winner(source, compared) for source in sources]
    rows = []
    for key, runs in (*compared, *ceilings):
        cells = [source.cell(runs) for source in sources]
        marked = tuple(
            replace(cell, is_bold=True) if cell is not None and key == winner else cell
            for cell, winner in zip(cells, winners, strict=True)
        )
        rows.append(Row(key.variant, key.axes, marked, key.variant in options.ceiling))
    return Group(tuple(rows))


def _winner(source: _ColumnSource, members: Sequence[tuple[RowKey, Runs]]) -> RowKey | None:
    """Return the row that leads every other row by more than the noise; a row alone leads nobody."""
    samples = {key: sample for key, runs in members if (sample := source.sample(runs)) is not None}
    if not source.is_even or len(samples) < 2:
        return None
    best = max(samples, key=lambda key: -math.inf if math.isnan(samples[key].mean) else samples[key].mean)
    others = (sample for key, sample in samples.items() if key != best)
    return best if all(leads(samples[best], other) for other in others) else None
