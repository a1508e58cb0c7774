"""The section of costs: what each part of the data cost, beside the costs that a paper reports."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from synthbench.base.grouping import grouped
from synthbench.config.published_tables import PublishedValue
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import notes_without_scores
from synthbench.reporting.model.sections import Block, CsvTable, Grid, Line, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import CostResult

ALL = "all"
TITLE = "LLM requests and their costs"
_HEADER = ("data", "of", "records", "requests", "tokens in", "tokens out", "US dollars", "per record")
COUNTS = {
    "cached_tokens": "tokens in that the service had cached",
    "reasoning_tokens": "tokens out that were thoughts",
    "num_cut_off": "answers cut off by a limit on tokens",
    "num_empty": "empty answers",
    "num_filtered": "answers withheld by a filter or a refusal",
    "num_faulty": "faulty replies",
}
FIELDS = (
    "data", "part", "rows", "llm", "records", "requests", "prompt_tokens", "completion_tokens", "usd",
    "usd_per_record", "in_doubt_usd", "published_usd_per_sentence", *COUNTS,
)  # fmt: skip


def cost_section(analysis: Analysis) -> ReportSection | None:
    """Return the section: a line per stage, and a sum per part with several stages.

    None if no LLM was asked.
    """
    if not analysis.result.costs:
        return None
    published = _published(analysis)
    header = (*_HEADER, "published") if published else _HEADER
    shows_llm = len({cost.llm for cost in analysis.result.costs}) > 1
    lines = _lines(analysis.result.costs)
    grid = Grid(header, tuple(_texts(name, cost, published, shows_llm=shows_llm) for name, cost in lines))
    return ReportSection("costs", cost_csv(analysis), (Block(TITLE, (grid,)),), tuple(_notes(analysis)))


def cost_csv(analysis: Analysis) -> CsvTable:
    """Return a line per stage, and a sum per part with several stages."""
    published = _published(analysis)
    return CsvTable(FIELDS, [_csv_line(*line, published) for line in _lines(analysis.result.costs)])


def _csv_line(name: str, cost: CostResult, published: Mapping[str, Sequence[str]]) -> list[object]:
    numbers = (cost.num_records, cost.num_requests, cost.prompt_tokens, cost.completion_tokens)
    money = [f"{value:.9f}" if cost.is_priced else "" for value in (cost.usd, _per_record(cost))]
    paper = str(sum(map(Decimal, published[name]))) if name in published else ""
    named = (name, cost.part, "; ".join(cost.rows), cost.llm)
    counts = (getattr(cost, name) for name in COUNTS)
    return [*named, *numbers, *money, f"{cost.in_doubt_usd:.9f}", paper, *counts]


def _texts(name: str, cost: CostResult, published: Mapping[str, Sequence[str]], *, shows_llm: bool) -> Line:
    counts = (cost.num_records, cost.num_requests, cost.prompt_tokens, cost.completion_tokens)
    money = (f"{cost.usd:.4f}", f"{_per_record(cost):.6f}") if cost.is_priced else (MISSING, MISSING)
    of = f"{cost.part} ({', '.join(cost.rows)})" + (f", {cost.llm}" if shows_llm else "")
    line = (name, of, *(f"{count:,}" for count in counts), *money)
    return (*line, _sum(published.get(name, ()))) if published else line


def _sum(figures: Sequence[str]) -> str:
    """Return published costs as text; several are summed: "0.00143 (0.00067 + 0.00076)"."""
    if len(figures) < 2:
        return "".join(figures) or MISSING
    return f"{sum(map(Decimal, figures))} ({' + '.join(figures)})"


def _lines(costs: Sequence[CostResult]) -> Iterator[tuple[str, CostResult]]:
    """Yield (line's name, cost) for the stages of each part, and for the sum of a part's several stages."""
    parts = grouped(((cost.part, cost.rows), cost) for cost in costs)
    for of_part in parts.values():
        yield from ((cost.method, cost) for cost in of_part)
        if len(of_part) > 1:
            yield ALL, _total(of_part)


def _total(costs: Sequence[CostResult]) -> CostResult:
    """Return the sum of stages' costs; the number of records is the last stage's.

    The last stage uses the output of all others. Several LLMs are named together: "small and large".
    """
    summed = ("num_requests", "prompt_tokens", "completion_tokens", "usd", "in_doubt_usd", *COUNTS)
    sums = {name: sum(getattr(cost, name) for cost in costs) for name in summed}
    llm = " and ".join(dict.fromkeys(cost.llm for cost in costs))
    is_priced = all(cost.is_priced for cost in costs)
    return costs[-1].model_copy(update={**sums, "llm": llm, "is_priced": is_priced})


def _distinct(costs: Sequence[CostResult]) -> tuple[CostResult, ...]:
    """Return each stage's cost once, although every part made with that stage lists it."""
    return tuple({cost.stage: cost for cost in costs}.values())


def _per_record(cost: CostResult) -> float:
    return cost.usd / cost.num_records if cost.num_records else 0.0


def _figures(analysis: Analysis) -> tuple[PublishedValue, ...]:
    options = analysis.options.costs
    return tuple(
        value for value in analysis.result.published if options is not None and value.row == options.row
    )


def _published(analysis: Analysis) -> dict[str, tuple[str, ...]]:
    """Return line's name -> the published values to show beside it."""
    options = analysis.options.costs
    values = {value.column: value.value for value in _figures(analysis)}
    named = {} if options is None else options.columns
    return {name: tuple(values[column] for column in columns) for name, columns in named.items()}


def _by_llm(costs: Sequence[CostResult]) -> Iterator[str]:
    """Yield the cost of each LLM and the total of those with known prices, if there are several LLMs."""
    names = dict.fromkeys(cost.llm for cost in costs)
    unpriced = {cost.llm for cost in costs if not cost.is_priced}
    spent = {
        name: sum(cost.usd for cost in costs if cost.llm == name) for name in names if name not in unpriced
    }
    if len(names) < 2 or not spent:
        return
    each = ", ".join(f"{name} {spent[name]:.4f}" if name in spent else f"{name} {MISSING}" for name in names)
    yield f"US dollars by LLM: {each}; {'of the priced' if unpriced else 'in all'} {sum(spent.values()):.4f}."


def _usage(costs: Sequence[CostResult]) -> Iterator[str]:
    """Yield a line for each LLM: its cached and reasoning tokens, its truncated and unusable answers."""
    for name in dict.fromkeys(cost.llm for cost in costs):
        of_llm = [cost for cost in costs if cost.llm == name]
        counts = {what: sum(getattr(cost, name) for cost in of_llm) for name, what in COUNTS.items()}
        told = ", ".join(f"{number:,} {what}" for what, number in counts.items() if number)
        if told:
            yield f"{name}: {told}."


def _notes(analysis: Analysis) -> Iterator[str]:
    result = analysis.result
    yield from notes_without_scores(analysis)
    yield (
        "Per record: the US dollars of the line, dropped answers included, divided by its records"
        f" ({ALL}: by the records of the last stage)."
    )
    yield "Cached answers are not counted: another stage paid for them."
    if len(_distinct(result.costs)) < len(result.costs):
        yield "A stage that several parts share stands with each of them, and counts once in sums by LLM."
    if any(not cost.is_priced for cost in result.costs):
        yield f"{MISSING} No price is known; set the LLM's `price`."
    costs = _distinct(result.costs)
    for name, origin in dict.fromkeys((cost.llm, cost.price_list) for cost in costs if cost.price_list):
        yield f"Prices of {name}: {origin}."
    yield from _by_llm(costs)
    yield from _usage(costs)
    in_doubt = sum(cost.in_doubt_usd for cost in costs)
    if in_doubt:
        yield f"In doubt, since requests were cut off and may have been billed: {in_doubt:.4f} more at most."
    for source in dict.fromkeys(f"{value.source} ({value.generator})" for value in _figures(analysis)):
        yield f"Published, US dollars per sentence: {source}."
