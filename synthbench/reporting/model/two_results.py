"""Compare two results: the differences between their common rows, and the settings that differ."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.aggregate import row_of, rows
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.item_errors import PairInColumn
from synthbench.reporting.results import ExperimentResult
from synthbench.statistics.item_noise import ItemNoise

FIRST, SECOND = "A", "B"


def comparison_of(
    first: ExperimentResult,
    second: ExperimentResult,
    item_noise: Sequence[ItemNoise] = (),
    other_items: frozenset[PairInColumn] = frozenset(),
) -> Analysis:
    """Return an analysis whose comparisons are the rows of `second` minus the same rows of `first`.

    Rows are the same if variant and grid coordinates are equal. In the analysis, in `item_noise` and in
    `other_items` they are called "NAME (A)" and "NAME (B)".
    """
    both = rows(first).keys() & rows(second).keys()
    variants = dict.fromkeys(run.variant for run in first.runs if row_of(run) in both)
    runs = [
        run.model_copy(update={"variant": called(run.variant, label)})
        for result, label in ((first, FIRST), (second, SECOND))
        for run in result.runs
        if row_of(run) in both
    ]
    compared = {called(name, FIRST): [called(name, SECOND)] for name in variants}
    kept = ("across", "averages", "decimals", "primary")
    table = {key: value for key, value in first.table.items() if key in kept} | {"compare_to": compared}
    tasks = tuple(dict.fromkeys((*first.tasks, *second.tasks)))
    changes = {"runs": tuple(runs), "table": table, "tasks": tasks, "published": ()}
    return Analysis(first.model_copy(update={**changes, "item_noise": tuple(item_noise)}), other_items)


def rows_of_one(first: ExperimentResult, second: ExperimentResult) -> tuple[list[str], list[str]]:
    """Return the titles of the rows that only the first result has, then of those only in the second."""
    ours, theirs = rows(first).keys(), rows(second).keys()
    return [row.title for row in sorted(ours - theirs)], [row.title for row in sorted(theirs - ours)]


def differing_settings(first: ExperimentResult, second: ExperimentResult) -> Iterator[str]:
    """Yield each setting in which a row differs between the results: "train.seed: 1, then 2 (dino)"."""
    ours, theirs = _settings(first), _settings(second)
    both = [key for key in ours if key in theirs]
    found: dict[str, list[str]] = {}
    for key in both:
        for name in sorted(ours[key].keys() | theirs[key].keys()):
            values = [side[key].get(name, "not set") for side in (ours, theirs)]
            if values[0] != values[1]:
                found.setdefault(f"{name}: {values[0]}, then {values[1]}", []).append(key.title)
    for text, titles in found.items():
        yield f"{text} ({'all rows' if len(titles) == len(both) else ', '.join(titles)})"


def _settings(result: ExperimentResult) -> Mapping[RowKey, Mapping[str, Any]]:
    """Return the settings, test set settings and seeds of each row, by dotted name."""
    found: dict[RowKey, dict[str, Any]] = {}
    for key, runs in rows(result).items():
        settings = found.setdefault(key, {"seeds": sorted(run.seed for run in runs)})
        for run in runs:
            settings |= {name: value for name, value in run.parameters.items() if name != "seed"}
            for scores in run.scores:
                test = {"settings": scores.settings, "split": scores.split, "drawn": scores.drawn}
                settings |= {f"test set {scores.task}: {name}": value for name, value in test.items()}
    return found


def called(variant: str, label: str) -> str:
    """Return the name of a row of result A or B: "dino (A)"."""
    return f"{variant} ({label})"
