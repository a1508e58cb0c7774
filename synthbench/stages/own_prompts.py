"""The prompts that a model brings for queries and passages, where it reads other texts otherwise.

Only stages that rank by such a model have them in their identity: what they compute was another thing before
rankings read these prompts (November 2026), and all other stages are what they were.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from synthbench.data.records import RecordKind
from synthbench.engine.stage import START, Stage
from synthbench.models.checks import prompts_of_rankings
from synthbench.models.pretrained import PASSAGE, QUERY, Pretrained
from synthbench.plugins.contracts import Evaluator, Trainer
from synthbench.plugins.task_providers import TaskProvider

OWN_PROMPTS = "own_prompts"
OF_QUERIES = (RecordKind.RANKING, RecordKind.RETRIEVAL)
"""Kinds of tasks with queries and passages, which a model may read after two prompts."""
OwnPrompts = tuple[Mapping[str, Any], ...]
"""Of each different base of a model: several, if dev scores choose among candidates."""
_SHOWN = 80


def reads_queries(evaluator: Evaluator) -> bool:
    """Tell whether some tasks of an evaluator have queries and passages."""
    return evaluator.record_kind in OF_QUERIES or isinstance(evaluator, TaskProvider)


def own_prompts(*models: Stage) -> OwnPrompts:
    """Return the prompts that the bases of trained models bring with them, () if they bring none."""
    found: list[Mapping[str, Any]] = []
    for base in (base for model in models for base in bases_of(model)):
        reads = prompts_of_rankings(base)
        found += [reads] if reads is not None and reads not in found else []
    return tuple(found)


def bases_of(model: Stage) -> Iterator[Pretrained]:
    """Yield the base of each training that may have made a model; of trainings in a row, the first one's."""
    plugin = getattr(model.operation, "plugin", None)
    if START in model.inputs:
        yield from bases_of(model.inputs[START])
    elif isinstance(plugin, Trainer):
        base = getattr(plugin, "base", None)
        yield from [base] if isinstance(base, Pretrained) else []
    else:
        for candidate in model.inputs.values():
            yield from bases_of(candidate)


def noted(found: OwnPrompts) -> Mapping[str, Any]:
    """Return what a stage's configuration says of them, {} without any."""
    return {OWN_PROMPTS: [dict(each) for each in found]} if found else {}


def shown(found: OwnPrompts) -> str:
    """Return the prompts in words."""
    return "; or ".join(
        f"queries after {_quoted(each[QUERY])}, passages after {_quoted(each[PASSAGE])}" for each in found
    )


def notes_on(rankings: Iterable[tuple[str, str, OwnPrompts]]) -> Iterator[str]:
    """Yield a note for the tables on each kind of prompts; `rankings` are a row, a task and its prompts."""
    rows: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row, task, found in rankings:
        if found:
            names, tasks = rows.setdefault(shown(found), ({}, {}))
            names[row], tasks[task] = None, None
    for prompts, (names, tasks) in rows.items():
        yield (
            f"{', '.join(names)}: on {', '.join(tasks)}, the model's own prompts are read, {prompts};"
            " `prompts: {}` of the evaluation leaves them out."
        )


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return "nothing" if not line else f"'{line if len(line) <= _SHOWN else line[:_SHOWN] + '...'}'"
