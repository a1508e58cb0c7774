"""What a row cost: US dollars and tokens of the LLMs that were asked, seconds of computing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from synthbench.reporting.options import CostKind
from synthbench.reporting.results import CostResult, ExperimentResult, RunResult
from synthbench.reporting.statistics.aggregate import RowKey

TITLES: dict[CostKind, str] = {"dollars": "US dollars", "tokens": "tokens", "seconds": "seconds"}
MEANINGS: dict[CostKind, str] = {
    "dollars": (
        "US dollars: what LLMs were paid for a row's data, all of it for each row that shares them; answers"
        " that the cache held already are not among it."
    ),
    "tokens": (
        "Tokens: what LLMs that were asked read and wrote for a row's data, all of it for each row that"
        " shares them; answers that the cache held already are not among it. What a method's own language"
        " model writes costs seconds only."
    ),
    "seconds": (
        "Seconds: what the stages behind a seed's scores took on the clock when they were computed, from data"
        " to evaluation, waiting for LLMs included, all of it for each row that shares them; they say as much"
        " as the machines were alike."
    ),
}
_ELSEWHERE = "its LLM's answers were paid for by another stage"
_UNKNOWN = "nobody knows what its LLM was asked"
_UNPRICED = "nobody knows what a token costs; give `llm.price`"


@dataclass(frozen=True)
class Spending:
    """What was spent, or why that is not known."""

    amount: float | None
    why_unknown: str = ""


def spending(result: ExperimentResult, runs: Sequence[RunResult], kind: CostKind) -> Spending:
    """Return the mean over the seeds of what all runs of a seed cost together; there is at least one run."""
    seeds: dict[int, float] = {}
    for run in runs:
        found = _seconds(run) if kind == "seconds" else _asked(result, run, kind)
        if found.amount is None:
            return found
        seeds[run.seed] = seeds.get(run.seed, 0.0) + found.amount
    return Spending(fmean(seeds.values()))


def _seconds(run: RunResult) -> Spending:
    """Return the seconds; older results, and artifacts that tell no duration, have none."""
    if run.seconds > 0 and math.isfinite(run.seconds):
        return Spending(run.seconds)
    return Spending(None, "its seconds were not recorded")


def _asked(result: ExperimentResult, run: RunResult, kind: CostKind) -> Spending:
    costs = _costs(result, run)
    if not costs:
        uses_llm = any(dataset.llm for dataset in run.datasets)
        return Spending(None, _UNKNOWN) if uses_llm else Spending(0.0)
    if any(cost.num_requests == 0 and cost.num_records for cost in costs):
        return Spending(None, _ELSEWHERE)
    if kind == "tokens":
        return Spending(float(sum(cost.prompt_tokens + cost.completion_tokens for cost in costs)))
    if not all(cost.is_priced for cost in costs):
        return Spending(None, _UNPRICED)
    return Spending(sum(cost.usd for cost in costs))


def _costs(result: ExperimentResult, run: RunResult) -> list[CostResult]:
    """Return what was asked for the run's data, each stage once; rows may be named with their seeds."""
    label = RowKey(run.variant, tuple(run.axes.items())).label
    names = {label, f"{label} seed {run.seed}"}
    return list({cost.stage: cost for cost in result.costs if names & {*cost.rows}}.values())
