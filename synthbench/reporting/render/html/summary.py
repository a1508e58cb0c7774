"""The report's summary in words, which states only significant findings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparison_section import why_unknown
from synthbench.reporting.model.comparisons import ColumnComparisons, Comparison, Finding
from synthbench.reporting.model.table import Column, RowKey

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
    """Findings on pairs of rows, with remarks on their interpretation."""

    findings: tuple[Statement, ...]
    remarks: tuple[str, ...]


def summarize(analysis: Analysis) -> Summary:
    """Return the summary of an analysis.

    A difference is significant if its p value, Holm-adjusted over all comparisons of its column, is below 5
    %: over seeds and test items if both kinds of noise are known, else over the known one.
    """
    pairs = _pairs(analysis.comparisons)
    statements = [
        Statement(_about(*pair), text)
        for pair, compared in pairs.items()
        if (text := _differences(compared, analysis.options.decimals))
    ]
    more = len(statements) - MAX_PAIRS
    found = [one for compared in pairs.values() for one in compared if direction(one[1])]
    remarks = (
        *((f"Further pairs of rows that differ: {more:,}; see the comparisons.",) if more > 0 else ()),
        *_meaning(found),
        *_undecided(pairs),
    )
    return Summary(tuple(statements[:MAX_PAIRS]), remarks)


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


def _undecided(pairs: Pairs) -> Iterator[str]:
    """List pairs without a significant difference, and pairs without a test."""
    decided = {pair for pair, compared in pairs.items() if any(direction(each) for _, each in compared)}
    unknown = [pair for pair, compared in pairs.items() if not any(finding_of(each) for _, each in compared)]
    open_pairs = [_about(*pair) for pair in pairs if pair not in decided and pair not in unknown]
    if open_pairs:
        yield f"No difference found, which does not prove equality: {_listed(open_pairs, '; ')}."
    because: dict[str, list[str]] = {}
    for pair in unknown:
        reasons = dict.fromkeys(filter(None, (why_unknown(each) for _, each in pairs[pair])))
        if reasons:
            because.setdefault("; ".join(reasons), []).append(_about(*pair))
    for reason, those in because.items():
        whose = "rows" if len(those) == len(pairs) else _listed(those, "; ")
        yield f"No test of {whose}: {reason}."


def _listed(names: Sequence[str], between: str = ", ") -> str:
    """Return the names joined; if there are many, only the first."""
    more = len(names) - MAX_NAMES
    return between.join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
