"""From runs to rows: the same variant and axis values, over all seeds."""

from dataclasses import dataclass

from synthbench.reporting.noise import Sample
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores


@dataclass(frozen=True)
class RowKey:
    """What makes one row of a table: a variant at one point of the grid."""

    variant: str
    axes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Measurement:
    """What makes one column of a table: an evaluator's main score on a test set.

    `label` is the test set's name, with the evaluator where several score the same set.
    """

    task: str
    evaluator: str
    label: str


def rows(result: ExperimentResult) -> dict[RowKey, tuple[RunResult, ...]]:
    """Return the runs of each row, rows and runs in the order of the result."""
    found: dict[RowKey, list[RunResult]] = {}
    for run in result.runs:
        found.setdefault(RowKey(run.variant, tuple(run.axes.items())), []).append(run)
    return {key: tuple(runs) for key, runs in found.items()}


def measurements(result: ExperimentResult) -> tuple[Measurement, ...]:
    """Return what was measured, in the file's order of test sets."""
    pairs = {(score.task, score.evaluator): None for run in result.runs for score in run.scores}
    tasks = dict.fromkeys([*result.tasks, *(task for task, _ in pairs)])
    found = []
    for task in tasks:
        evaluators = [evaluator for name, evaluator in pairs if name == task]
        for evaluator in evaluators:
            label = task if len(evaluators) == 1 else f"{task} ({evaluator})"
            found.append(Measurement(task, evaluator, label))
    return tuple(found)


def scores(runs: tuple[RunResult, ...], measurement: Measurement) -> tuple[TaskScores, ...]:
    """Return one entry for each run that has the measurement."""
    return tuple(
        score
        for run in runs
        for score in run.scores
        if (score.task, score.evaluator) == (measurement.task, measurement.evaluator)
    )


def sample(runs: tuple[RunResult, ...], measurement: Measurement) -> Sample | None:
    """Return the main score over the seeds, None if no run has it."""
    values = tuple(score.scores[score.main_score] for score in scores(runs, measurement))
    return Sample(values, _is_seeded(runs)) if values else None


def average(runs: tuple[RunResult, ...], over: tuple[Measurement, ...]) -> Sample | None:
    """Return each seed's mean main score over several measurements; seeds that lack one do not count."""
    values = []
    for run in runs:
        samples = [sample((run,), measurement) for measurement in over]
        complete = [one.mean for one in samples if one is not None]
        if complete and len(complete) == len(over):
            values.append(sum(complete) / len(complete))
    return Sample(tuple(values), _is_seeded(runs)) if values else None


def _is_seeded(runs: tuple[RunResult, ...]) -> bool:
    return any(run.is_seeded for run in runs)
