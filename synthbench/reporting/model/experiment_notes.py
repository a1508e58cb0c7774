"""Notes on the experiment and its data, shared by all parts of a report."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from synthbench.base.grouping import grouped
from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.aggregate import row_of
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.world_warning import world_warning
from synthbench.reporting.results import NORMALISED, ExperimentResult, RunResult

FLAT = 0.01
"""Scores with a lower standard deviation count as nearly constant."""
MAX_GROUPS = 4
"""With more groups of rows, their overlaps are merged into one range, to keep the note short."""
Counts = tuple[tuple[str, int, int, int], ...]
"""Per test set: name, items that share a sentence with training data (fewest and most), all items."""


def notes_without_scores(analysis: Analysis) -> tuple[str, ...]:
    """Return the notes of a report without scores, the caption first; () for one with scores."""
    result = analysis.result
    if result.has_scores:
        return ()
    caption = analysis.options.caption or result.description
    own = (*analysis.options.notes, *result.notes)
    beware = (*world_warning(result), *incomplete(result), *overridden(result))
    notes = (caption, *beware, *methods(result), *asked_llms(result), *own, *unfinished(result))
    return tuple(note for note in notes if note.strip())


def overridden(result: ExperimentResult) -> Iterator[str]:
    """Yield a note that names the overrides, if there are any."""
    if result.overrides:
        yield f"Run with overrides: {' '.join(result.overrides)}."


def methods(result: ExperimentResult) -> Iterator[str]:
    """Yield the methods' notes on their data, and a warning for nearly constant labels."""
    datasets = [dataset for run in result.runs for dataset in run.datasets]
    yield from dict.fromkeys(note for dataset in datasets for note in dataset.notes)
    yield from flat_labels(result)


def asked_llms(result: ExperimentResult) -> Iterator[str]:
    """Yield a note that names each row's LLMs, if there are several and the rows' names do not show them."""
    asked: dict[RowKey, dict[str, None]] = {}
    for run in result.runs:
        names = [name for dataset in run.datasets for name in dataset.llm.split(" and ") if name]
        asked.setdefault(row_of(run), {}).update(dict.fromkeys(names))
    told = [{row.variant, *(value for _, value in row.axes)} for row in asked]
    several = len({name for names in asked.values() for name in names}) > 1
    if not several or all({*llms} <= own for llms, own in zip(asked.values(), told, strict=True)):
        return
    groups = grouped((" and ".join(llms), row) for row, llms in asked.items() if llms)
    yield f"LLMs asked: {'; '.join(f'{name}: {row_names(rows, asked)}' for name, rows in groups.items())}."


def row_names(rows: Sequence[RowKey], of_all: Iterable[RowKey]) -> str:
    """Join the rows' names; a variant is named once if all its rows are listed."""
    apart = {row.variant for row in of_all if row not in rows}
    return ", ".join(dict.fromkeys(row.title if row.variant in apart else row.variant for row in rows))


def flat_labels(result: ExperimentResult) -> Iterator[str]:
    """Yield a warning for each part of generated data with nearly constant scores."""
    flat: dict[str, dict[str, None]] = {}
    for run in result.runs:
        for data in run.datasets:
            if (
                data.method
                and data.trained_on
                and data.num_records > 1
                and data.figures.get("score_sd", 1.0) < FLAT
            ):
                flat.setdefault(data.part, {})[run.variant] = None
    for part, variants in flat.items():
        yield (
            f"Scores of {part} are nearly all equal (standard deviation below {FLAT:g}) and hardly tell"
            f" pairs apart: {', '.join(variants)}."
        )


def unfinished(result: ExperimentResult) -> Iterator[str]:
    """Yield a note for each failure, and for each run that waits for an LLM's batch."""
    yield from (f"Failed: {failure}" for failure in result.failures)
    yield from (f"Pending: {what}" for what in result.pending)


def incomplete(result: ExperimentResult) -> Iterator[str]:
    """Yield one short line if results are missing; it counts what failed and what is pending."""
    counts = {"failed": len(result.failures), "pending": len(result.pending)}
    texts = [f"{count} {what}" for what, count in counts.items() if count]
    if texts:
        yield f"Incomplete ({', '.join(texts)}): the notes name what is missing."


def overlap_notes(result: ExperimentResult) -> Iterator[str]:
    """Yield one sentence on the test items that share a sentence with training data, if any."""
    rows = _rows(result)
    groups = grouped((_counts(runs), name) for name, runs in rows.items())
    if not any(groups):
        return
    if len(groups) > MAX_GROUPS or _agree(rows.values()):
        trained = [run for run in result.runs if run.overlaps]
        groups = {_counts(trained): []}
    items = " and ".join(dict.fromkeys(each.items for run in result.runs for each in run.overlaps))
    listed = "; ".join(
        _text(counts) + (f" ({', '.join(names)})" if len(groups) > 1 else "")
        for counts, names in groups.items()
    )
    shared = "that share a sentence with the training data, ignoring case and punctuation"
    yield f"Test {items} {shared}: {listed}."


def _rows(result: ExperimentResult) -> Mapping[str, Sequence[RunResult]]:
    """Group the runs with overlaps by variant, or by row if rows of the variant have different overlaps."""
    variants = grouped((run.variant, run) for run in result.runs if run.overlaps)
    found: dict[str, list[RunResult]] = {}
    for variant, runs in variants.items():
        rows = grouped((" ".join((variant, *run.axes.values())), run) for run in runs)
        is_alike = len({_counts(row) for row in rows.values()}) == 1
        found |= {variant: runs} if is_alike else rows
    return found


def _counts(runs: Sequence[RunResult]) -> Counts:
    """Return how many items share sentences, per test set, without sets that share none."""
    sharing = grouped(
        ((each.task, each.num_items), each.sharing[NORMALISED]) for run in runs for each in run.overlaps
    )
    return tuple((task, min(n), max(n), size) for (task, size), n in sharing.items() if max(n))


def _agree(rows: Iterable[Sequence[RunResult]]) -> bool:
    """Return whether rows have the same overlap with each test set that they have in common."""
    spans: dict[str, set[tuple[int, int]]] = {}
    for runs in rows:
        of_row = grouped((each.task, each.sharing[NORMALISED]) for run in runs for each in run.overlaps)
        for task, numbers in of_row.items():
            spans.setdefault(task, set()).add((min(numbers), max(numbers)))
    return all(len(each) == 1 for each in spans.values())


def _text(counts: Counts) -> str:
    numbers = (
        f"{task} {fewest:,} of {size:,}" if fewest == most else f"{task} {fewest:,} to {most:,} of {size:,}"
        for task, fewest, most, size in counts
    )
    return ", ".join(numbers) or "none"
