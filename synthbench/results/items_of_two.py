"""Item noise between two results, and the test sets whose items differ between them."""

from collections.abc import Mapping, Sequence
from functools import partial

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.records import ArtifactDamagedError
from synthbench.plugins.model_contracts import Evaluator
from synthbench.reporting.model.item_errors import PairInColumn, one_set
from synthbench.reporting.model.two_results import FIRST, SECOND, called, comparison_of
from synthbench.reporting.results import ExperimentResult, TaskScores
from synthbench.results.evaluators import evaluator_of
from synthbench.results.item_noise import item_noise
from synthbench.results.sentences import task_of
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Scores
from synthbench.statistics.item_noise import ItemNoise

_Key = tuple[str, tuple[tuple[str, str], ...], str, str]
"""Variant, coordinates, test set, evaluator."""


def items_of_two(
    first: ExperimentResult, second: ExperimentResult, artifacts: Artifacts
) -> tuple[tuple[ItemNoise, ...], frozenset[PairInColumn]]:
    """Return the item noise of rows in both results, and the comparisons scored on different items.

    A row of the first result is called "NAME (A)", the same row of the second "NAME (B)". Rows have no item
    noise if the store no longer holds their items, or if their evaluator can't compute influences. Different
    items are noticed only if the store holds both test sets.
    """
    ours, theirs = _by_key(first), _by_key(second)
    others = {
        (frozenset(axes), one_set(task, evaluator), frozenset(called(row, each) for each in (FIRST, SECOND)))
        for key in ours.keys() & theirs.keys()
        for row, axes, task, evaluator in [key]
        if _have_other_items((*ours[key], *theirs[key]), artifacts)
    }
    noise = item_noise(comparison_of(first, second), partial(_evaluator, artifacts), artifacts)
    return tuple(noise), frozenset(others)


def _by_key(result: ExperimentResult) -> Mapping[_Key, Sequence[TaskScores]]:
    found: dict[_Key, list[TaskScores]] = {}
    for run in result.runs:
        for score in run.scores:
            key = (run.variant, tuple(run.axes.items()), score.task, score.evaluator)
            found.setdefault(key, []).append(score)
    return found


def _evaluator(artifacts: Artifacts, score: TaskScores) -> Evaluator | None:
    """Return the evaluator of a score; None if the evaluator is gone, or items or test set are damaged."""
    try:
        artifacts.file(score.stage, ITEMS_FILE)
        artifacts.json(score.stage, SCORES_FILE, Scores)
        if artifacts.has_dataset(task := task_of(score.stage, artifacts)):
            artifacts.dataset(task)
    except ArtifactDamagedError:
        return None
    return evaluator_of(score)


def _have_other_items(scores: Sequence[TaskScores], artifacts: Artifacts) -> bool:
    """Return whether the test sets are known to differ in content."""
    tasks = {task_of(score.stage, artifacts) for score in scores}
    try:
        contents = {artifacts.manifest(task).content_hash for task in tasks if artifacts.has_dataset(task)}
        return len(contents) > 1 and all(map(artifacts.has_dataset, tasks))
    except ArtifactDamagedError:
        return False
