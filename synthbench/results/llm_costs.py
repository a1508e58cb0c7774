"""Costs of an experiment's data by stage, from the ledger of LLM requests."""

from collections.abc import Iterable, Iterator
from typing import Any

from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import Plan, PlannedRun
from synthbench.engine.stage import Stage, ancestors
from synthbench.llm.endpoint import price_of
from synthbench.llm.ledger import entries
from synthbench.llm.prices import ListPrice
from synthbench.reporting.model.cost_section import COUNTS
from synthbench.reporting.results import CostResult
from synthbench.stages.asking import AskingOperation


def cost_results(plan: Plan, artifacts: Artifacts) -> tuple[CostResult, ...]:
    """Return the cost of each stage that asked an LLM, grouped by part of the data.

    Rows that share a stage share its result.
    """
    asked: dict[str, tuple[str, list[Stage]]] = {}
    rows: dict[str, dict[str, None]] = {}
    for run in plan.runs:
        for parts in run.data.values():
            counted: set[str] = set()
            for part, stage in parts.items():
                asking = (each for each in ancestors([stage]) if _operation(each) is not None)
                stages = [each for each in asking if artifacts.has(each.identity)]
                # The cost of a part's input parts is in their own lines.
                stages = [each for each in stages if each.identity not in counted]
                counted.update(each.identity for each in stages)
                if stages:
                    asked.setdefault(stages[-1].identity, (part, stages))
                    rows.setdefault(stages[-1].identity, {})[_row(run, plan)] = None
    return tuple(
        CostResult(part=part, rows=tuple(rows[own]), **_cost(stage, artifacts))
        for own, (part, stages) in asked.items()
        for stage in stages
    )


def paid_for(stages: Iterable[Stage], artifacts: Artifacts) -> float | None:
    """Return the US dollars that stages paid to LLMs; None without a price, or if another stage paid."""
    usd = 0.0
    for stage in stages:
        if _operation(stage) is not None:
            cost = _cost(stage, artifacts)
            if not cost["is_priced"] or not cost["num_requests"]:
                return None
            usd += cost["usd"]
    return usd


def makers(stage: Stage) -> Iterator[AskingOperation[Any]]:
    """Yield the methods and steps that made a data set with models or an LLM, dependencies first."""
    found = (each.operation for each in ancestors([stage]))
    return (operation for operation in found if isinstance(operation, AskingOperation))


def _operation(stage: Stage) -> AskingOperation[Any] | None:
    """Return the stage's operation if it asks an LLM, else None."""
    operation = stage.operation
    return operation if isinstance(operation, AskingOperation) and operation.llm is not None else None


def _row(run: PlannedRun, plan: Plan) -> str:
    """Return the row's label, with the seed if each seed asks for its own data."""
    same = (other for other in plan.runs if other.variant is run.variant)
    is_varied = "generation" in plan.experiment.vary or len(set(map(_asked_of, same))) > 1
    return run.label if is_varied else run.variant.label


def _asked_of(run: PlannedRun) -> frozenset[str]:
    """Return the identities of all stages behind a run's data that ask an LLM."""
    data = (stage for parts in run.data.values() for stage in parts.values())
    return frozenset(stage.identity for stage in ancestors(data) if _operation(stage) is not None)


def _cost(stage: Stage, artifacts: Artifacts) -> dict[str, Any]:
    operation = _operation(stage)
    assert operation is not None
    assert operation.llm is not None
    price = price_of(operation.llm.endpoint())
    found = entries(artifacts.answers, stage=stage.identity)
    return {
        "method": operation.name,
        "llm": operation.llm.title,
        "num_records": artifacts.manifest(stage.identity).num_records,
        "num_requests": sum(entry.paid.num_attempts for entry in found),
        "prompt_tokens": sum(entry.paid.prompt_tokens for entry in found),
        "completion_tokens": sum(entry.paid.completion_tokens for entry in found),
        "usd": sum(entry.paid.usd for entry in found),
        "in_doubt_usd": sum(entry.in_doubt.usd for entry in found),
        "is_priced": price is not None,
        "price_list": price.origin if isinstance(price, ListPrice) else "",
        **{name: sum(getattr(entry, name) for entry in found) for name in COUNTS},
        "stage": stage.identity,
    }
