"""The columns of an experiment's table, and where their cells come from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from synthbench.reporting.model.table import Cell, Column
from synthbench.reporting.options import PublishedOptions, TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.aggregate import Measurement
from synthbench.reporting.statistics.differences import Sample

Runs = tuple[RunResult, ...]


@dataclass(frozen=True)
class ColumnSource:
    """Where a column's cells come from."""

    column: Column
    measurements: tuple[Measurement, ...]

    def is_even(self, runs: Sequence[RunResult]) -> bool:
        """Tell whether these runs were scored on the same items alike."""
        found = (aggregate.scores(runs, one) for one in self.measurements)
        return all(len({(score.main_score, score.num_items) for score in scores}) == 1 for scores in found)

    def sample(self, runs: Runs) -> Sample | None:
        """Return what these runs have over their seeds, None if none has anything."""
        if self.column.is_average:
            return aggregate.average(runs, self.measurements)
        return aggregate.sample(runs, self.measurements[0])

    @property
    def parts(self) -> "tuple[ColumnSource, ...]":
        """The columns that an average is the mean of; () of a test set."""
        if not self.column.is_average:
            return ()
        return tuple(
            ColumnSource(replace(self.column, title=one.label, is_average=False), (one,))
            for one in self.measurements
        )

    def published_column(self, options: PublishedOptions) -> str:
        """Return what the paper calls it: by its title, if its file gives it no other name."""
        title = self.column.title
        names = () if self.column.is_average else self.measurements[0].names
        return options.columns.get(title) or next(
            (options.columns[name] for name in sorted(names) if name in options.columns), title
        )

    def cell(self, runs: Runs) -> Cell | None:
        """Return what the table shows of these runs, nothing bold."""
        sample = self.sample(runs)
        if sample is None:
            return None
        spread = sample.standard_deviation
        cell = Cell(100 * sample.mean, None if spread is None else 100 * spread, sample.num_seeds)
        if self.column.is_average:
            return cell
        first = aggregate.scores(runs, self.measurements[0])[0]
        return replace(cell, num_items=first.num_items, num_dropped=first.num_dropped)


def column_sources(result: ExperimentResult, options: TableOptions) -> tuple[ColumnSource, ...]:
    """Return the columns that the options ask for, of what was measured."""
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


def _source(result: ExperimentResult, over: tuple[Measurement, ...], *, average: str = "") -> ColumnSource:
    found = [aggregate.scores(result.runs, one) for one in over]
    metrics = {score.main_score: score.title or score.main_score for scores in found for score in scores}
    titles = tuple(dict.fromkeys(metrics.values()))
    column = Column(average or over[0].label, tuple(metrics), titles, is_average=bool(average))
    return ColumnSource(column, over)
