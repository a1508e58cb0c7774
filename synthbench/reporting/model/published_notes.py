"""Notes on a paper's figures beside ours: sources, conditions that differ, marks, amounts of data."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from synthbench.reporting.model.aggregate import ColumnSource, Runs
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.table import DIFFERENCE_MARK, FLAGS, PublishedCell, Row, RowKey, Table
from synthbench.reporting.options import PublishedOptions
from synthbench.reporting.published import PublishedValue

PART_MARK = " #"
"""Separates test set and part of the data in a published column of amounts: "MRPC #silver"."""
Found = tuple[Row, str, PublishedCell]


def published_notes(table: Table, *, are_wanted: bool) -> Iterator[str]:
    """Yield where the figures are from, in what they differ, what is doubtful about them."""
    found = [
        (row, column.title, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=False)
        if cell is not None
    ]
    if are_wanted and not found:
        yield "None of the published figures is of a row and a column of this table."
    shown = [each for each in found if not each[2].refusal]
    if shown:
        yield f"Published: {'; '.join(dict.fromkeys(cell.source for _, _, cell in shown))}."
    for text in _differences(shown):
        yield f"{DIFFERENCE_MARK} Not measured alike: {text}."
    for flag in dict.fromkeys(cell.flag for _, _, cell in shown if cell.flag):
        mark, meaning = FLAGS[flag]
        yield f"{mark} {meaning}"
    refused: dict[str, dict[str, None]] = {}
    for _, title, cell in found:
        if cell.refusal:
            refused.setdefault(cell.refusal, {})[title] = None
    for reason, titles in refused.items():
        yield f"Published figures of another thing are not shown: {', '.join(titles)}: {reason}."


def _differences(shown: list[Found]) -> Iterator[str]:
    """Yield what the whole table has, what some rows have, and in one text what columns have."""
    columns: dict[str, None] = {}
    for difference in dict.fromkeys(difference for _, _, cell in shown for difference in cell.differences):
        having = [each for each in shown if difference in each[2].differences]
        if difference.of == "column":
            columns |= dict.fromkeys(f"{title}: {difference.text}" for _, title, _ in having)
            continue
        everywhere, here = (dict.fromkeys(row.variant for row, _, _ in some) for some in (shown, having))
        yield difference.text + ("" if len(here) == len(everywhere) else f": {', '.join(here)}")
    if columns:
        yield "; ".join(columns)


def amount_notes(analysis: Analysis) -> Iterator[str]:
    """Yield row by row the number of records (mean over seeds), with the paper's in brackets."""
    options = analysis.options.published
    if options is None:
        return
    sources = [each for each in analysis.columns if not each.column.is_average]
    for key, runs in analysis.rows.items():
        texts: dict[str, list[str]] = {}
        for source in sources:
            for part, text in _amounts(source, key, runs, options, analysis.result.published):
                texts.setdefault(part, []).append(text)
        for part, of_part in texts.items():
            yield f"Records of {part}, published in brackets: {key.label}: {', '.join(of_part)}."


def _amounts(
    source: ColumnSource,
    key: RowKey,
    runs: Runs,
    options: PublishedOptions,
    values: Sequence[PublishedValue],
) -> Iterator[tuple[str, str]]:
    """Yield each part whose amount the paper printed for this cell, with both amounts."""
    row, column = options.rows.get(key.variant), source.published_column(options)
    for value in values:
        printed, mark, part = value.column.partition(PART_MARK)
        if (value.metric, value.row, printed, mark) != ("count", row, column, PART_MARK):
            continue
        here = source.measurements[0].runs(runs)
        counts = [data.num_records for run in here for data in run.datasets if data.part == part]
        if counts:
            yield part, f"{source.column.title} {round(fmean(counts)):,} ({int(value.value):,})"
