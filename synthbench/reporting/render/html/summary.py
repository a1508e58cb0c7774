"""The report's summary in words, which states only significant findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparison_section import SINGLE_SEED, least_detectable_notes, why_unknown
from synthbench.reporting.model.comparisons import ColumnComparisons, Comparison, Finding
from synthbench.reporting.model.experiment_notes import flat_labels
from synthbench.reporting.model.table import Column, RowKey, Table
from synthbench.reporting.results import NORMALISED, CostResult, ExperimentResult
from synthbench.statistics.differences import NOISE_RULE

SIGNIFICANCE = 0.05
MAX_NAMES = 12
MAX_PAIRS = 16
MAX_DIFFERENCES = 6
Compared = tuple[Column, Comparison]
Pairs = Mapping[tuple[RowKey, RowKey], Sequence[Compared]]


@dataclass(frozen=True)
class Statement:
    """A finding on two rows."""

    about: str
    text: str


@dataclass(frozen=True)
class Summary:
    """The setup, the findings on pairs of rows, and remarks on their meaning."""

    setup: str
    findings: tuple[Statement, ...]
    remarks: tuple[str, ...]


def summarize(analysis: Analysis, table: Table) -> Summary:
    """Return the summary of an analysis and its table.

    A difference is significant if its p value, Holm-adjusted over all comparisons of its column, is below 5
    %: over seeds and test items if both kinds of noise are known, else over the known one.
    """
    pairs, result = _pairs(analysis.comparisons), analysis.result
    statements = [
        Statement(_about(*pair), text)
        for pair, compared in pairs.items()
        if (text := _differences(compared, table.decimals))
    ]
    more = len(statements) - MAX_PAIRS
    found = [one for compared in pairs.values() for one in compared if direction(one[1])]
    remarks = (
        *((f"{_count(more, 'further pair')} of rows differ; see the comparisons.",) if more > 0 else ()),
        *_meaning(found),
        *(_undecided(analysis, pairs) if pairs else _leads(analysis, table)),
        *_circumstances(result),
    )
    return Summary(_setup(analysis, table), tuple(statements[:MAX_PAIRS]), remarks)


def _setup(analysis: Analysis, table: Table) -> str:
    result, seeds = analysis.result, analysis.seeds
    variants = dict.fromkeys(run.variant for run in result.runs)
    what = _count(len(variants), "variant")
    for axis in dict.fromkeys(axis for run in result.runs for axis in run.axes):
        values = dict.fromkeys(run.axes[axis] for run in result.runs if axis in run.axes)
        what += f", at {_count(len(values), 'value')} of {axis} ({_listed(list(values))})"
    over = f"{_count(len(seeds), 'seed')} ({', '.join(map(str, seeds))})"
    titles = [column.title for column in table.columns if not column.is_average]
    if not titles:
        return f"{what}; {over}. Nothing is scored."
    return f"{what}; {over}. Scored on {_count(len(titles), 'test set')}: {_listed(titles)}."


def _pairs(columns: Sequence[ColumnComparisons]) -> Pairs:
    found: dict[tuple[RowKey, RowKey], list[Compared]] = {}
    for column in columns:
        for each in column.comparisons:
            found.setdefault((each.row, each.baseline), []).append((column.column, each))
    return found


def _about(row: RowKey, baseline: RowKey) -> str:
    return RowKey(f"{row.variant} against {baseline.variant}", row.axes).title


def finding_of(comparison: Comparison) -> Finding | None:
    """Return the finding over seeds and items, else the one over seeds; None if both are unknown."""
    return comparison.over_items or comparison.over_seeds


def direction(comparison: Comparison) -> int:
    """Return the sign of a significant difference, else 0."""
    finding = finding_of(comparison)
    if finding is None or finding.adjusted_p >= SIGNIFICANCE:
        return 0
    return 1 if finding.difference.value > 0 else -1


def _differences(compared: Sequence[Compared], decimals: int) -> str:
    """Say where the first row is higher and where lower; "" without significant differences."""
    if not any(direction(each) for _, each in compared):
        return ""
    averages = [each for each in compared if each[0].is_average]
    single = [each for each in compared if not each[0].is_average]
    parts = [
        f"{word} on {_of(len(found), len(single))} ({_sizes(found, decimals)})"
        for sign, word in ((1, "higher"), (-1, "lower"))
        if (found := [each for each in single if direction(each[1]) == sign])
    ]
    parts += [
        f"{'higher' if direction(each[1]) > 0 else 'lower'} in the mean ({_sizes([each], decimals)})"
        for each in averages
        if direction(each[1])
    ]
    parts += [
        f"{what} on {', '.join(column.title for column, _ in found)}"
        for what, found in (
            ("no difference found", [each for each in compared if _is_undecided(each[1])]),
            ("unknown", [each for each in compared if _is_unknown(each[1])]),
            ("not compared", [each for each in compared if each[1].refusal]),
        )
        if found
    ]
    return "; ".join(parts) + "."


def _of(number: int, total: int) -> str:
    if number < total:
        return f"{number} of {total} test sets"
    return "the only test set" if total == 1 else f"all {total} test sets"


def _sizes(compared: Sequence[Compared], decimals: int) -> str:
    """Return the significant differences, each with its interval, or the range of many."""
    found = [(column.title, finding.difference) for column, each in compared if (finding := finding_of(each))]
    if len(found) > MAX_DIFFERENCES:
        sizes = sorted(100 * abs(difference.value) for _, difference in found)
        return f"by {sizes[0]:.{decimals}f} to {sizes[-1]:.{decimals}f} points"
    return ", ".join(
        f"{title} by {100 * abs(one.value):.{decimals}f} ± {100 * one.half_width:.{decimals}f}"
        for title, one in found
    )


def _is_undecided(comparison: Comparison) -> bool:
    return finding_of(comparison) is not None and direction(comparison) == 0


def _is_unknown(comparison: Comparison) -> bool:
    return finding_of(comparison) is None and not comparison.refusal


def _meaning(found: Sequence[Compared]) -> Iterator[str]:
    """State the significance level, and what the findings generalise to."""
    if not found:
        return
    only_seeds = dict.fromkeys(column.title for column, each in found if each.over_items is None)
    scope = "over seeds and test items"
    if len(only_seeds) == len({column.title for column, _ in found}):
        scope = "over seeds, on these test items"
    elif only_seeds:
        scope += f"; on {_listed(list(only_seeds))} over seeds only"
    yield (
        "All differences above are significant at 5 % after Holm correction within their column,"
        f" {scope}. ±: 95 % interval, not corrected."
    )


def _undecided(analysis: Analysis, pairs: Pairs) -> Iterator[str]:
    """Name pairs without significant difference, the minimum detectable one, and pairs without a test."""
    decided = {pair for pair, compared in pairs.items() if any(direction(each) for _, each in compared)}
    unknown = [pair for pair, compared in pairs.items() if not any(finding_of(each) for _, each in compared)]
    open_pairs = [_about(*pair) for pair in pairs if pair not in decided and pair not in unknown]
    if open_pairs:
        yield f"No difference found, which does not prove equality: {_listed(open_pairs, '; ')}."
    yield from least_detectable_notes(analysis)
    because: dict[str, list[str]] = {}
    for pair in unknown:
        reasons = dict.fromkeys(filter(None, (why_unknown(each) for _, each in pairs[pair])))
        if reasons:
            because.setdefault("; ".join(reasons), []).append(_about(*pair))
    for reason, those in because.items():
        whose = "rows" if len(those) == len(pairs) else _listed(those, "; ")
        yield f"No test of {whose}: {reason}."


def _leads(analysis: Analysis, table: Table) -> Iterator[str]:
    """Name the leading rows of a table without comparisons."""
    compared = [row for group in table.groups if len(group.compared) > 1 for row in group.compared]
    cells = [cell for row in compared for cell in row.cells if cell is not None]
    if not cells:
        return
    if len(analysis.seeds) == 1:
        yield f"No test of rows: {SINGLE_SEED}."
        return
    noise = "noise of seeds and test items" if analysis.result.item_noise else "noise between seeds"
    led: dict[str, list[str]] = {}
    for row in compared:
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell is not None and cell.is_bold:
                led.setdefault(row.variant, []).append(RowKey(column.title, row.axes).title)
    for name, columns in led.items():
        yield f"{name}: leads every other row of its group by more than the {noise} on {_listed(columns)}."
    if led:
        yield f"Leads: {NOISE_RULE}; separately for each column."
    else:
        yield f"No row leads every other row of its group by more than the {noise} ({NOISE_RULE})."


def _circumstances(result: ExperimentResult) -> Iterator[str]:
    """Name missing results, nearly constant labels, contamination and costs."""
    if result.failures:
        yield f"Incomplete: {_count(len(result.failures), 'failure')}, listed below."
    if result.pending:
        yield "Incomplete: some results wait for an LLM's batch, as listed below."
    yield from flat_labels(result)
    shares: dict[str, float] = {}
    for overlap in (each for run in result.runs for each in run.overlaps if each.num_items):
        share = overlap.sharing[NORMALISED] / overlap.num_items
        shares[overlap.task] = max(share, shares.get(overlap.task, 0.0))
    known = [
        f"{'under 1' if share < 0.01 else f'{100 * share:.0f}'} % of {task}"
        for task, share in shares.items()
        if share
    ]
    if known:
        yield (
            "Test items that share a sentence with the training data, ignoring case and punctuation: at most"
            f" {_listed(known)}."
        )
    if result.costs:
        yield _costs(result.costs)


def _costs(costs: Sequence[CostResult]) -> str:
    requests = sum(cost.num_requests for cost in costs)
    tokens = sum(cost.prompt_tokens + cost.completion_tokens for cost in costs)
    known = [cost.usd for cost in costs if cost.is_priced]
    price = f", {sum(known):.4f} US dollars" if len(known) == len(costs) else ""
    return f"The LLM was asked: {_count(requests, 'request')}, {_count(tokens, 'token')}{price}."


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _listed(names: Sequence[str], between: str = ", ") -> str:
    """Return the names joined; if there are many, only the first."""
    more = len(names) - MAX_NAMES
    return between.join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
