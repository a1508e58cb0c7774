"""The section of comparisons with baselines: a grid per column, explanations, and a CSV file."""

from collections.abc import Iterator, Sequence

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparisons import ColumnComparisons, Comparison, Finding
from synthbench.reporting.model.experiment_notes import data_notes
from synthbench.reporting.model.registration_note import registration_notes
from synthbench.reporting.model.sections import Block, CsvTable, Grid, Line, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.statistics.differences import SeedScores, interval_half_width

WHOLE_SCALE = 1.0
"""The range of scores in [0, 1]; no difference above it can be detected."""
SMALLEST_P = 0.001
HEADER = ("", "difference", "seeds: 95 %", "p", "seeds and items: 95 %", "p", "g")
FIELDS = (
    "row", "against", "axis", "column", "n_seeds", "n_seeds_against", "mean", "mean_low", "mean_high",
    "mean_against", "difference", "effect_size", "paired", "seeds_low", "seeds_high", "seeds_df", "seeds_p",
    "seeds_p_holm", "items_low", "items_high", "items_df", "items_p", "items_p_holm",
)  # fmt: skip


def comparison_section(analysis: Analysis) -> ReportSection | None:
    """Return the section; None if nothing is compared."""
    if not analysis.comparisons:
        return None
    decimals = analysis.options.decimals
    blocks = tuple(
        Block(
            f"{column.column.title}: differences × 100",
            (Grid(HEADER, tuple(_line(each, decimals) for each in column.comparisons)),),
        )
        for column in analysis.comparisons
    )
    return ReportSection(
        "comparisons",
        comparison_csv(analysis),
        blocks,
        _notes(analysis),
        (*registration_notes(analysis.result.registration), *data_notes(analysis.result)),
        is_numbered=True,
    )


def least_detectable_notes(analysis: Analysis) -> Iterator[str]:
    """Yield the minimum detectable differences for the table's notes, and where the comparisons are."""
    notes = tuple(_least_detectable(analysis))
    yield from notes[:-1]
    yield from (f"{note} (comparisons.* has all comparisons with a baseline.)" for note in notes[-1:])


def why_unknown(comparison: Comparison) -> str:
    """Return why a comparison's noise is partly or wholly unknown; "" if known or not compared."""
    seeded = [sample for sample in comparison.samples if sample.is_seeded]
    if comparison.refusal or (comparison.over_seeds and comparison.over_items):
        return ""
    if comparison.over_seeds:
        return "the noise of the test items is unknown"
    if not seeded:
        also = "" if comparison.over_items else ", and the noise of the test items is unknown"
        return f"no seed changes these rows{also}"
    if any(sample.num_seeds < 2 for sample in seeded):
        return "with a single seed the noise is unknown"
    return "equal differences for all seeds do not show the noise"


def _notes(analysis: Analysis) -> tuple[str, ...]:
    columns = analysis.comparisons
    return (*_meanings(columns), *_refused(columns), *_least_detectable(analysis))


def _meanings(columns: Sequence[ColumnComparisons]) -> Iterator[str]:
    """Explain the columns of the grids, unless they are empty."""
    comparisons = [each for column in columns for each in column.comparisons]
    over_seeds = [each for each in comparisons if each.over_seeds]
    over_items = [each for each in comparisons if each.over_items]
    unknown = "; ".join(dict.fromkeys(reason for each in comparisons if (reason := why_unknown(each))))
    if not over_seeds and not over_items:
        if unknown:
            yield f"No intervals and p values: {unknown}."
        return
    if over_seeds:
        kinds = {each.is_paired for each in over_seeds}
        tests = {
            (True,): "paired t-test by seed",
            (False,): "Welch's t-test, since rows share no seeds or no seed changes them",
            (False, True): "paired t-test where rows share seeds, otherwise Welch's",
        }
        yield f"seeds: generalises to other seeds on the same test items; {tests[tuple(sorted(kinds))]}."
    if over_items:
        yield (
            "seeds and items: generalises to other seeds and other test items of the same kind. The items'"
            " variance, crossed with the seeds', is added; items are taken as independent, thresholds and"
            " classifiers as fitted."
        )
    yield "p: two-sided, adjusted by Holm over all comparisons of the column; the intervals are not adjusted."
    if any(each.effect_size is not None for each in comparisons):
        yield "g: Hedges' g, the difference in standard deviations between seeds."
    if unknown:
        yield f"{MISSING} Unknown: {unknown}."


def _refused(columns: Sequence[ColumnComparisons]) -> Iterator[str]:
    for column in columns:
        for each in column.comparisons:
            if each.refusal:
                yield f"{column.column.title}: {each.name}: not compared: {each.refusal}."


def _least_detectable(analysis: Analysis) -> Iterator[str]:
    """Yield the minimum detectable differences, and the columns in which none is detectable."""
    columns = analysis.comparisons
    samples = (sample for column in columns for each in column.comparisons for sample in each.samples)
    counts = sorted({sample.num_seeds for sample in samples if sample.is_seeded and sample.num_seeds > 1})
    seeds = f"{' or '.join(map(str, counts))} seeds"
    over_seeds = {column.column.title: column.least_over_seeds for column in columns}
    over_items = {column.column.title: column.least_over_items for column in columns}
    if points := _detectable(over_seeds, analysis.options.decimals):
        items = _detectable(over_items, analysis.options.decimals)
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
    """Return "0.71 (STSb), 1.20 (SICK-R)"."""
    known = ((title, value) for title, value in least.items() if value is not None and value < WHOLE_SCALE)
    return ", ".join(f"{100 * value:.{decimals}f} ({title})" for title, value in known)


def _undetectable(least: dict[str, float | None]) -> list[str]:
    return [title for title, value in least.items() if (value or 0.0) >= WHOLE_SCALE]


def _line(comparison: Comparison, decimals: int) -> Line:
    if comparison.refusal:
        return (comparison.name, *[MISSING] * (len(HEADER) - 1))
    effect = comparison.effect_size
    findings = (comparison.over_seeds, comparison.over_items)
    return (
        comparison.name,
        _signed(100 * comparison.value, decimals),
        *(text for finding in findings for text in _finding_texts(finding, decimals)),
        MISSING if effect is None else _signed(effect, 1),
    )


def _finding_texts(finding: Finding | None, decimals: int) -> Line:
    if finding is None:
        return (MISSING, MISSING)
    low, high = (_signed(100 * end, decimals) for end in _interval(finding))
    p = finding.adjusted_p
    return (f"{low} to {high}", f"< {SMALLEST_P}" if p < SMALLEST_P else f"{p:.3f}")


def _interval(finding: Finding) -> tuple[float, float]:
    value, reach = finding.difference.value, finding.difference.half_width
    return value - reach, value + reach


def _signed(value: float, decimals: int) -> str:
    text = f"{value:+.{decimals}f}"
    if float(text) == 0.0:
        return text[1:]
    return text.replace("-", "−")


def comparison_csv(analysis: Analysis) -> CsvTable:
    """Return a line per comparison and column: scores x 100, p values unscaled."""
    lines = [_csv_line(column, each) for column in analysis.comparisons for each in column.comparisons]
    return CsvTable(FIELDS, lines)


def _csv_line(column: ColumnComparisons, comparison: Comparison) -> list[str]:
    ours, theirs = comparison.samples
    is_compared = not comparison.refusal
    effect = comparison.effect_size if is_compared else None
    return [
        *(comparison.row.variant, comparison.baseline.variant, comparison.row.csv_axes, column.column.title),
        *(str(ours.num_seeds), str(theirs.num_seeds), *_csv_mean(ours), f"{100 * theirs.mean:.6f}"),
        f"{100 * comparison.value:.6f}" if is_compared else "",
        "" if effect is None else f"{effect:.6f}",
        "true" if comparison.is_paired else "false",
        *_csv_finding(comparison.over_seeds),
        *_csv_finding(comparison.over_items),
    ]


def _csv_mean(sample: SeedScores) -> list[str]:
    """Return the mean and the limits of its 95 % interval over seeds, if any."""
    spread = sample.standard_deviation
    if spread is None:
        return [f"{100 * sample.mean:.6f}", "", ""]
    reach = interval_half_width(spread, sample.num_seeds)
    return [f"{100 * value:.6f}" for value in (sample.mean, sample.mean - reach, sample.mean + reach)]


def _csv_finding(finding: Finding | None) -> list[str]:
    if finding is None:
        return [""] * 5
    low, high = _interval(finding)
    difference = finding.difference
    return [
        *(f"{100 * low:.6f}", f"{100 * high:.6f}", f"{difference.whole.degrees_of_freedom:.2f}"),
        *(f"{difference.p_value:.6g}", f"{finding.adjusted_p:.6g}"),
    ]
