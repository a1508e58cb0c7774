"""What a reader must know beside the numbers."""

from collections.abc import Iterator, Sequence

from synthbench.reporting.model.comparison_notes import least_detectable_notes
from synthbench.reporting.model.overlap_notes import overlap_notes
from synthbench.reporting.model.published_amounts import amount_notes
from synthbench.reporting.model.published_notes import published_notes
from synthbench.reporting.model.table import CEILING_MARK, MISSING, Cell, Table
from synthbench.reporting.model.warning_notes import (
    UNKNOWN_NOISE,
    count_texts,
    flat_labels,
    incomplete,
    not_alike,
    not_found,
    one_seed,
    undefined,
    unfinished,
)
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.statistics.aggregate import RowKey, rows
from synthbench.reporting.statistics.columns import column_sources
from synthbench.reporting.statistics.comparisons import ItemErrors
from synthbench.reporting.statistics.differences import NOISE_RULE

CHOSEN_SEED = "train.seed"
_OTHER_SEEDS = "[n=...]: over another number of seeds."


def table_notes(table: Table, result: ExperimentResult, options: TableOptions) -> tuple[str, ...]:
    """Return the table's footnotes, plain sentences in a fixed order."""
    notes = (
        *_overrides(result),
        *_metrics(table),
        *_seeds(table, result),
        *least_detectable_notes(result),
        *_choices(result),
        *_seed_optimization(result),
        *_averages(table, options),
        *_items(table),
        *not_alike(table),
        *_marks(table),
        *undefined(result, options),
        *published_notes(table, are_wanted=bool(result.published)),
        *amount_notes(result, options),
        *not_found(result, options),
        *_data(result),
        *overlap_notes(result),
        *options.notes,
        *result.notes,
        *unfinished(result),
    )
    return tuple(note for note in notes if note.strip())


def short_notes(table: Table, result: ExperimentResult, options: TableOptions) -> tuple[str, ...]:
    """Return the table's footnotes without which its figures and marks can't be read."""
    return (
        *_overrides(result),
        *_metrics(table),
        *_seeds(table, result),
        *_averages(table, options),
        *not_alike(table),
        *_marks(table),
        *undefined(result, options),
        *published_notes(table, are_wanted=bool(result.published)),
        *not_found(result, options),
        *flat_labels(result),
        *incomplete(result),
    )


def audit_notes(result: ExperimentResult) -> tuple[str, ...]:
    """Return what must be known beside audits; where there is no other table, its caption comes first."""
    options = TableOptions.model_validate(result.table)
    caption = "" if result.has_scores else options.caption or result.description
    said = (*options.notes, *result.notes, *unfinished(result))
    notes = (caption, *_overrides(result), *_data(result), *said)
    return tuple(note for note in notes if note.strip())


def data_notes(result: ExperimentResult) -> tuple[str, ...]:
    """Return what must be known of the experiment and its data beside what shows no scores."""
    return (*_overrides(result), *_data(result), *unfinished(result))


def cost_notes(result: ExperimentResult) -> tuple[str, ...]:
    """Return what must be known of the experiment beside costs, as beside audits where nothing is scored."""
    return (*_overrides(result), *_data(result)) if result.has_scores else audit_notes(result)


def figure_notes(table: Table, result: ExperimentResult) -> tuple[str, ...]:
    """Return what stands below a figure of the table, in the words of the table's own notes."""
    return (
        *_overrides(result),
        *_metrics(table),
        *_intervals(table, result),
        *not_alike(table),
        *_marks(table),
        *undefined(result, TableOptions.model_validate(result.table)),
        *incomplete(result),
    )


def curve_notes(table: Table, result: ExperimentResult) -> tuple[str, ...]:
    """Return what stands below curves, which leave a gap where nothing was scored."""
    no_score = f"{MISSING} Not scored."
    return tuple(note for note in figure_notes(table, result) if note != no_score)


def _overrides(result: ExperimentResult) -> Iterator[str]:
    if result.overrides:
        yield f"Not the experiment as its file has it, but with {' '.join(result.overrides)}."


def _data(result: ExperimentResult) -> Iterator[str]:
    """Yield what must be known of the data: each once."""
    datasets = [dataset for run in result.runs for dataset in run.datasets]
    yield from dict.fromkeys(note for dataset in datasets for note in dataset.notes)
    yield from flat_labels(result)


def _metrics(table: Table) -> Iterator[str]:
    titles: dict[str, list[str]] = {}
    for column in table.columns:
        titles.setdefault(column.metric_title, []).append(column.title)
    if len(titles) == 1:
        yield f"Scores × 100: {next(iter(titles))}."
    elif titles:
        yield (
            "Scores × 100: " + "; ".join(f"{', '.join(of)}: {metric}" for metric, of in titles.items()) + "."
        )


def _seeds(table: Table, result: ExperimentResult) -> Iterator[str]:
    seeds, cells = _seeds_of(result), _cells(table)
    compares = any(len(group.compared) > 1 for group in table.groups)
    if len(seeds) == 1:
        yield from one_seed(table, result)
        return
    if not cells:
        return
    yield f"Mean ± sample standard deviation {_over_seeds(table, result)}."
    if any(cell.num_seeds != table.num_seeds for cell in cells):
        yield _OTHER_SEEDS
    yield from _varied(result, "± and bold cover")
    if compares:
        bold = "Bold: leads" if any(cell.is_bold for cell in cells) else "Nothing is bold: no row leads"
        yield f"{bold} every other row of its group by more than the {_noise(table, result)} ({NOISE_RULE})."


def _noise(table: Table, result: ExperimentResult) -> str:
    """Return which noise the leads of a table have to exceed: the items' is not known of every score."""
    if not result.item_noise:
        return "noise between seeds"
    items = ItemErrors(result)
    sources = column_sources(result, TableOptions.model_validate(result.table))
    for group in table.groups:
        for place, source in enumerate(sources):
            keys = [RowKey(row.variant, row.axes) for row in group.compared if row.cells[place]]
            if any(items.noise(source, keys[0], key) is None for key in keys[1:]):
                return "noise of seeds and, where that is known, of test items"
    return "noise of seeds and test items"


def _intervals(table: Table, result: ExperimentResult) -> Iterator[str]:
    seeds, cells = _seeds_of(result), _cells(table)
    if len(seeds) == 1:
        yield f"One seed ({seeds[0]}): {UNKNOWN_NOISE}, so there are no intervals."
        return
    if not cells:
        return
    yield f"Mean and 95 % confidence interval (Student's t) {_over_seeds(table, result)}."
    if any(cell.num_seeds > 1 and cell.half_width is None for cell in cells):
        yield "Hollow: a single value, or the same with each seed, so no interval."
    elif any(cell.num_seeds == 1 for cell in cells):
        yield "Hollow: a single value, so no interval."
    if any(cell.num_seeds not in (1, table.num_seeds) for cell in cells):
        yield _OTHER_SEEDS
    yield from _varied(result, "intervals cover")


def _seeds_of(result: ExperimentResult) -> list[int]:
    return sorted({run.seed for run in result.runs})


def _cells(table: Table) -> list[Cell]:
    return [cell for row in table.rows for cell in row.cells if cell is not None]


def _over_seeds(table: Table, result: ExperimentResult) -> str:
    return f"over n = {table.num_seeds} seeds ({', '.join(map(str, _seeds_of(result)))})"


def _varied(result: ExperimentResult, covers: str) -> Iterator[str]:
    """Say what the noise between seeds is the noise of, where more than the training might have varied."""
    is_generated = any(dataset.method for run in result.runs for dataset in run.datasets)
    if "generation" in result.varied and is_generated:
        yield f"Generated data were made anew for every seed: {covers} the noise of both."
    elif is_generated:
        yield (
            f"Generated data were made once, for all seeds: {covers} the noise of training, "
            "not of generation."
        )
    if "sample" in result.varied:
        yield f"Sampled training data were drawn anew for every seed: {covers} that noise too."


def _choices(result: ExperimentResult) -> Iterator[str]:
    """Say what `select` chose, for each row and each value that it ranged over.

    The seeds that seed optimisation chose tell nobody anything; `report --trace` has them.
    """
    for key, runs in rows(result).items():
        chosen = [run for run in runs if run.chosen]
        axes = ", ".join(value for _, value in key.axes)
        row = f"{key.variant} ({axes})" if axes else key.variant
        seeds = "seed" if len(chosen) == 1 else "seeds"
        seeds = f"{seeds} {', '.join(str(run.seed) for run in chosen)}"
        paths = dict.fromkeys(path for run in chosen for path in run.chosen if path != CHOSEN_SEED)
        for path, name in _short_names(list(paths)).items():
            values = ", ".join(str(run.chosen.get(path)) for run in chosen)
            yield f"Chosen on dev: {row}: {name} = {values} for {seeds}."


def _short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return what readers may call settings: "k", or "sampler k" and "head k" where two end alike."""
    names = {}
    for path in paths:
        keys = path.split(".")
        tails = (keys[-length:] for length in range(1, len(keys) + 1))
        others = [other.split(".") for other in paths if other != path]
        names[path] = " ".join(next(t for t in tails if all(o[-len(t) :] != t for o in others)))
    return names


def _seed_optimization(result: ExperimentResult) -> Iterator[str]:
    """Say what was finished of several trainings, and how much of training them all to the end was saved."""
    found: dict[tuple[int, float], dict[str, None]] = {}
    for run in result.runs:
        if run.num_starts > 1:
            found.setdefault((run.num_starts, run.paused_at), {})[run.variant] = None
    for (num_starts, share), variants in found.items():
        saved = (1 - share) * (num_starts - 1) / num_starts
        yield (
            f"Seed optimisation ({', '.join(variants)}): of {num_starts} trainings for each seed the one that"
            f" was best on dev after {share:.0%} of the steps was finished, which saved {saved:.0%} of all"
            " steps."
        )


def _averages(table: Table, options: TableOptions) -> Iterator[str]:
    for column in table.columns:
        if column.is_average:
            yield f"{column.title}: mean of {', '.join(options.averages[column.title])} for each seed."


def _items(table: Table) -> Iterator[str]:
    counts = [
        f"{column.title} {texts[0]}"
        for index, column in enumerate(table.columns)
        if not column.is_average and len(texts := count_texts(table, index)) == 1
    ]
    if counts:
        yield f"Items scored: {', '.join(counts)}."


def _marks(table: Table) -> Iterator[str]:
    ceilings = dict.fromkeys(row.variant for row in table.rows if row.is_ceiling)
    if ceilings:
        yield f"{CEILING_MARK} Ceiling, compared with no other row: {', '.join(ceilings)}."
    if any(cell is None for row in table.rows for cell in row.cells):
        yield f"{MISSING} Not scored."
