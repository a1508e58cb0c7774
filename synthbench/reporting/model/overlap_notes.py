"""What a reader must know of test sets whose sentences stand in the training data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from synthbench.reporting.results import NORMALISED, ExperimentResult, RunResult

MAX_GROUPS = 4
"""More rows than these that differ are not told apart: a note is no table."""
Counts = tuple[tuple[str, int, int, int], ...]
"""Test set, fewest and most items over the seeds of which a sentence stands in the data, items."""


def overlap_notes(result: ExperimentResult) -> Iterator[str]:
    """Yield one sentence on the test items that share a sentence with the training data, if any does."""
    rows = _rows(result)
    groups: dict[Counts, list[str]] = {}
    for name, runs in rows.items():
        groups.setdefault(_counts(runs), []).append(name)
    if not any(groups):
        return
    if len(groups) > MAX_GROUPS or _agree(rows.values()):
        trained = [run for run in result.runs if run.overlaps]
        groups = {_counts(trained): []}
    items = " and ".join(dict.fromkeys(each.items for run in result.runs for each in run.overlaps))
    told = "; ".join(
        _told(counts) + (f" ({', '.join(names)})" if len(groups) > 1 else "")
        for counts, names in groups.items()
    )
    yield f"Test {items} that share a sentence with the training data, case and punctuation apart: {told}."


def _rows(result: ExperimentResult) -> Mapping[str, Sequence[RunResult]]:
    """Return the runs with training data of each variant; of each row where its rows have other overlaps."""
    variants: dict[str, list[RunResult]] = {}
    for run in result.runs:
        if run.overlaps:
            variants.setdefault(run.variant, []).append(run)
    found: dict[str, list[RunResult]] = {}
    for variant, runs in variants.items():
        rows: dict[str, list[RunResult]] = {}
        for run in runs:
            rows.setdefault(" ".join((variant, *run.axes.values())), []).append(run)
        is_alike = len({_counts(row) for row in rows.values()}) == 1
        found |= {variant: runs} if is_alike else rows
    return found


def _counts(runs: Sequence[RunResult]) -> Counts:
    """Return the counts of the test sets that share anything, in the order of the runs."""
    sharing: dict[tuple[str, int], list[int]] = {}
    for run in runs:
        for each in run.overlaps:
            sharing.setdefault((each.task, each.num_items), []).append(each.sharing[NORMALISED])
    return tuple((task, min(n), max(n), size) for (task, size), n in sharing.items() if max(n))


def _agree(rows: Iterable[Sequence[RunResult]]) -> bool:
    """Tell whether rows differ in the test sets that they were scored on, but share the same with each."""
    spans: dict[str, set[tuple[int, int]]] = {}
    for runs in rows:
        of_row: dict[str, list[int]] = {}
        for run in runs:
            for each in run.overlaps:
                of_row.setdefault(each.task, []).append(each.sharing[NORMALISED])
        for task, numbers in of_row.items():
            spans.setdefault(task, set()).add((min(numbers), max(numbers)))
    return all(len(each) == 1 for each in spans.values())


def _told(counts: Counts) -> str:
    numbers = (
        f"{task} {fewest:,} of {size:,}" if fewest == most else f"{task} {fewest:,} to {most:,} of {size:,}"
        for task, fewest, most, size in counts
    )
    return ", ".join(numbers) or "none"
