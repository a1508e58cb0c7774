"""From runs to rows: the same variant and axis values, over all seeds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.reporting.statistics.differences import Sample

Place = tuple[tuple[str, str], ...]
"""Axes with one value of each, in the order in which they are asked for."""


@dataclass(frozen=True)
class RowKey:
    """What makes one row of a table: a variant at one point of the grid."""

    variant: str
    axes: Place

    @property
    def label(self) -> str:
        """The variant with its axes: "bm25 [base=static]"."""
        values = ", ".join(f"{axis}={value}" for axis, value in self.axes)
        return f"{self.variant} [{values}]" if values else self.variant


@dataclass(frozen=True)
class Measurement:
    """What makes one column of a table: an evaluator's main score on a test set.

    `place` are the values of the axes that the table goes across: () where it goes across none. `label` is
    the test set's name, with the evaluator where several score the same set; where other places have the
    same set, it is the place's name if that has no other set, and both if it has.
    """

    task: str
    evaluator: str
    label: str
    place: Place = ()

    @property
    def names(self) -> frozenset[str]:
        """What an experiment file may call it."""
        return frozenset((self.label, *column_names(self.place, self.task)))


def place_of(axes: Mapping[str, str], across: Sequence[str]) -> Place:
    """Return the values that a run has on these axes."""
    return tuple((axis, axes[axis]) for axis in across if axis in axes)


def column_names(place: Place, task: str) -> tuple[str, ...]:
    """Return the names of a test set's column, the shortest first: task, place, both."""
    where = _text(place)
    return (task, where, f"{where}: {task}") if place else (task,)


def rows(result: ExperimentResult, across: Sequence[str] = ()) -> dict[RowKey, tuple[RunResult, ...]]:
    """Return the runs of each row, rows and runs in the order of the result.

    A row holds the runs of all values of the axes in `across`.
    """
    found: dict[RowKey, list[RunResult]] = {}
    for run in result.runs:
        axes = tuple((axis, value) for axis, value in run.axes.items() if axis not in across)
        found.setdefault(RowKey(run.variant, axes), []).append(run)
    return {key: tuple(runs) for key, runs in found.items()}


def measurements(result: ExperimentResult, across: Sequence[str] = ()) -> tuple[Measurement, ...]:
    """Return what was measured, place by place, in the file's order of test sets."""
    found = dict.fromkeys(
        (place_of(run.axes, across), score.task, score.evaluator)
        for run in result.runs
        for score in run.scores
    )
    tasks = dict.fromkeys([*result.tasks, *(task for _, task, _ in found)])
    places = dict.fromkeys(place for place, _, _ in found)
    ordered = [one for place in places for task in tasks for one in found if one[:2] == (place, task)]
    evaluators = Counter((place, task) for place, task, _ in ordered)
    labels = [task if evaluators[place, task] == 1 else f"{task} ({name})" for place, task, name in ordered]
    titles = _titles([(place, label) for (place, _, _), label in zip(ordered, labels, strict=True)])
    return tuple(
        Measurement(task, evaluator, title, place)
        for (place, task, evaluator), title in zip(ordered, titles, strict=True)
    )


def _titles(columns: Sequence[tuple[Place, str]]) -> list[str]:
    """Name each column as shortly as it can be told from the others."""
    of_label = Counter(label for _, label in columns)
    of_place = Counter(place for place, _ in columns)
    short = [
        label if of_label[label] == 1 or not place else _text(place) if of_place[place] == 1 else ""
        for place, label in columns
    ]
    taken = Counter(short)
    return [
        name if name and taken[name] == 1 else f"{_text(place)}: {label}" if place else label
        for name, (place, label) in zip(short, columns, strict=True)
    ]


def _text(place: Place) -> str:
    return ", ".join(value for _, value in place)


def runs_at(runs: Sequence[RunResult], place: Place) -> tuple[RunResult, ...]:
    """Return the runs that have these values of the axes."""
    return tuple(run for run in runs if all(run.axes.get(axis) == value for axis, value in place))


def scores(runs: Sequence[RunResult], measurement: Measurement) -> tuple[TaskScores, ...]:
    """Return one entry for each run that has the measurement."""
    return tuple(
        score
        for run in runs_at(runs, measurement.place)
        for score in run.scores
        if (score.task, score.evaluator) == (measurement.task, measurement.evaluator)
    )


def sample(runs: Sequence[RunResult], measurement: Measurement) -> Sample | None:
    """Return the main score over the seeds, None if no run has it."""
    at = runs_at(runs, measurement.place)
    found = [
        (run.seed, score.scores[score.main_score]) for run in at for score in scores((run,), measurement)
    ]
    return _sample(found, at)


def average(runs: Sequence[RunResult], over: Sequence[Measurement]) -> Sample | None:
    """Return each seed's mean main score over several measurements; seeds that lack one do not count."""
    of_seeds: dict[int, list[RunResult]] = {}
    for run in runs:
        of_seeds.setdefault(run.seed, []).append(run)
    values = []
    for seed, of_seed in of_seeds.items():
        samples = [sample(of_seed, measurement) for measurement in over]
        complete = [one.mean for one in samples if one is not None]
        if complete and len(complete) == len(over):
            values.append((seed, sum(complete) / len(complete)))
    return _sample(values, runs)


def _sample(values: Sequence[tuple[int, float]], runs: Sequence[RunResult]) -> Sample | None:
    """Return scores by seed as a sample, None if there are none."""
    if not values:
        return None
    seeds, found = zip(*values, strict=True)
    return Sample(found, any(run.is_seeded for run in runs), seeds)
