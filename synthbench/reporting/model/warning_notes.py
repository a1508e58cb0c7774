"""What a reader must know before believing a table: what is missing, and which figures say little."""

import math
from collections.abc import Iterator

from synthbench.reporting.model.overlap_notes import overlap_notes
from synthbench.reporting.model.table import Table
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics.aggregate import measurements, rows, scores
from synthbench.reporting.statistics.columns import column_sources

UNKNOWN_NOISE = "the noise between seeds is unknown"
FLAT = 0.01


def warning_notes(table: Table, result: ExperimentResult, options: TableOptions) -> tuple[str, ...]:
    """Return those of the table's notes that cast doubt on its figures; what is not finished is apart."""
    return (
        *one_seed(table, result),
        *not_alike(table),
        *undefined(result, options),
        *not_found(result, options),
        *flat_labels(result),
        *overlap_notes(result),
    )


def one_seed(table: Table, result: ExperimentResult) -> Iterator[str]:
    """Say that there was one seed alone, and what that means where rows are compared."""
    seeds = {run.seed for run in result.runs}
    if len(seeds) == 1:
        compares = any(len(group.compared) > 1 for group in table.groups)
        what = f": {UNKNOWN_NOISE}, so nothing is bold." if compares else "."
        yield f"One seed ({next(iter(seeds))}){what}"


def not_alike(table: Table) -> Iterator[str]:
    """Name the columns whose rows are not comparable."""
    for index, column in enumerate(table.columns):
        texts = count_texts(table, index)
        if not column.is_average and len(texts) > 1:
            yield f"{column.title}: rows are not comparable, scored on {' and '.join(texts)} items."
        if not column.is_average and len(column.metrics) > 1:
            yield f"{column.title}: rows are not comparable, their scores differ: {column.metric_title}."


def count_texts(table: Table, index: int) -> list[str]:
    """Return each number of items that rows were scored on in a column, with what was dropped."""
    counts = dict.fromkeys((cell.num_items, cell.num_dropped) for cell in table.cells(index))
    return [f"{items} ({dropped} dropped as leaks)" if dropped else f"{items}" for items, dropped in counts]


def undefined(result: ExperimentResult, options: TableOptions) -> Iterator[str]:
    """Name the scores that are no numbers: a mean without their seeds would be another row's."""
    shown = dict.fromkeys(one for column in column_sources(result, options) for one in column.measurements)
    seeds: dict[str, list[str]] = {}
    for key, runs in rows(result, options.across).items():
        for measurement in shown:
            for run in runs:
                if any(math.isnan(each.scores[each.main_score]) for each in scores((run,), measurement)):
                    seeds.setdefault(f"{key.label} on {measurement.label}", []).append(str(run.seed))
    if seeds:
        named = (f"{cell} (seed {', '.join(of)})" for cell, of in seeds.items())
        yield f"nan: no score is defined, so there is no mean over the seeds: {'; '.join(named)}."


def not_found(result: ExperimentResult, options: TableOptions) -> Iterator[str]:
    """Name the test sets that the table asks for and nothing was scored on."""
    measured = measurements(result, options.across)
    scored = {name for one in measured for name in one.names}
    named = (name for name in options.columns or result.tasks if name not in options.averages)
    averaged = [task for over in options.averages.values() for task in over]
    missing = [task for task in dict.fromkeys([*named, *averaged]) if task not in scored]
    if missing:
        yield f"Not found, so not scored: {', '.join(missing)}."
    for name, over in options.averages.items():
        if set(missing) & set(over):
            yield f"No column '{name}': some of its test sets were not found."


def flat_labels(result: ExperimentResult) -> Iterator[str]:
    """Yield a warning for each part of generated data whose scores are nearly all the same."""
    flat: dict[str, dict[str, None]] = {}
    for run in result.runs:
        for data in run.datasets:
            if data.method and data.num_records > 1 and data.figures.get("score_sd", 1.0) < FLAT:
                flat.setdefault(data.part, {})[run.variant] = None
    for part, variants in flat.items():
        yield (
            f"Scores of {part} are nearly all the same (standard deviation below {FLAT:g}), so that they tell"
            f" hardly one pair from another: {', '.join(variants)}."
        )


def unfinished(result: ExperimentResult) -> Iterator[str]:
    """Yield each failure, and what comes on another day."""
    yield from (f"Failed: {failure}" for failure in result.failures)
    yield from (f"Pending: {what}" for what in result.pending)


def incomplete(result: ExperimentResult) -> Iterator[str]:
    """Say, where there is no room for more, that something is not there."""
    counts = {"failed": len(result.failures), "pending": len(result.pending)}
    told = [f"{count} {what}" for what, count in counts.items() if count]
    if told:
        yield f"Incomplete ({', '.join(told)}): what is not there is named beside the table."
