"""How much generated data a paper had, beside ours."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from synthbench.reporting.options import PublishedOptions, TableOptions
from synthbench.reporting.published import PublishedValue
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics import aggregate
from synthbench.reporting.statistics.aggregate import RowKey
from synthbench.reporting.statistics.columns import ColumnSource, Runs, column_sources

PART_MARK = " #"
"""Stands in a published column of amounts between the test set and the part of the data: "MRPC #silver"."""


def amount_notes(result: ExperimentResult, options: TableOptions) -> Iterator[str]:
    """Yield row by row how many records ours had (the mean over seeds), with the paper's in brackets."""
    if options.published is None:
        return
    sources = [each for each in column_sources(result, options) if not each.column.is_average]
    for key, runs in aggregate.rows(result, options.across).items():
        told: dict[str, list[str]] = {}
        for source in sources:
            for part, text in _amounts(source, key, runs, options.published, result.published):
                told.setdefault(part, []).append(text)
        for part, texts in told.items():
            yield f"Records of {part}, published in brackets: {key.label}: {', '.join(texts)}."


def _amounts(
    source: ColumnSource,
    key: RowKey,
    runs: Runs,
    options: PublishedOptions,
    values: Sequence[PublishedValue],
) -> Iterator[tuple[str, str]]:
    """Yield each part whose amount is printed for a cell, with ours and the paper's."""
    row, column = options.rows.get(key.variant), source.published_column(options)
    for value in values:
        printed, mark, part = value.column.partition(PART_MARK)
        if (value.metric, value.row, printed, mark) != ("count", row, column, PART_MARK):
            continue
        here = aggregate.runs_at(runs, source.measurements[0].place)
        counts = [data.num_records for run in here for data in run.datasets if data.part == part]
        if counts:
            yield part, f"{source.column.title} {round(fmean(counts)):,} ({int(value.value):,})"
