"""Evaluations whose tasks bring their own data: what `tasks: [all]` stands for, and checks of their names."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.config.components import ComponentParser
from synthbench.config.documents import Document, KeyPath
from synthbench.config.problems import Problems, parse
from synthbench.config.rows import ExperimentRow
from synthbench.config.schema import EvaluateSection
from synthbench.plugins.loading import component
from synthbench.plugins.task_providers import TaskProvider

ALL = "all"
"""The only name in `tasks` that stands for several."""
FOR_SOURCES = ("if_found", "exclude", "train", "dev")
"""Keys of an evaluation that only sources have a use for."""


def with_names(rows: Sequence[ExperimentRow], folder: Path) -> list[ExperimentRow]:
    """Return the rows with `tasks: [all]` of such evaluations spelt out; faulty sections stay as they are."""
    return [replace(row, document=_spelt_out(row.document, folder)) for row in rows]


def _spelt_out(document: Document, folder: Path) -> Document:
    evaluate = document.data.get("evaluate")
    if not isinstance(evaluate, dict):
        return document
    found = {name: _tasks(raw, folder) for name, raw in evaluate.items()}
    changed = {name: {**evaluate[name], "tasks": tasks} for name, tasks in found.items() if tasks}
    if not changed:
        return document
    return replace(document, data={**document.data, "evaluate": {**evaluate, **changed}})


def _tasks(raw: Any, folder: Path) -> list[str]:  # noqa: ANN401 - whatever the file holds
    """Return the tasks of a section that asks for all, [] if it does not, or can't be read."""
    if not isinstance(raw, dict) or raw.get("tasks") != [ALL] or not isinstance(raw.get("evaluator"), str):
        return []
    settings = {key: value for key, value in raw.items() if key not in EvaluateSection.model_fields}
    try:
        plugin = component("evaluators", raw["evaluator"], folder)
        if not issubclass(plugin, TaskProvider):
            return []
        provider = parse(plugin, settings, Document(settings), (), Problems(folder))
        return [] if provider is None else list(provider.names())
    except UserError:
        return []


def check_provided_tasks(
    components: ComponentParser,
    document: Document,
    path: KeyPath,
    section: EvaluateSection,
    provider: TaskProvider,
) -> None:
    """Note every name that is no task of the provider, is a source's, and every key that takes sources."""
    for key in FOR_SOURCES:
        if getattr(section, key):
            message = f"the tasks of '{section.evaluator}' bring their own data; leave it out"
            components.problems.add(document, (*path, key), message)
    for index, task in enumerate(section.tasks):
        where = (*path, "tasks", index)
        if task in components.sources:
            message = f"'{task}' is a task of '{section.evaluator}' and a source's name; rename the source"
            components.problems.add(document, where, message)
        try:
            if task != ALL:
                provider.check_name(task)
            elif len(section.tasks) > 1:
                raise UserError(f"'{ALL}' stands alone: list it, or the tasks")
            else:
                provider.names()
        except UserError as error:
            components.problems.add_error(document, where, error)
