"""Item noise between two results, and the test sets whose items differ between them."""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from synthbench.base.errors import UserError
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.records import ArtifactDamagedError
from synthbench.plugins.contracts import Evaluator
from synthbench.plugins.loading import component
from synthbench.reporting.model.item_errors import PairOnTask
from synthbench.reporting.model.two_results import FIRST, SECOND, called
from synthbench.reporting.results import ExperimentResult, TaskScores
from synthbench.results.item_noise import Scored, noise_of_rows
from synthbench.statistics.item_noise import ItemNoise

_Key = tuple[str, tuple[tuple[str, str], ...], str, str]
"""Variant, coordinates, test set, evaluator."""


@dataclass(frozen=True)
class _Measured:
    """One run's score on a test set."""

    row: str
    seed: int
    is_seeded: bool
    score: TaskScores


def items_of_two(
    first: ExperimentResult, second: ExperimentResult, artifacts: Artifacts
) -> tuple[tuple[ItemNoise, ...], frozenset[PairOnTask]]:
    """Return the item noise of rows in both results, and the comparisons scored on different items.

    A row of the first result is called "NAME (A)", the same row of the second "NAME (B)". Rows whose items
    the store no longer holds, or whose evaluator can't compute influences, are in neither.
    """
    sides = [_by_key(result, label) for result, label in ((first, FIRST), (second, SECOND))]
    noise: list[ItemNoise] = []
    others: set[PairOnTask] = set()
    for key in [key for key in sides[0] if key in sides[1]]:
        _, axes, task, evaluator = key
        measured = [*sides[0][key], *sides[1][key]]
        # The plug-in may be gone or its settings changed, and an artifact may be damaged.
        with suppress(UserError, ValidationError, ArtifactDamagedError):
            are_same = _have_same_items(measured, artifacts)
            if are_same is False:
                others.add((frozenset(axes), task, evaluator, frozenset(each.row for each in measured)))
            elif are_same:
                noise += noise_of_rows((dict(axes), task, evaluator), list(_scored(measured)), artifacts)
    return tuple(noise), frozenset(others)


def _by_key(result: ExperimentResult, label: str) -> dict[_Key, list[_Measured]]:
    found: dict[_Key, list[_Measured]] = {}
    for run in result.runs:
        for score in run.scores:
            key = (run.variant, tuple(run.axes.items()), score.task, score.evaluator)
            measured = _Measured(called(run.variant, label), run.seed, run.is_seeded, score)
            found.setdefault(key, []).append(measured)
    return found


def _scored(measured: Sequence[_Measured]) -> Iterator[Scored]:
    """Yield the runs with their evaluators; raises UserError or ValidationError if one can't be loaded."""
    for each in measured:
        evaluator = _evaluator(each.score)
        yield Scored(each.row, each.seed, each.is_seeded, each.score.stage, evaluator)


def _evaluator(score: TaskScores) -> Evaluator:
    plugin = component("evaluators", score.evaluator)
    settings = {name: value for name, value in score.settings.items() if name in plugin.model_fields}
    evaluator: Evaluator = plugin.model_validate_json(json.dumps(settings))
    return evaluator


def _have_same_items(measured: Sequence[_Measured], artifacts: Artifacts) -> bool | None:
    """Return whether the test sets are equal, made by one stage or with equal content; None if unknown."""
    tasks = {_task_stage(each.score, artifacts) for each in measured}
    if len(tasks) == 1:
        return True
    contents = {
        artifacts.manifest(task).content_hash if artifacts.has_dataset(task) else "" for task in tasks
    }
    return None if "" in contents else len(contents) == 1


def _task_stage(score: TaskScores, artifacts: Artifacts) -> str:
    """Return the identity of the stage that made the test set, "" if unknown."""
    spec: dict[str, Any] = artifacts.record(score.stage).get("spec", {})
    return str(spec.get("inputs", {}).get("task", ""))
