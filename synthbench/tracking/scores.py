"""The scores of rows and runs by the names of the tables' columns, averages included."""

from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.aggregate import Measurement
from synthbench.reporting.statistics.differences import Sample


@dataclass(frozen=True)
class Columns:
    """The columns of a result, averages last: name -> what is averaged, one measurement where nothing is."""

    over: dict[str, tuple[Measurement, ...]]

    def samples(self, runs: Sequence[RunResult]) -> dict[str, Sample]:
        """Return each column's main scores of these runs, one for each seed; empty columns are left out."""
        found = {
            name: aggregate.sample(runs, over[0]) if len(over) == 1 else aggregate.average(runs, over)
            for name, over in self.over.items()
        }
        return {name: sample for name, sample in found.items() if sample is not None}


def columns_of(result: ExperimentResult) -> Columns:
    """Return the columns of a result, one for each test set and evaluator, and the averages of its table.

    Where the table goes across an axis, each value of it is a place of its own here: an average over
    several of them is left out.
    """
    measured = aggregate.measurements(result)
    over: dict[str, tuple[Measurement, ...]] = {one.label: (one,) for one in measured}
    for name, tasks in result.table.get("averages", {}).items():
        named = tuple(one for one in measured if not one.names.isdisjoint(tasks))
        if len(named) == len(tasks) and name not in over:
            over[name] = named
    return Columns(over)
