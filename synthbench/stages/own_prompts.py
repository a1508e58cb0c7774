"""A model's own prompts for queries and passages, if they differ from its usual prompt.

Only stages that rank with such a model have these prompts in their identity. Rankings read them since
November 2026, which changed the results of these stages only.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from synthbench.data.records import RecordKind
from synthbench.engine.stage import START, Stage
from synthbench.models.checks import prompts_of_rankings
from synthbench.models.pretrained import PASSAGE, QUERY, Pretrained
from synthbench.plugins.model_contracts import Evaluator, Trainer
from synthbench.plugins.task_providers import TaskProvider

OWN_PROMPTS = "own_prompts"
OF_QUERIES = (RecordKind.RANKING, RecordKind.RETRIEVAL)
"""Kinds of tasks with queries and passages; a model may have a different prompt for each of the two."""
OwnPrompts = tuple[Mapping[str, Any], ...]
"""Query and passage prompts per distinct base model; several if dev scores choose among candidates."""
_SHOWN = 80


def reads_queries(evaluator: Evaluator) -> bool:
    """Return whether an evaluator's tasks may have queries and passages; True for all task providers."""
    return evaluator.record_kind in OF_QUERIES or isinstance(evaluator, TaskProvider)


def own_prompts(*models: Stage) -> OwnPrompts:
    """Return the distinct query and passage prompts of the trained models' bases, () if there are none."""
    found: list[Mapping[str, Any]] = []
    for base in (base for model in models for base in bases_of(model)):
        reads = prompts_of_rankings(base)
        found += [reads] if reads is not None and reads not in found else []
    return tuple(found)


def bases_of(model: Stage) -> Iterator[Pretrained]:
    """Yield a trained model's base, or each candidate's base; for a "start" input, the base of that model."""
    plugin = getattr(model.operation, "plugin", None)
    if START in model.inputs:
        yield from bases_of(model.inputs[START])
    elif isinstance(plugin, Trainer):
        base = getattr(plugin, "base", None)
        yield from [base] if isinstance(base, Pretrained) else []
    else:
        for candidate in model.inputs.values():
            yield from bases_of(candidate)


def as_setting(found: OwnPrompts) -> Mapping[str, Any]:
    """Return the prompts as an entry of a stage's configuration, {} without prompts."""
    return {OWN_PROMPTS: [dict(each) for each in found]} if found else {}


def in_words(found: OwnPrompts) -> str:
    """Return the prompts in words: "queries after 'query:', passages after nothing"."""
    return "; or ".join(
        f"queries after {_quoted(each[QUERY])}, passages after {_quoted(each[PASSAGE])}" for each in found
    )


def notes_on_prompts(rankings: Iterable[tuple[str, str, OwnPrompts]]) -> Iterator[str]:
    """Yield a note for tables on each set of prompts, from (row, task, prompts) of each ranking stage."""
    rows: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for row, task, found in rankings:
        if found:
            names, tasks = rows.setdefault(in_words(found), ({}, {}))
            names[row], tasks[task] = None, None
    for prompts, (names, tasks) in rows.items():
        yield (
            f"{', '.join(names)}: on {', '.join(tasks)}, the model's own prompts are read, {prompts};"
            " `prompts: {}` of the evaluation leaves them out."
        )


def _quoted(text: str) -> str:
    line = " ".join(text.split())
    return "nothing" if not line else f"'{line if len(line) <= _SHOWN else line[:_SHOWN] + '...'}'"
