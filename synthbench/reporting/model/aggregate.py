"""Group runs into the rows and columns of a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.grouping import grouped
from synthbench.config.coordinates import (
    Coordinates,
    RowKey,
    column_names,
    coordinates_of,
    row_at,
    values_text,
)
from synthbench.config.table_options import PublishedOptions, TableOptions
from synthbench.reporting.model.table import Cell, Column
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.statistics.differences import SeedScores

Runs = tuple[RunResult, ...]


@dataclass(frozen=True)
class Measurement:
    """The measurement in a column: an evaluator's main score on a test set.

    `coordinates` are values of the axes in `table.across`. `label` is the shortest unique name: the test set
    (with the evaluator if several score it), the coordinates, or both.
    """

    task: str
    evaluator: str
    label: str
    coordinates: Coordinates = ()

    @property
    def names(self) -> frozenset[str]:
        """The names by which an experiment file may refer to the measurement."""
        return frozenset((self.label, *column_names(self.coordinates, self.task)))

    def runs(self, runs: Sequence[RunResult]) -> Runs:
        """Return the runs that have the measurement's coordinates."""
        return tuple(
            run for run in runs if all(run.axes.get(axis) == value for axis, value in self.coordinates)
        )

    def scores(self, runs: Sequence[RunResult]) -> tuple[TaskScores, ...]:
        """Return the scores of each run that has this measurement."""
        return tuple(
            score
            for run in self.runs(runs)
            for score in run.scores
            if (score.task, score.evaluator) == (self.task, self.evaluator)
        )

    def sample(self, runs: Sequence[RunResult]) -> SeedScores | None:
        """Return the main score by seed; None if no run has it."""
        here = self.runs(runs)
        found = [(run.seed, score.scores[score.main_score]) for run in here for score in self.scores((run,))]
        return _sample(found, here)


def average(runs: Sequence[RunResult], over: Sequence[Measurement]) -> SeedScores | None:
    """Return each seed's mean main score over the measurements, without seeds that lack a measurement.

    None if no seed has all measurements.
    """
    by_seed = grouped((run.seed, run) for run in runs)
    values = []
    for seed, of_seed in by_seed.items():
        samples = [one.sample(of_seed) for one in over]
        means = [each.mean for each in samples if each is not None]
        if means and len(means) == len(over):
            values.append((seed, sum(means) / len(means)))
    return _sample(values, runs)


def _sample(values: Sequence[tuple[int, float]], runs: Sequence[RunResult]) -> SeedScores | None:
    if not values:
        return None
    seeds, found = zip(*values, strict=True)
    return SeedScores(found, any(run.is_seeded for run in runs), seeds)


def row_of(run: RunResult, across: Sequence[str] = ()) -> RowKey:
    """Return the row that a run belongs to."""
    return row_at(run.variant, run.axes, across)


def rows(result: ExperimentResult, across: Sequence[str] = ()) -> dict[RowKey, Runs]:
    """Return row -> its runs, in the result's order; a row has the runs at all values of axes `across`."""
    found = grouped((row_of(run, across), run) for run in result.runs)
    return {key: tuple(runs) for key, runs in found.items()}


def row_named(rows: Mapping[RowKey, Runs], name: str) -> tuple[RowKey, Runs]:
    """Return the row that a user names: "bm25 [base=static]", or "bm25" if the variant has only one row.

    Raises UserError if there is no such row, or if the variant has several.
    """
    of_rows = {key.label: (key, runs) for key, runs in rows.items()}
    if name in of_rows:
        return of_rows[name]
    of_variant = [label for label, (key, _) in of_rows.items() if key.variant == name]
    if len(of_variant) == 1:
        return of_rows[of_variant[0]]
    if of_variant:
        raise UserError(f"'{name}' is several rows: {', '.join(repr(label) for label in of_variant)}")
    raise UserError(f"the table has no row '{name}'{did_you_mean(name, of_rows)}")


def measurements(result: ExperimentResult, across: Sequence[str] = ()) -> tuple[Measurement, ...]:
    """Return all measurements, ordered by coordinates on the axes `across`, then as in the file."""
    found = dict.fromkeys(
        (coordinates_of(run.axes, across), score.task, score.evaluator)
        for run in result.runs
        for score in run.scores
    )
    tasks = dict.fromkeys([*result.tasks, *(task for _, task, _ in found)])
    points = dict.fromkeys(point for point, _, _ in found)
    ordered = [one for point in points for task in tasks for one in found if one[:2] == (point, task)]
    evaluators = Counter((point, task) for point, task, _ in ordered)
    named = [
        (point, task if evaluators[point, task] == 1 else f"{task} ({evaluator})")
        for point, task, evaluator in ordered
    ]
    return tuple(
        Measurement(task, evaluator, label, point)
        for (point, task, evaluator), label in zip(ordered, _labels(named), strict=True)
    )


def _labels(columns: Sequence[tuple[Coordinates, str]]) -> list[str]:
    """Return the shortest unique name of each column."""
    by_task = Counter(task for _, task in columns)
    by_point = Counter(point for point, _ in columns)
    short = [
        task if by_task[task] == 1 or not point else values_text(point) if by_point[point] == 1 else ""
        for point, task in columns
    ]
    taken = Counter(short)
    return [
        name if name and taken[name] == 1 else f"{values_text(point)}: {task}" if point else task
        for name, (point, task) in zip(short, columns, strict=True)
    ]


@dataclass(frozen=True)
class ColumnSource:
    """A column and the measurements in its cells: several for an average."""

    column: Column
    measurements: tuple[Measurement, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names by which an experiment file may refer to the column."""
        title = frozenset((self.column.title,))
        return title if self.column.is_average else title | self.measurements[0].names

    def is_even(self, runs: Sequence[RunResult]) -> bool:
        """Return whether these runs were scored by the same metric on the same number of items."""
        found = (one.scores(runs) for one in self.measurements)
        return all(len({(score.main_score, score.num_items) for score in scores}) == 1 for scores in found)

    def sample(self, runs: Runs) -> SeedScores | None:
        """Return the scores of these runs by seed; None if there are none."""
        if self.column.is_average:
            return average(runs, self.measurements)
        return self.measurements[0].sample(runs)

    @property
    def parts(self) -> "tuple[ColumnSource, ...]":
        """The columns that an average averages; () for a test set."""
        if not self.column.is_average:
            return ()
        return tuple(
            ColumnSource(replace(self.column, title=one.label, is_average=False), (one,))
            for one in self.measurements
        )

    def published_column(self, options: PublishedOptions) -> str:
        """Return the paper's name for the column: from `published.columns`, else the column's title."""
        title = self.column.title
        names = () if self.column.is_average else self.measurements[0].names
        return options.columns.get(title) or next(
            (options.columns[name] for name in sorted(names) if name in options.columns), title
        )

    def cell(self, runs: Runs) -> Cell | None:
        """Return the table cell for these runs, not yet bold; None if there are no scores."""
        sample = self.sample(runs)
        if sample is None:
            return None
        spread = sample.standard_deviation
        cell = Cell(100 * sample.mean, None if spread is None else 100 * spread, sample.num_seeds)
        if self.column.is_average:
            return cell
        first = self.measurements[0].scores(runs)[0]
        return replace(cell, num_items=first.num_items, num_dropped=first.num_dropped)


def column_sources(
    result: ExperimentResult, options: TableOptions, measured: Sequence[Measurement]
) -> tuple[ColumnSource, ...]:
    """Return the columns that the table's options ask for, without those that lack measurements."""
    shown = options.columns or tuple(one.label for one in measured)
    sources = []
    for name in dict.fromkeys([*shown, *options.averages]):
        if name not in options.averages:
            called = [one for one in measured if name in (one.names if options.columns else (one.label,))]
            sources += [_source(result, (one,)) for one in called]
            continue
        named = options.averages[name]
        over = tuple(dict.fromkeys(one for other in named for one in measured if other in one.names))
        if all(any(other in one.names for one in over) for other in named):
            sources.append(_source(result, over, average_name=name))
    return tuple(dict.fromkeys(sources))


def _source(
    result: ExperimentResult, over: tuple[Measurement, ...], *, average_name: str = ""
) -> ColumnSource:
    scores = [score for one in over for score in one.scores(result.runs)]
    metrics = {score.main_score: score.title or score.main_score for score in scores}
    titles = tuple(dict.fromkeys(metrics.values()))
    is_average = bool(average_name)
    is_seen = not {one.task for one in over}.isdisjoint(each.name for each in result.seen if each.is_test)
    title = average_name or over[0].label
    return ColumnSource(Column(title, tuple(metrics), titles, is_average, is_seen), over)
