"""The report's summary in words: what the tested comparisons say of each pair of rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.base.listing import listed
from synthbench.config.comparing import Pair
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparisons import ColumnComparisons, Comparison
from synthbench.reporting.model.table import Column
from synthbench.reporting.model.verdicts import noise, why_unknown

MAX_NAMES = 12
MAX_PAIRS = 16
MAX_DIFFERENCES = 6
Compared = tuple[Column, Comparison]
Pairs = Mapping[Pair, Sequence[Compared]]


@dataclass(frozen=True)
class Summary:
    """Findings, each as (pair of rows, sentence), with remarks on their interpretation."""

    findings: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def summarize(analysis: Analysis) -> Summary:
    """Return the summary: significant differences, pairs of rows without one, and pairs without a test."""
    pairs = _pairs(analysis.comparisons)
    statements = [
        (compared[0][1].about, text)
        for compared in pairs.values()
        if (text := _differences(compared, analysis.options.decimals))
    ]
    more = len(statements) - MAX_PAIRS
    found = [each for compared in pairs.values() for _, each in compared if each.direction]
    remarks = (
        *((f"Further pairs of rows that differ: {more:,}; see the comparisons.",) if more > 0 else ()),
        *_meaning(found),
        *_undecided(pairs),
    )
    return Summary(tuple(statements[:MAX_PAIRS]), remarks)


def _pairs(columns: Sequence[ColumnComparisons]) -> Pairs:
    """Return, by pair of rows, all comparisons that are primary or tested."""
    found: dict[Pair, list[Compared]] = {}
    for column in columns:
        for each in column.comparisons:
            if each.family == "primary" or each.finding:
                found.setdefault(each.pair, []).append((column.column, each))
    return found


def _differences(compared: Sequence[Compared], decimals: int) -> str:
    """Say on which columns the first row is higher or lower; "" without significant differences."""
    if not any(each.direction for _, each in compared):
        return ""
    parts = [
        f"{word} on {_sizes(found, decimals)}"
        for sign, word in ((1, "higher"), (-1, "lower"))
        if (found := [each for each in compared if each[1].direction == sign])
    ]
    parts += [
        f"{what} on {', '.join(column.title for column, _ in found)}"
        for what, found in (
            ("no difference found", [each for each in compared if each[1].finding and not each[1].direction]),
            ("unknown", [each for each in compared if not each[1].finding and not each[1].refusal]),
            ("not compared", [each for each in compared if each[1].refusal]),
        )
        if found
    ]
    return "; ".join(parts) + "."


def _sizes(compared: Sequence[Compared], decimals: int) -> str:
    """Return the differences with their simultaneous intervals; if there are many, only number and range."""
    found = [(column.title, each.finding) for column, each in compared if each.finding]
    if len(found) > MAX_DIFFERENCES:
        sizes = sorted(100 * abs(finding.value) for _, finding in found)
        return f"{len(found)} columns by {sizes[0]:.{decimals}f} to {sizes[-1]:.{decimals}f} points"
    return ", ".join(
        f"{title} by {100 * abs(one.value):.{decimals}f} ± {100 * one.half_width:.{decimals}f}"
        for title, one in found
    )


def _meaning(found: Sequence[Comparison]) -> Iterator[str]:
    """State the significance level, the noise that the tests cover, and what ± means."""
    if found:
        yield (
            f"All differences above are significant at 5 % over {noise(found)}."
            " ±: simultaneous 95 % interval of their family."
        )


def _undecided(pairs: Pairs) -> Iterator[str]:
    """List pairs without a significant difference, and pairs without a test."""
    decided = {pair for pair, compared in pairs.items() if any(each.direction for _, each in compared)}
    unknown = [pair for pair, compared in pairs.items() if not any(each.finding for _, each in compared)]
    open_pairs = [_about(pairs, pair) for pair in pairs if pair not in decided and pair not in unknown]
    if open_pairs:
        yield f"No difference found, which does not prove equality: {listed(open_pairs, MAX_NAMES, '; ')}."
    because: dict[str, list[str]] = {}
    for pair in unknown:
        reasons = dict.fromkeys(filter(None, (why_unknown(each) for _, each in pairs[pair])))
        if reasons:
            because.setdefault("; ".join(reasons), []).append(_about(pairs, pair))
    for reason, those in because.items():
        if len(those) < len(pairs):  # else the page's first sentence says it
            yield f"No test of {listed(those, MAX_NAMES, '; ')}: {reason}."


def _about(pairs: Pairs, pair: Pair) -> str:
    return pairs[pair][0][1].about
