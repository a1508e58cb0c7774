"""Costs of a result's rows, summed over all stages that led to their scores."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from synthbench.config.table_options import CostKind
from synthbench.reporting.model.aggregate import row_of
from synthbench.reporting.results import CostResult, ExperimentResult, Ingredient, RunResult

RECORD_USD = "record_usd"
"""The key of `result.table` that holds US dollars per record by source."""
_ELSEWHERE = "another stage paid for its LLM's answers"
_UNKNOWN = "its LLM's requests were not recorded"
_NO_START = "the row that it starts from is not in this result"
_UNPRICED = "no price is known; set `llm.price`"
_CLEANED = "the store no longer has its priced source"


@dataclass(frozen=True)
class RowSpending:
    """A row's cost in US dollars, tokens or seconds, or why the cost is unknown."""

    amount: float | None
    why_unknown: str = ""


def spending(
    result: ExperimentResult, runs: Sequence[RunResult], kind: CostKind, hour_usd: float
) -> RowSpending:
    """Return the cost of a row's runs, summed per seed and averaged over seeds; `runs` must not be empty.

    `hour_usd`: price of an hour of computing in US dollars, used only for the total of all costs.
    """
    seeds: dict[int, float] = {}
    for run in runs:
        found = _spent(result, (run, *_starts(result, run)), kind, hour_usd)
        if found.amount is None:
            return found
        seeds[run.seed] = seeds.get(run.seed, 0.0) + found.amount
    return RowSpending(fmean(seeds.values()))


def _starts(result: ExperimentResult, run: RunResult) -> Iterator[RunResult | None]:
    """Yield the chain of runs whose models a run's training starts from, nearest first.

    The row that a run starts from may have fewer axes than the run. The chain ends with None if the next run
    is not in this result.
    """
    name = run.parameters.get("train.starts_from")
    if not name:
        return
    of_row = [each for each in result.runs if each.variant == name and each.axes.items() <= run.axes.items()]
    first = next((each for each in of_row if each.seed == run.seed or not each.is_seeded), None)
    yield first
    if first is not None:
        yield from _starts(result, first)


def _spent(
    result: ExperimentResult, chain: Sequence[RunResult | None], kind: CostKind, hour_usd: float
) -> RowSpending:
    """Return what a run cost; `chain` is the run, then those whose models it starts from."""
    runs = [run for run in chain if run is not None]
    computed = _seconds(runs[0])  # holds the seconds of the whole chain
    if kind == "seconds":
        return computed
    if len(runs) < len(chain):
        return RowSpending(None, _NO_START)
    if kind == "tokens":
        return _asked(result, runs, kind)
    paid = _asked(result, runs, "dollars")
    if paid.amount is not None:
        records = _records_usd(runs, result.table.get(RECORD_USD, {}))
        paid = RowSpending(None, _CLEANED) if records is None else RowSpending(paid.amount + records)
    if kind == "dollars" or paid.amount is None:
        return paid
    if computed.amount is None:
        return computed
    return RowSpending(paid.amount + computed.amount / 3600 * hour_usd)


def _records_usd(runs: Sequence[RunResult], prices: Mapping[str, float]) -> float | None:
    """Return the US dollars paid for records of sources with a price, counting each source once.

    Includes the records that prepare steps dropped. None if a priced source's number of records is unknown.
    """
    read = {
        source.stage: (_source_name(source), source.num_records)
        for run in runs
        for data in run.datasets
        for source in data.made_of
        if source.kind == "source"
    }
    unprepared = {
        data.stage: (str(run.parameters.get(f"data.{data.part}.source")), data.num_records)
        for run in runs
        for data in run.datasets
        if not data.made_of
    }
    priced = [(number, prices[name]) for name, number in {**read, **unprepared}.values() if name in prices]
    if any(number is None for number, _ in priced):
        return None
    return sum((number or 0) * usd for number, usd in priced)


def _source_name(source: Ingredient) -> str:
    """Return the source's name in the experiment file, without the seed of "NAME seed 3"."""
    return source.name.partition(" ")[0]


def _seconds(run: RunResult) -> RowSpending:
    """Return the run's computing seconds; unknown for older results and artifacts without durations."""
    if run.seconds > 0 and math.isfinite(run.seconds):
        return RowSpending(run.seconds)
    return RowSpending(None, "its seconds were not recorded")


def _asked(result: ExperimentResult, runs: Sequence[RunResult], kind: CostKind) -> RowSpending:
    costs = _costs(result, runs)
    if not costs:
        uses_llm = any(dataset.llm for run in runs for dataset in run.datasets)
        return RowSpending(None, _UNKNOWN) if uses_llm else RowSpending(0.0)
    if any(cost.num_requests == 0 and cost.num_records for cost in costs):
        return RowSpending(None, _ELSEWHERE)
    if kind == "tokens":
        return RowSpending(float(sum(cost.prompt_tokens + cost.completion_tokens for cost in costs)))
    if not all(cost.is_priced for cost in costs):
        return RowSpending(None, _UNPRICED)
    return RowSpending(sum(cost.usd for cost in costs))


def _costs(result: ExperimentResult, runs: Sequence[RunResult]) -> list[CostResult]:
    """Return the LLM costs of the runs' data, each stage once.

    The `rows` of a cost are labels, such as "dino", or labels with a seed: "dino seed 3".
    """
    names = set[str]()
    for run in runs:
        label = row_of(run).label
        names |= {label, f"{label} seed {run.seed}"}
    return list({cost.stage: cost for cost in result.costs if names & {*cost.rows}}.values())
