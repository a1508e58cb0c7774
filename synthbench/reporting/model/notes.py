"""Notes on the table of scores: all of them, those below the table, and those below its figures."""

import math
from collections.abc import Iterable, Iterator, Sequence

from synthbench.base.grouping import grouped
from synthbench.reporting.model.aggregate import Measurement
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import (
    asked_llms,
    flat_labels,
    incomplete,
    methods,
    overlap_notes,
    overridden,
    unfinished,
)
from synthbench.reporting.model.item_errors import independent_items
from synthbench.reporting.model.published_values import amount_notes, published_legend, published_notes
from synthbench.reporting.model.registration_note import registration_line, registration_notes
from synthbench.reporting.model.seen_notes import seen_notes
from synthbench.reporting.model.table import CEILING_MARK, MISSING, Cell, Table
from synthbench.reporting.model.verdicts import bold, rule, untested
from synthbench.reporting.model.what_varies import what_varies
from synthbench.reporting.model.world_warning import world_warning
from synthbench.reporting.results import TaskScores

CHOSEN_SEED = "train.seed"
NOT_SCORED = f"{MISSING} Not scored."
UNKNOWN_NOISE = "the noise between seeds is unknown"
_OTHER_SEEDS = "[n=...]: another number of seeds."


def table_notes(table: Table, analysis: Analysis) -> tuple[str, ...]:
    """Return all notes on the table, in the order of printing."""
    result = analysis.result
    notes = (
        *world_warning(result),
        *incomplete(result),
        *overridden(result),
        *registration_notes(result.registration),
        *_metrics(table),
        *_seeds(table, analysis),
        *independent_items(result.item_noise),
        *_choices(analysis),
        *_seed_optimization(analysis),
        *_averages(table, analysis),
        *_items(table),
        *_not_comparable(table, analysis),
        *_marks(table),
        *_undefined(analysis),
        *published_notes(table, are_wanted=bool(result.published)),
        *amount_notes(analysis),
        *_not_found(analysis),
        *methods(result),
        *asked_llms(result),
        *overlap_notes(result),
        *seen_notes(result),
        *analysis.options.notes,
        *result.notes,
        *unfinished(result),
    )
    return tuple(note for note in notes if note.strip())


def first_notes(table: Table, analysis: Analysis) -> tuple[tuple[str, ...], ...]:
    """Return at most three notes to print below the table, each as sentences: on cells, claims, warnings.

    If a sentence is also in `table_notes`, the wording is the same.
    """
    reading = (*_metrics(table), *_cells_note(table, analysis), *_marks(table), *published_legend(table))
    beware = (*_beware(table, analysis), *registration_line(analysis.result.registration))
    return tuple(filter(None, (reading, tuple(_claims(table, analysis)), beware)))


def figure_notes(table: Table, analysis: Analysis) -> tuple[str, ...]:
    """Return at most three notes for figures, which show intervals instead of ± and bold."""
    reading = (*_metrics(table), *_intervals(table, analysis))
    groups = (reading, tuple(_marks(table)), _beware(table, analysis))
    return tuple(" ".join(group) for group in groups if group)


def _beware(table: Table, analysis: Analysis) -> tuple[str, ...]:
    """Return the warnings that every table and figure of the scores shows."""
    result = analysis.result
    return (
        *world_warning(result),
        *incomplete(result),
        *overridden(result),
        *_not_comparable(table, analysis),
        *_undefined(analysis),
        *seen_notes(result),
    )


def without_gaps(notes: Sequence[str]) -> tuple[str, ...]:
    """Return a figure's notes without the explanation of the mark for missing scores."""
    return tuple(filter(None, (note.replace(NOT_SCORED, "").strip() for note in notes)))


def warnings(table: Table, analysis: Analysis) -> tuple[str, ...]:
    """Return the notes that cast doubt on scores, except failures."""
    return (
        *_one_seed(table, analysis),
        *_not_comparable(table, analysis),
        *_undefined(analysis),
        *_not_found(analysis),
        *flat_labels(analysis.result),
        *overlap_notes(analysis.result),
        *seen_notes(analysis.result),
    )


def _metrics(table: Table) -> Iterator[str]:
    titles = grouped((column.metric_title, column.title) for column in table.columns)
    if len(titles) == 1:
        yield f"Scores × 100: {next(iter(titles))}."
    elif titles:
        by_metric = (f"{', '.join(columns)}: {metric}" for metric, columns in titles.items())
        yield f"Scores × 100: {'; '.join(by_metric)}."


def _one_seed(table: Table, analysis: Analysis) -> Iterator[str]:
    if len(analysis.seeds) == 1:
        is_claimless = table.has_rivals and not analysis.decisions.has_tests
        what = f": {UNKNOWN_NOISE}, so nothing is claimed." if is_claimless else "."
        yield f"One seed ({analysis.seeds[0]}){what}"


def _seeds(table: Table, analysis: Analysis) -> Iterator[str]:
    yield from _cells_note(table, analysis)
    if len(analysis.seeds) > 1 and _cells(table):
        yield from what_varies(analysis.result, analysis.grid_rows)
    yield from _claims(table, analysis)


def _cells_note(table: Table, analysis: Analysis) -> Iterator[str]:
    """Yield what a cell's numbers mean: mean ± standard deviation, and the seeds."""
    cells = _cells(table)
    if len(analysis.seeds) == 1:
        yield from _one_seed(table, analysis)
    elif cells:
        yield f"Mean ± sample standard deviation {_over_seeds(table, analysis)}."
        if any(cell.num_seeds != table.num_seeds for cell in cells):
            yield _OTHER_SEEDS


def _claims(table: Table, analysis: Analysis) -> Iterator[str]:
    """Say what is tested, and what is bold."""
    has_seeds = len(analysis.seeds) > 1 and _cells(table) and (analysis.comparisons or table.has_rivals)
    if has_seeds or (len(analysis.seeds) == 1 and analysis.decisions.has_tests):
        yield from (*rule(analysis), *untested(analysis), *bold(analysis))


def _intervals(table: Table, analysis: Analysis) -> Iterator[str]:
    cells = _cells(table)
    if len(analysis.seeds) == 1:
        yield f"One seed ({analysis.seeds[0]}): {UNKNOWN_NOISE}, so there are no intervals."
        return
    if not cells:
        return
    yield f"Mean and 95 % confidence interval (Student's t) {_over_seeds(table, analysis)}."
    if any(cell.num_seeds > 1 and cell.half_width is None for cell in cells):
        yield "Hollow: no interval, since there is one value or all seeds gave the same."
    elif any(cell.num_seeds == 1 for cell in cells):
        yield "Hollow: no interval, since there is one value."
    if any(cell.num_seeds not in (1, table.num_seeds) for cell in cells):
        yield _OTHER_SEEDS


def _cells(table: Table) -> list[Cell]:
    return [cell for row in table.rows for cell in row.cells if cell is not None]


def _over_seeds(table: Table, analysis: Analysis) -> str:
    return f"over n = {table.num_seeds} seeds ({', '.join(map(str, analysis.seeds))})"


def _choices(analysis: Analysis) -> Iterator[str]:
    """Yield what `select` chose for each row and setting, except training seeds (see `report --trace`)."""
    for key, runs in analysis.grid_rows.items():
        chosen = [run for run in runs if run.chosen]
        seeds = "seed" if len(chosen) == 1 else "seeds"
        seeds = f"{seeds} {', '.join(str(run.seed) for run in chosen)}"
        paths = dict.fromkeys(path for run in chosen for path in run.chosen if path != CHOSEN_SEED)
        for path, name in _short_names(list(paths)).items():
            values = ", ".join(str(run.chosen.get(path)) for run in chosen)
            yield f"Chosen on dev: {key.title}: {name} = {values} for {seeds}."


def _short_names(paths: Sequence[str]) -> dict[str, str]:
    """Return the shortest unambiguous name of each setting: "k", or "sampler k" and "head k"."""
    names = {}
    for path in paths:
        keys = path.split(".")
        tails = (keys[-length:] for length in range(1, len(keys) + 1))
        others = [other.split(".") for other in paths if other != path]
        names[path] = " ".join(next(t for t in tails if all(o[-len(t) :] != t for o in others)))
    return names


def _seed_optimization(analysis: Analysis) -> Iterator[str]:
    """Yield how many trainings were started per finished one, and the share of steps that pausing saved."""
    found: dict[tuple[int, float], dict[str, None]] = {}
    for run in analysis.result.runs:
        if run.num_starts > 1:
            found.setdefault((run.num_starts, run.paused_at), {})[run.variant] = None
    for (num_starts, share), variants in found.items():
        saved = (1 - share) * (num_starts - 1) / num_starts
        yield (
            f"Seed optimisation ({', '.join(variants)}): of {num_starts} trainings per seed, only the best on"
            f" dev after {share:.0%} of the steps was finished, which saved {saved:.0%} of all steps."
        )


def _averages(table: Table, analysis: Analysis) -> Iterator[str]:
    for column in table.columns:
        if column.is_average:
            averaged = analysis.options.averages[column.title]
            yield f"{column.title}: mean of {', '.join(averaged)} per seed."


def _items(table: Table) -> Iterator[str]:
    counts = [
        f"{column.title} {texts[0]}"
        for index, column in enumerate(table.columns)
        if not column.is_average and len(texts := _item_counts(table.cells(index))) == 1
    ]
    if counts:
        yield f"Items scored: {', '.join(counts)}."


def _item_counts(scored: Iterable[Cell | TaskScores]) -> list[str]:
    """Return the distinct numbers of items: "1379", or "1370 (9 dropped as leaks)"."""
    counts = dict.fromkeys((each.num_items, each.num_dropped) for each in scored)
    return [f"{items} ({dropped} dropped as leaks)" if dropped else f"{items}" for items, dropped in counts]


def _not_comparable(table: Table, analysis: Analysis) -> Iterator[str]:
    """Name the test sets, also of averages, whose rows differ in their number of items or their metrics."""
    for measurement in _shown(analysis):
        of_rows = (measurement.scores(analysis.rows[row.key]) for row in table.rows)
        texts = _item_counts(scores[0] for scores in of_rows if scores)
        if len(texts) > 1:
            yield f"{measurement.label}: rows are not comparable: scored on {' and '.join(texts)} items."
        scores = measurement.scores(analysis.result.runs)
        metrics = {each.main_score: each.title or each.main_score for each in scores}
        if len(metrics) > 1:
            titles = "; ".join(dict.fromkeys(metrics.values()))
            yield f"{measurement.label}: rows are not comparable: their metrics differ ({titles})."


def _shown(analysis: Analysis) -> Iterable[Measurement]:
    """Return the test sets of all columns, each once."""
    return dict.fromkeys(one for column in analysis.columns for one in column.measurements)


def _undefined(analysis: Analysis) -> Iterator[str]:
    """Name the scores that are NaN, since a mean over the other seeds would hide them."""
    seeds: dict[str, list[str]] = {}
    for key, runs in analysis.rows.items():
        for measurement in _shown(analysis):
            for run in runs:
                if any(math.isnan(each.scores[each.main_score]) for each in measurement.scores((run,))):
                    seeds.setdefault(f"{key.label} on {measurement.label}", []).append(str(run.seed))
    if seeds:
        named = (f"{cell} (seed {', '.join(of_cell)})" for cell, of_cell in seeds.items())
        yield f"nan: undefined score, so no mean over the seeds: {'; '.join(named)}."


def _not_found(analysis: Analysis) -> Iterator[str]:
    """Name the table's test sets that were not scored, and the averages left out for this reason."""
    options = analysis.options
    scored = {name for one in analysis.measurements for name in one.names}
    named = (name for name in options.columns or analysis.result.tasks if name not in options.averages)
    averaged = [task for over in options.averages.values() for task in over]
    missing = [task for task in dict.fromkeys([*named, *averaged]) if task not in scored]
    if missing:
        yield f"Not found, so not scored: {', '.join(missing)}."
    for name, over in options.averages.items():
        if set(missing) & set(over):
            yield f"No column '{name}': some of its test sets were not found."


def _marks(table: Table) -> Iterator[str]:
    ceilings = dict.fromkeys(row.variant for row in table.rows if row.is_ceiling)
    if ceilings:
        yield f"{CEILING_MARK} Ceiling, compared with no other row: {', '.join(ceilings)}."
    if any(cell is None for row in table.rows for cell in row.cells):
        yield NOT_SCORED
