"""Compare two results side by side: their rows, as if of one result, and the settings that differ."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.item_errors import PairOnTask
from synthbench.reporting.model.table import RowKey
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.statistics.item_noise import ItemNoise

FIRST, SECOND = "A", "B"
Key = tuple[str, tuple[tuple[str, str], ...]]


def comparison_of(
    first: ExperimentResult,
    second: ExperimentResult,
    item_noise: Sequence[ItemNoise] = (),
    other_items: frozenset[PairOnTask] = frozenset(),
) -> Analysis:
    """Return an analysis whose comparisons are the rows of `second` minus the same rows of `first`.

    Rows are the same if variant and grid coordinates are equal. They are called "NAME (A)" and "NAME (B)",
    also in `item_noise` and `other_items`.
    """
    both = _keys(first) & _keys(second)
    variants = dict.fromkeys(run.variant for run in first.runs if _key(run) in both)
    runs = [
        run.model_copy(update={"variant": called(run.variant, label)})
        for result, label in ((first, FIRST), (second, SECOND))
        for run in result.runs
        if _key(run) in both
    ]
    compared = {called(name, FIRST): [called(name, SECOND)] for name in variants}
    kept = ("across", "averages", "decimals", "primary")
    table = {key: value for key, value in first.table.items() if key in kept} | {"compare_to": compared}
    tasks = tuple(dict.fromkeys((*first.tasks, *second.tasks)))
    changes = {"runs": tuple(runs), "table": table, "tasks": tasks, "published": ()}
    return Analysis(first.model_copy(update={**changes, "item_noise": tuple(item_noise)}), other_items)


def rows_of_one(first: ExperimentResult, second: ExperimentResult) -> tuple[list[str], list[str]]:
    """Return the titles of the rows in the first result alone, and of the rows in the second alone."""
    ours, theirs = _keys(first), _keys(second)
    return [_title(key) for key in sorted(ours - theirs)], [_title(key) for key in sorted(theirs - ours)]


def differing_settings(first: ExperimentResult, second: ExperimentResult) -> Iterator[str]:
    """Yield each setting that differs in a row of both results: "train.seed: 1, then 2 (dino)"."""
    ours, theirs = _settings(first), _settings(second)
    both = [key for key in ours if key in theirs]
    found: dict[str, list[str]] = {}
    for key in both:
        for name in sorted(ours[key].keys() | theirs[key].keys()):
            values = [side[key].get(name, "not set") for side in (ours, theirs)]
            if values[0] != values[1]:
                found.setdefault(f"{name}: {values[0]}, then {values[1]}", []).append(_title(key))
    for text, rows in found.items():
        yield f"{text} ({'all rows' if len(rows) == len(both) else ', '.join(rows)})"


def _settings(result: ExperimentResult) -> Mapping[Key, Mapping[str, Any]]:
    """Return each row's settings, evaluation and seeds."""
    found: dict[Key, dict[str, Any]] = {}
    for run in result.runs:
        settings = found.setdefault(_key(run), {})
        settings |= {name: value for name, value in run.parameters.items() if name != "seed"}
        for scores in run.scores:
            test = {"settings": scores.settings, "split": scores.split, "drawn": scores.drawn}
            settings |= {f"test set {scores.task}: {name}": value for name, value in test.items()}
    seeds = {key: sorted(run.seed for run in result.runs if _key(run) == key) for key in found}
    return {key: {**settings, "seeds": seeds[key]} for key, settings in found.items()}


def called(variant: str, label: str) -> str:
    """Return the name of a row of result A or B: "dino (A)"."""
    return f"{variant} ({label})"


def _key(run: RunResult) -> Key:
    return run.variant, tuple(run.axes.items())


def _keys(result: ExperimentResult) -> set[Key]:
    return {_key(run) for run in result.runs}


def _title(key: Key) -> str:
    return RowKey(*key).title
