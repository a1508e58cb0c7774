"""The section of comparisons with baselines: a grid per column, explanations, and a CSV file."""

from collections.abc import Iterator, Sequence

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparisons import ColumnComparisons, Comparison
from synthbench.reporting.model.sections import Block, CsvTable, Grid, Line, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.model.verdicts import STAR, adjustment, signed, tests, why_unknown
from synthbench.statistics.differences import ROUNDING, Difference, SeedScores, interval_half_width
from synthbench.statistics.families import Simultaneous

WHOLE_SCALE = 1.0
"""The range of scores in [0, 1]: if the minimum detectable difference reaches it, none is detectable."""
SMALLEST_P = 0.001
COMPONENTS = "components: ±"
ITEMS = "seeds and items: 95 %"
HEADER = ("", "difference", "seeds: 95 %", ITEMS, COMPONENTS, "family: 95 %", "family: p", "g")
FIELDS = (
    "row", "against", "axis", "column", "n_seeds", "n_seeds_against", "mean", "mean_low", "mean_high",
    "mean_against", "difference", "effect_size", "paired", "seeds_low", "seeds_high", "seeds_df", "seeds_p",
    "items_low", "items_high", "items_df", "items_p", "components_low", "components_high", "components_df",
    "components_p", "family", "family_low", "family_high", "family_p", "significant",
)  # fmt: skip


def comparison_section(analysis: Analysis) -> ReportSection | None:
    """Return the section; None if nothing is compared.

    Without a baseline but with `table.best`, the section is only a CSV file with all pairs of rows.
    """
    if not analysis.comparisons:
        return ReportSection("comparisons", comparison_csv(analysis)) if analysis.decisions.best else None
    decimals = analysis.options.decimals
    blocks = tuple(
        Block(f"{column.column.title}: differences × 100{_role(column)}", (_grid(column, decimals),))
        for column in analysis.comparisons
    )
    return ReportSection(
        "comparisons",
        comparison_csv(analysis),
        blocks,
        _notes(analysis),
        is_numbered=True,
    )


def _role(column: ColumnComparisons) -> str:
    families = {each.family for each in column.comparisons}
    if "primary" in families:
        return ", primary"
    return ", below the average" if "below" in families else ", exploratory"


def _notes(analysis: Analysis) -> tuple[str, ...]:
    """Return notes on stars, columns, rows that are not compared, and minimum detectable differences.

    The table's notes say which comparisons are primary, and what varies with the seed.
    """
    columns = analysis.comparisons
    groups = (
        _families(analysis),
        _meanings(columns, _items_text(analysis)),
        _refused(columns),
        _least_detectable(columns, analysis.options.decimals),
    )
    return tuple(filter(None, map(" ".join, groups)))


def _families(analysis: Analysis) -> Iterator[str]:
    """Yield notes that explain the stars, the columns "family", and what is not tested."""
    decisions = analysis.decisions
    compared = [each for column in analysis.comparisons for each in column.comparisons]
    if any(each.finding for each in compared):
        yield (
            f"{STAR}: significant at 5 %. family: simultaneous 95 % interval and adjusted p; a star means"
            " that the interval excludes 0."
        )
    below = [each for _, each in decisions.of("below")]
    if below and decisions.primary.number:
        passed = [each for each in below if each.finding]
        yield (
            "Single test sets: tested only where the same comparison is significant on the average; a family"
            f" of their own, {adjustment(decisions.below)}."
            if passed
            else "Single test sets: not tested, since no comparison is significant on the average."
        )
    if any(not each.finding and each.evidence for each in compared):
        yield "Without a p: exploratory, intervals that claim nothing."


def _items_text(analysis: Analysis) -> str:
    """Return words for a note: which test items are assumed to have dependent errors."""
    if any(each.is_of_earlier_version for each in analysis.result.item_noise):
        return "items are taken as independent, since the result is of an earlier version"
    if any(each.lacks_sentences for each in analysis.result.item_noise):
        return "items that share sentences err together; where these are unknown, items are independent"
    return "items that share sentences err together"


def _meanings(columns: Sequence[ColumnComparisons], items: str) -> Iterator[str]:
    """Yield notes that explain the grids' columns with values, and why some intervals are missing."""
    comparisons = [each for column in columns for each in column.comparisons]
    over_seeds = [each for each in comparisons if each.over_seeds]
    over_items = [each for each in comparisons if each.over_items]
    unknown = "; ".join(dict.fromkeys(reason for each in comparisons if (reason := why_unknown(each))))
    if not over_seeds and not over_items:
        # Of primary comparisons the rule says it.
        if unknown and not any(each.family == "primary" for each in comparisons):
            yield f"No intervals and p values: {unknown}."
        return
    if over_seeds:
        yield (
            "seeds: generalises to other seeds on the same test items, one comparison by itself;"
            f" {tests(comparisons)}."
        )
    if over_items:
        yield (
            "seeds and items: generalises to other seeds and other test items of the same kind. The items'"
            f" variance, crossed with the seeds', is added; {items}; thresholds and classifiers are taken as"
            " fitted."
        )
    if _has_components(comparisons):
        yield (
            "components: half the width of the interval over seeds and items if all items that a chain of"
            " shared sentences joins err together."
        )
    if any(each.effect_size is not None for each in comparisons):
        yield "g: Hedges' g, the difference in standard deviations between seeds."
    if unknown:
        yield f"{MISSING} No interval: {unknown}."


def _refused(columns: Sequence[ColumnComparisons]) -> Iterator[str]:
    for column in columns:
        for each in column.comparisons:
            if each.refusal:
                yield f"{column.column.title}: {each.name}: not compared: {each.refusal}."


def _least_detectable(columns: Sequence[ColumnComparisons], decimals: int) -> Iterator[str]:
    """Yield the minimum detectable differences, and the columns in which no difference is detectable."""
    samples = (sample for column in columns for each in column.comparisons for sample in each.samples)
    counts = sorted({sample.num_seeds for sample in samples if sample.is_seeded and sample.num_seeds > 1})
    seeds = f"{' or '.join(map(str, counts))} seeds"
    over_seeds = {column.column.title: column.least_over_seeds for column in columns}
    over_items = {column.column.title: column.least_over_items for column in columns}
    if points := _detectable(over_seeds, decimals):
        items = _detectable(over_items, decimals)
        also = f"; over test items, too: {items}" if items not in ("", points) else ""
        power = "5 % level, not adjusted, 80 % power"
        yield f"Minimum detectable difference with {seeds} ({power}), in points: {points}{also}."
    hopeless = _undetectable(over_seeds)
    if hopeless:
        yield f"With {seeds} and this noise, no difference is detectable on {', '.join(hopeless)}."
    if only_items := [title for title in _undetectable(over_items) if title not in hopeless]:
        where = ", ".join(only_items)
        yield f"With {seeds} and this noise, no difference is detectable over test items on {where}."


def _detectable(least: dict[str, float | None], decimals: int) -> str:
    """Return the detectable differences x 100, such as "0.71 (STSb), 1.20 (SICK-R)"."""
    known = ((title, value) for title, value in least.items() if value is not None and value < WHOLE_SCALE)
    return ", ".join(f"{100 * value:.{decimals}f} ({title})" for title, value in known)


def _undetectable(least: dict[str, float | None]) -> list[str]:
    return [title for title, value in least.items() if (value or 0.0) >= WHOLE_SCALE]


def _grid(column: ColumnComparisons, decimals: int) -> Grid:
    """Return the column's comparisons as a table; the column "components" is left out if it adds nothing."""
    lines = (HEADER, *(_line(each, decimals) for each in column.comparisons))
    if not _has_components(column.comparisons):
        place = HEADER.index(COMPONENTS)
        lines = tuple(line[:place] + line[place + 1 :] for line in lines)
    return Grid(lines[0], lines[1:])


def _has_components(comparisons: Sequence[Comparison]) -> bool:
    return any(each.by_components not in (None, each.over_items) for each in comparisons)


def _line(comparison: Comparison, decimals: int) -> Line:
    if comparison.refusal:
        return (comparison.name, *[MISSING] * (len(HEADER) - 1))
    effect, components, finding = comparison.effect_size, comparison.by_components, comparison.finding
    return (
        comparison.name,
        signed(100 * comparison.value, decimals) + (STAR if comparison.direction else ""),
        *(_interval_text(each, decimals) for each in (comparison.over_seeds, comparison.over_items)),
        MISSING if components is None else f"{100 * components.half_width:.{decimals}f}",
        _interval_text(finding, decimals),
        MISSING if finding is None else _p_text(finding.p_value),
        MISSING if effect is None else signed(effect, 1),
    )


def _interval_text(found: Difference | Simultaneous | None, decimals: int) -> str:
    if found is None:
        return MISSING
    low, high = (signed(100 * end, decimals) for end in _interval(found))
    return f"{low} to {high}"


def _p_text(p_value: float) -> str:
    return f"< {SMALLEST_P}" if p_value < SMALLEST_P else f"{p_value:.3f}"


def _interval(found: Difference | Simultaneous) -> tuple[float, float]:
    return found.value - found.half_width, found.value + found.half_width


def comparison_csv(analysis: Analysis) -> CsvTable:
    """Return a line per comparison and column: scores and differences x 100; p values are not x 100.

    With `table.best`, all pairs of rows follow.
    """
    columns = (*analysis.comparisons, *analysis.decisions.best)
    return CsvTable(FIELDS, [_csv_line(column, each) for column in columns for each in column.comparisons])


def _csv_line(column: ColumnComparisons, comparison: Comparison) -> list[str]:
    ours, theirs = comparison.samples
    is_compared = not comparison.refusal
    effect = comparison.effect_size if is_compared else None
    finding = comparison.finding
    return [
        *(comparison.row.variant, comparison.baseline.variant, comparison.row.csv_axes, column.column.title),
        *(str(ours.num_seeds), str(theirs.num_seeds), *_csv_mean(ours), f"{100 * theirs.mean:.6f}"),
        f"{100 * comparison.value:.6f}" if is_compared else "",
        "" if effect is None else f"{effect:.6f}",
        str(comparison.is_paired).lower(),
        *_csv_difference(comparison.over_seeds),
        *_csv_difference(comparison.over_items),
        *_csv_difference(comparison.by_components),
        comparison.family or "exploratory",
        *(["", "", ""] if finding is None else [*_csv_interval(finding), f"{finding.p_value:.6g}"]),
        "" if finding is None else str(finding.is_real).lower(),
    ]


def _csv_mean(sample: SeedScores) -> list[str]:
    """Return the mean and the limits of its 95 % interval over seeds, if any."""
    spread = sample.standard_deviation
    if spread is None or spread <= ROUNDING:
        return [f"{100 * sample.mean:.6f}", "", ""]
    reach = interval_half_width(spread, sample.num_seeds)
    return [f"{100 * value:.6f}" for value in (sample.mean, sample.mean - reach, sample.mean + reach)]


def _csv_difference(found: Difference | None) -> list[str]:
    if found is None:
        return [""] * 4
    return [*_csv_interval(found), f"{found.whole.degrees_of_freedom:.2f}", f"{found.p_value:.6g}"]


def _csv_interval(found: Difference | Simultaneous) -> list[str]:
    return [f"{100 * end:.6f}" for end in _interval(found)]
