"""Published values beside our scores: whether they are comparable, with marks and notes on differences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from synthbench.base.patterns import linear_pattern
from synthbench.config.coordinates import RowKey
from synthbench.config.published_tables import PublishedValue
from synthbench.config.table_options import PublishedOptions
from synthbench.reporting.model.aggregate import ColumnSource, Runs
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.table import (
    DIFFERENCE_MARK,
    FLAGS,
    MeasurementDifference,
    PublishedCell,
    Row,
    Table,
)
from synthbench.reporting.results import RunResult, TaskScores

PART_MARK = " #"
"""Comes between test set and part of the data where a paper gives numbers of records: "MRPC #silver"."""
_LANGUAGE_MODEL = linear_pattern(r"^data\.[^.]+\.(?:language_model|seq2seq)\.model")
_CHANGES = ("--profile", "--set")
Shown = tuple[Row, str, PublishedCell]
"""Row, column title, cell."""


@dataclass(frozen=True)
class _MeasuredCell:
    """What we measured for a cell: runs, their scores (for an average, on every test set), and overrides."""

    runs: Sequence[RunResult]
    scores: Sequence[TaskScores]
    is_average: bool
    overrides: Sequence[str]


def published_cells(key: RowKey, runs: Runs, analysis: Analysis) -> Iterator[PublishedCell | None]:
    """Yield the published value for each column of a row; None for a column without a published value."""
    options = analysis.options.published
    for source in analysis.columns:
        value = None if options is None else _value(key, source, options, analysis)
        if options is None or value is None:
            yield None
            continue
        measured = _measured(source, runs, analysis)
        own = tuple(_differences(value, measured))
        parts = {
            part.column.title: tuple(_differences(printed, _measured(part, runs, analysis)))
            for part in source.parts
            if (printed := _value(key, part, options, analysis)) is not None
        }
        differences = (*own, *_differences_of_parts(parts, own))
        yield PublishedCell(
            value.value, value.sd, value.source, value.flag, differences, _refusal(value, measured)
        )


def _value(
    key: RowKey, source: ColumnSource, options: PublishedOptions, analysis: Analysis
) -> PublishedValue | None:
    encoder = options.encoder_at(dict((*key.axes, *source.measurements[0].coordinates)).values())
    wanted = options.rows.get(key.variant), source.published_column(options)
    fitting = [
        value
        for value in analysis.result.published
        if (value.row, value.column) == wanted and encoder in (None, value.encoder)
    ]
    return fitting[-1] if fitting else None


def _measured(source: ColumnSource, runs: Runs, analysis: Analysis) -> _MeasuredCell:
    scores = [score for one in source.measurements for score in one.scores(runs)]
    here = [run for one in source.measurements for run in one.runs(runs)]
    return _MeasuredCell(here, scores, source.column.is_average, analysis.result.overrides)


def _refusal(value: PublishedValue, measured: _MeasuredCell) -> str:
    """Return why the value can't be shown beside ours: another split, metric or aggregation.

    Main scores are named METRIC or METRIC_AGGREGATION. The published aggregation "none" means a test set
    without subsets, for which all aggregations are equal.
    """
    splits = {score.split for score in measured.scores} - {""}
    if value.split and splits - {value.split}:
        return f"published {value.split}, here {' and '.join(sorted(splits))}"
    for name in dict.fromkeys(score.main_score for score in measured.scores):
        metric, _, aggregation = name.partition("_")
        if name == value.metric:
            continue
        if metric != value.metric:
            return f"published {value.metric}, here {metric}"
        if "none" != value.aggregation != aggregation:
            return f"published aggregation {value.aggregation}, here {aggregation}"
    return ""


def _differences(value: PublishedValue, measured: _MeasuredCell) -> Iterator[MeasurementDifference]:
    """Yield how our measurement differs from the paper's; unknown models and settings are skipped."""
    # Overrides that left these runs unchanged affected only other rows.
    changes = [each for each in measured.overrides if each.startswith(_CHANGES)]
    if changes and not all(run.is_of_file for run in measured.runs):
        yield MeasurementDifference(f"ours are of the experiment with {' '.join(changes)}", "row")
    encoders = _others(value.encoder, map(_encoder, measured.runs))
    if encoders:
        yield MeasurementDifference(f"published {value.encoder}, here {encoders}", "row")
    generators = _others(value.generator, (name for run in measured.runs for name in _generators(run)))
    if generators:
        yield MeasurementDifference(f"published data of {value.generator}, here of {generators}", "row")
    for text in (*_other_settings(value, measured.scores), *_other_items(value, measured)):
        yield MeasurementDifference(text, "column")


def _others(published: str, models: Iterable[str]) -> str:
    """Return our models, joined by "and", if any differs from the published model; else ""."""
    names = sorted({*models} - {""})
    is_other = published and any(not _is_same(published, name) for name in names)
    return " and ".join(names) if is_other else ""


def _is_same(published: str, model: str) -> bool:
    """Return whether a hub id is the published model or one derived from it: "roberta-base-nli-..."."""
    name = model.rpartition("/")[2].lower()
    return name == published or (name.startswith(f"{published}-") and "," not in name)


def _encoder(run: RunResult) -> str:
    """Return the base model with its changes: "org/name, 2 layers"."""
    name = str(run.parameters.get("train.base.model", ""))
    if run.parameters.get("train.base.static"):
        return f"{name}, token embeddings"
    layers = run.parameters.get("train.base.num_layers")
    return f"{name}, {layers} layers" if layers else name


def _generators(run: RunResult) -> list[str]:
    models = [str(value) for path, value in run.parameters.items() if _LANGUAGE_MODEL.fullmatch(path)]
    return [*models, *(dataset.llm for dataset in run.datasets if dataset.llm)]


def _other_settings(value: PublishedValue, scores: Sequence[TaskScores]) -> Iterator[str]:
    """Yield the evaluator's settings that differ, such as the classifier."""
    for name, published in value.settings.items():
        here = {str(score.settings[name]) for score in scores if name in score.settings}
        if here - {published}:
            yield f"{name}: published {published}, here {' and '.join(sorted(here))}"


def _other_items(value: PublishedValue, measured: _MeasuredCell) -> Iterator[str]:
    """Yield differences in the number or choice of test items, or in averaging over subsets."""
    counts = {score.num_items for score in measured.scores}
    if value.n is not None and not measured.is_average and counts != {value.n}:
        yield f"{value.n} items published, {' and '.join(map(str, sorted(counts)))} here"
    if drawn := {score.drawn: None for score in measured.scores if score.drawn}:
        yield f"other items than the published ones, ours are {' and '.join(drawn)}"
    has_subsets = all(any("/" in name for name in score.scores) for score in measured.scores)
    if value.aggregation == "mean" and not has_subsets:
        yield "a mean over subsets, unknown here"


def _differences_of_parts(
    parts: Mapping[str, Sequence[MeasurementDifference]], own: Sequence[MeasurementDifference]
) -> Iterator[MeasurementDifference]:
    """Yield differences of columns that an average's test sets have, and the average itself has not.

    `parts`: each test set's differences, by the set's title. `own`: the average's differences.
    """
    titles: dict[str, list[str]] = {}
    for title, found in parts.items():
        for difference in found:
            if difference.of == "column" and difference not in own:
                titles.setdefault(difference.text, []).append(title)
    return (MeasurementDifference(f"{text} ({', '.join(of)})", "column") for text, of in titles.items())


def published_notes(table: Table, *, are_wanted: bool) -> Iterator[str]:
    """Yield notes on published values: sources, differing conditions, marks, and values left out.

    If `are_wanted`, also say when the table has no published value.
    """
    found = [
        (row, column.title, cell)
        for row in table.rows
        for column, cell in zip(table.columns, row.published, strict=False)
        if cell is not None
    ]
    if are_wanted and not found:
        yield "No published value belongs to a row and a column of this table."
    shown = [each for each in found if not each[2].refusal]
    if shown:
        yield f"Published: {'; '.join(dict.fromkeys(cell.source for _, _, cell in shown))}."
    for text in _difference_texts(shown):
        yield f"{DIFFERENCE_MARK} Measured differently: {text}."
    yield from (" ".join(FLAGS[flag]) for flag in dict.fromkeys(cell.flag for *_, cell in shown) if flag)
    refused: dict[str, dict[str, None]] = {}
    for _, title, cell in found:
        if cell.refusal:
            refused.setdefault(cell.refusal, {})[title] = None
    for reason, titles in refused.items():
        yield f"Published values left out, since they measure something else: {', '.join(titles)}: {reason}."


def published_legend(table: Table) -> Iterator[str]:
    """Yield the meanings of the marks of published values, in short."""
    shown = [cell for row in table.rows for cell in row.published if cell is not None and not cell.refusal]
    if any(cell.differences for cell in shown):
        yield f"{DIFFERENCE_MARK} Measured differently."
    yield from (" ".join(FLAGS[flag]) for flag in dict.fromkeys(cell.flag for cell in shown) if flag)


def _difference_texts(shown: Sequence[Shown]) -> Iterator[str]:
    """Yield a text for each difference of rows, then one text for all differences of columns.

    A text names the rows that differ, unless all rows differ.
    """
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
    """Yield, per row and part of its data, our mean number of records over seeds, and the published one."""
    options = analysis.options.published
    if options is None:
        return
    sources = [each for each in analysis.columns if not each.column.is_average]
    for key, runs in analysis.rows.items():
        texts: dict[str, list[str]] = {}
        for source in sources:
            wanted = options.rows.get(key.variant), source.published_column(options)
            for part, amount in _published_amounts(analysis.result.published, wanted):
                here = source.measurements[0].runs(runs)
                counts = [data.num_records for run in here for data in run.datasets if data.part == part]
                if counts:
                    text = f"{source.column.title} {round(fmean(counts)):,} ({amount})"
                    texts.setdefault(part, []).append(text)
        for part, of_part in texts.items():
            yield f"Number of records of {part}, published in brackets: {key.label}: {', '.join(of_part)}."


def _published_amounts(
    values: Sequence[PublishedValue], wanted: tuple[str | None, str]
) -> Iterator[tuple[str, str]]:
    """Yield (part of the data, published number of records) for the row and column `wanted`."""
    for value in values:
        column, mark, part = value.column.partition(PART_MARK)
        if value.metric == "count" and mark and (value.row, column) == wanted:
            yield part, f"{int(value.value):,}" if value.value.isdecimal() else value.value
