"""What an experiment's data cost, for a terminal, and as Markdown, LaTeX and CSV."""

import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from synthbench.escaping import CsvWriter
from synthbench.reporting.model.grids import Grid, Line, latex_document, markdown_document, terminal_grid
from synthbench.reporting.model.notes import cost_notes
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.options import PublishedCosts, TableOptions
from synthbench.reporting.published import PublishedValue
from synthbench.reporting.render.latex_layout import layout_of
from synthbench.reporting.results import CostResult, ExperimentResult

if TYPE_CHECKING:
    from rich.console import RenderableType

ALL = "all"
TITLE = "What the LLM was asked for, and what that cost"
_HEADER = ("data", "of", "records", "requests", "tokens in", "tokens out", "US dollars", "per record")
FIELDS = (
    "data", "part", "rows", "llm", "records", "requests", "prompt_tokens", "completion_tokens", "usd",
    "usd_per_record", "in_doubt_usd", "published_usd_per_sentence",
)  # fmt: skip


def terminal_costs(result: ExperimentResult) -> "RenderableType":
    """Return what rich prints: title, table and notes."""
    return terminal_grid(cost_grid(result), cost_table_notes(result))


def markdown_costs(result: ExperimentResult) -> str:
    """Return title, table and notes."""
    return markdown_document(cost_grid(result), cost_table_notes(result))


def latex_costs(result: ExperimentResult) -> str:
    """Return a `table` environment."""
    return latex_document(cost_grid(result), cost_table_notes(result), layout_of(result, "costs"))


def csv_costs(result: ExperimentResult) -> str:
    """Return a line for each stage, and for all of each part that took several."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    published = _published(result)
    for name, cost in _lines(result):
        numbers = (cost.num_records, cost.num_requests, cost.prompt_tokens, cost.completion_tokens)
        money = [f"{value:.9f}" if cost.is_priced else "" for value in (cost.usd, _per_record(cost))]
        named = [name, cost.part, "; ".join(cost.rows), cost.llm]
        paper = str(sum(map(Decimal, published[name]))) if name in published else ""
        writer.writerow([*named, *numbers, *money, f"{cost.in_doubt_usd:.9f}", paper])
    return text.getvalue()


def cost_grid(result: ExperimentResult) -> Grid:
    """Return a line for each stage, and for all of each part that took several, beside a paper's figures."""
    published = _published(result)
    header = (*_HEADER, "published") if published else _HEADER
    return Grid(TITLE, header, tuple(_texts(name, cost, published) for name, cost in _lines(result)))


def _texts(name: str, cost: CostResult, published: dict[str, tuple[str, ...]]) -> Line:
    counts = (cost.num_records, cost.num_requests, cost.prompt_tokens, cost.completion_tokens)
    money = (f"{cost.usd:.4f}", f"{_per_record(cost):.6f}") if cost.is_priced else (MISSING, MISSING)
    of = f"{cost.part} ({', '.join(cost.rows)})"
    line = (name, of, *(f"{count:,}" for count in counts), *money)
    return (*line, _sum(published.get(name, ()))) if published else line


def _sum(figures: Sequence[str]) -> str:
    """Return "0.00143 (0.00067 + 0.00076)" for two figures, one as it is printed."""
    if len(figures) < 2:
        return "".join(figures) or MISSING
    return f"{sum(map(Decimal, figures))} ({' + '.join(figures)})"


def _lines(result: ExperimentResult) -> Iterator[tuple[str, CostResult]]:
    """Yield the stages of each part of the data, and their sum, by what they are called."""
    parts: dict[tuple[str, tuple[str, ...]], list[CostResult]] = {}
    for cost in result.costs:
        parts.setdefault((cost.part, cost.rows), []).append(cost)
    for costs in parts.values():
        yield from ((cost.method, cost) for cost in costs)
        if len(costs) > 1:
            yield ALL, _together(costs)


def _together(costs: Sequence[CostResult]) -> CostResult:
    """Return the sum; its records are those of the last stage, which all others are for."""
    summed = ("num_requests", "prompt_tokens", "completion_tokens", "usd", "in_doubt_usd")
    sums = {name: sum(getattr(cost, name) for cost in costs) for name in summed}
    return costs[-1].model_copy(update={**sums, "is_priced": all(cost.is_priced for cost in costs)})


def _per_record(cost: CostResult) -> float:
    return cost.usd / cost.num_records if cost.num_records else 0.0


def _options(result: ExperimentResult) -> PublishedCosts | None:
    return TableOptions.model_validate(result.table).costs


def _figures(result: ExperimentResult) -> tuple[PublishedValue, ...]:
    options = _options(result)
    return tuple(value for value in result.published if options is not None and value.row == options.row)


def _published(result: ExperimentResult) -> dict[str, tuple[str, ...]]:
    """Return the printed figures of each line's name."""
    options = _options(result)
    values = {value.column: value.value for value in _figures(result)}
    named = {} if options is None else options.columns
    return {name: tuple(values[column] for column in columns) for name, columns in named.items()}


def cost_table_notes(result: ExperimentResult) -> Iterator[str]:
    """Yield what must be known beside the costs."""
    yield (
        "Per record: all US dollars of the line, for dropped answers too, by the records that came of it"
        f" ({ALL}: by those of the last stage)."
    )
    yield "Answers that the cache held already are not counted: another stage has paid for them."
    if any(not cost.is_priced for cost in result.costs):
        yield f"{MISSING} No price of a token is known."
    in_doubt = sum(cost.in_doubt_usd for cost in result.costs)
    if in_doubt:
        yield f"In doubt beside that, for what a kill or a lost connection cut off: at most {in_doubt:.4f}."
    for source in dict.fromkeys(f"{value.source} ({value.generator})" for value in _figures(result)):
        yield f"Published, US dollars per sentence: {source}."
    yield from cost_notes(result)
