"""Which settings are recorded of a run, by which names: what runs differ in, and what they are known by."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from synthbench.reporting.results import ExperimentResult, RunResult

TRAINER, BASE = "train.trainer", "train.base.model"
NOWHERE = "-"
VALUE_LENGTH = 100
_OWN_NAMES = frozenset(("variant", "seed", "method"))


@dataclass(frozen=True)
class Settings:
    """What is recorded of a result's settings.

    `names` are those in which runs differ, and those that a run is known by: dotted path -> the shortest name
    that no other has. `shared` are all others, which have one value wherever they are: dotted path -> value.
    `axes` are the grid's: axis -> its name. `varying` are the names of those in which runs differ.
    """

    names: Mapping[str, str]
    shared: Mapping[str, str]
    axes: Mapping[str, str]
    varying: tuple[str, ...]

    def place(self, run: RunResult) -> dict[str, str]:
        """Return the variant and the axes' values: what a row is called in the tables."""
        axes = {name: run.axes.get(axis, NOWHERE) for axis, name in self.axes.items()}
        return {"variant": run.variant, **axes}

    def tags(self, run: RunResult) -> dict[str, str]:
        """Return what a run is searched by; an axis of the grid goes before a setting of its name."""
        known = {"trainer": run.parameters.get(TRAINER), "base": run.parameters.get(BASE)}
        texts = {name: value_text(value) for name, value in known.items() if value is not None}
        return {**texts, **methods(run), **self.place(run)}

    def row(self, run: RunResult) -> dict[str, str]:
        """Return what all runs of the run's row have in common: its place and its settings."""
        values = {
            name: value_text(run.parameters[path])
            for path, name in self.names.items()
            if path in run.parameters
        }
        return {**self.place(run), **methods(run), **values}

    def run(self, run: RunResult) -> dict[str, str]:
        """Return what is recorded of a run: its row's, its seed, and what was chosen on dev."""
        chosen = {f"chosen.{short_path(path)}": value_text(value) for path, value in run.chosen.items()}
        return {**self.row(run), "seed": str(run.seed), **chosen}


def settings_of(result: ExperimentResult) -> Settings:
    """Return which settings of a result are recorded, and how they are called."""
    values: dict[str, set[str]] = {}
    for run in result.runs:
        for path, value in run.parameters.items():
            values.setdefault(path, set()).add(_text(value))
    axes = {axis: f"axis.{axis}" if axis in _OWN_NAMES else axis for run in result.runs for axis in run.axes}
    recorded = [path for path, found in values.items() if len(found) > 1 or path in (TRAINER, BASE)]
    shared = {path: next(iter(found)) for path, found in values.items() if path not in recorded}
    names = _names(recorded, values, {*_OWN_NAMES, *axes.values()})
    return Settings(names, shared, axes, tuple(names[path] for path in recorded if len(values[path]) > 1))


def methods(run: RunResult) -> dict[str, str]:
    """Return the methods that made the run's training data, as one setting; none if they are gold."""
    found = dict.fromkeys(dataset.method for dataset in run.datasets if dataset.method)
    return {"method": " + ".join(found)} if found else {}


def short_path(path: str) -> str:
    """Return the end of a dotted path that says what is set: "learning_rate", "sampler.k"."""
    return ".".join(path.split(".")[1:][-2:]) or path


def value_text(value: object) -> str:
    """Return a value as text that fits into a chart; what is cut off is told by a hash."""
    text = _text(value)
    if len(text) <= VALUE_LENGTH:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{text[: VALUE_LENGTH - 9]}… #{digest}"


def _names(recorded: Iterable[str], known: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Name each path by its end, by more of it where two paths end alike or the name is taken."""
    ends = Counter(end for path in known for end in _ends(path))
    return {
        path: next((end for end in _ends(path) if ends[end] == 1 and end not in taken), path)
        for path in recorded
    }


def _ends(path: str) -> list[str]:
    """Return the ends of a path that may name it, the shortest first."""
    parts = path.split(".")
    shortest = short_path(path).count(".") + 1
    return [".".join(parts[-length:]) for length in range(shortest, len(parts) + 1)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
