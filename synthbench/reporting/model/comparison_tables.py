"""Comparisons with baselines as Markdown, LaTeX and CSV."""

import io
from collections.abc import Iterator

from synthbench.escaping import CsvWriter, markdown_text
from synthbench.reporting.model.comparison_notes import comparison_notes
from synthbench.reporting.model.grids import Grid, Line, latex_parts, markdown_grid
from synthbench.reporting.model.notes import data_notes
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.options import TableOptions
from synthbench.reporting.render.latex_layout import ORIGIN, layout_of
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics.aggregate import RowKey
from synthbench.reporting.statistics.comparisons import ColumnComparisons, Comparison, Finding, compare
from synthbench.reporting.statistics.differences import Sample, interval_half_width

SMALLEST_P = 0.001
HEADER = ("", "difference", "seeds: 95 %", "p", "seeds and items: 95 %", "p", "g")
FIELDS = (
    "row", "against", "axis", "column", "n_seeds", "n_seeds_against", "mean", "mean_low", "mean_high",
    "mean_against", "difference", "effect_size", "paired", "seeds_low", "seeds_high", "seeds_df", "seeds_p",
    "seeds_p_holm", "items_low", "items_high", "items_df", "items_p", "items_p_holm",
)  # fmt: skip


def markdown_comparisons(result: ExperimentResult) -> str:
    """Return a table for each column, and what must be known beside them."""
    lines: list[str] = []
    for grid in comparison_grids(result):
        lines += [f"**{markdown_text(grid.title)}**", "", *markdown_grid(grid), ""]
    lines += [f"- {markdown_text(note)}" for note in _notes(result)]
    return "\n".join(lines) + "\n"


def latex_comparisons(result: ExperimentResult) -> str:
    """Return a `table` environment for each column."""
    lines, notes, layout = [ORIGIN], _notes(result), layout_of(result, "comparisons")
    for number, grid in enumerate(comparison_grids(result), start=1):
        lines += layout.named(number).environments(grid.title, latex_parts(grid), notes)
    return "\n".join(lines) + "\n"


def csv_comparisons(result: ExperimentResult) -> str:
    """Return one line per comparison and column: scores x 100, p values as they are."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for column in compare(result):
        writer.writerows(_csv_line(column, each) for each in column.comparisons)
    return text.getvalue()


def comparison_grids(result: ExperimentResult) -> Iterator[Grid]:
    """Yield a grid for each column; all its texts are plain."""
    decimals = TableOptions.model_validate(result.table).decimals
    for column in compare(result):
        body = tuple(_line(each, decimals) for each in column.comparisons)
        yield Grid(f"{column.column.title}: differences × 100", HEADER, body)


def _notes(result: ExperimentResult) -> tuple[str, ...]:
    return (*comparison_notes(result), *data_notes(result))


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


def _csv_line(column: ColumnComparisons, comparison: Comparison) -> list[str]:
    ours, theirs = comparison.samples
    is_compared = not comparison.refusal
    effect = comparison.effect_size if is_compared else None
    return [
        *(comparison.row.variant, comparison.baseline.variant, _axes(comparison.row), column.column.title),
        *(str(ours.num_seeds), str(theirs.num_seeds), *_mean(ours), f"{100 * theirs.mean:.6f}"),
        f"{100 * comparison.value:.6f}" if is_compared else "",
        "" if effect is None else f"{effect:.6f}",
        "true" if comparison.is_paired else "false",
        *_csv_finding(comparison.over_seeds),
        *_csv_finding(comparison.over_items),
    ]


def _axes(row: RowKey) -> str:
    return "; ".join(f"{name}={value}" for name, value in row.axes)


def _mean(sample: Sample) -> list[str]:
    """Return the mean and the ends of its 95 % interval over seeds, if it has one."""
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
