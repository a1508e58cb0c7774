"""The settings, scores and figures of a result for MLflow, in names and lengths that it accepts."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.base.escaping import markdown_text
from synthbench.base.listing import shortened
from synthbench.base.patterns import linear_pattern
from synthbench.reporting.model import aggregate
from synthbench.reporting.model.aggregate import Measurement
from synthbench.reporting.results import NORMALISED, ExperimentResult, RunResult
from synthbench.statistics.differences import SeedScores

NAME_LENGTH = 250
VALUE_LENGTH = 6000
NOTE_LENGTH = 8000


@dataclass(frozen=True)
class MetricPoint:
    """One value of a metric; `model`: id of the recorded model that also gets this value, "" for none."""

    name: str
    value: float
    step: int = 0
    model: str = ""


def legal_name(*parts: str) -> str:
    """Join the parts to a name that MLflow accepts on every system, separated by slashes.

    A changed part ends with a hash of the original, and a shortened name with a hash of the whole. So
    different names stay different.
    """
    name = "/".join(_legal_part(piece) for part in parts for piece in part.split("/"))
    if len(name) <= NAME_LENGTH:
        return name
    return f"{name[: NAME_LENGTH - 9]}-{_short_hash(name, 8)}"


def row_name(run: RunResult) -> str:
    """Return the name of the run's row, such as "augsbert-bm25 · static"."""
    return shortened(" · ".join([run.variant, *run.axes.values()]), NAME_LENGTH)


def run_name(run: RunResult) -> str:
    """Return the run's name, such as "augsbert-bm25 · static · seed 0"."""
    seed = f" · seed {run.seed}"
    return f"{shortened(row_name(run), NAME_LENGTH - len(seed))}{seed}"


def experiment_run_name(result: ExperimentResult) -> str:
    """Return the name of the experiment with its overrides, such as "augsbert_stsb --seeds 0"."""
    return shortened(result.title, NAME_LENGTH)


def run_digest(run: RunResult) -> str:
    """Return a hash of a run, without its computing time."""
    return _digest(run.model_dump(mode="json", exclude={"seconds"}))


def experiment_digest(result: ExperimentResult) -> str:
    """Return a hash of a result, without computing time, environment and the file's path."""
    content = result.model_dump(
        mode="json",
        exclude={
            "environment": True,
            "file": True,
            "is_data_folder_given": True,
            "runs": {"__all__": {"seconds"}},
        },
    )
    return _digest(content)


def content_digest(result: ExperimentResult) -> str:
    """Return a hash of a whole result, including computing time and environment."""
    return _digest(result.model_dump(mode="json"))


def score_points(samples: Mapping[str, SeedScores], model: str = "") -> list[MetricPoint]:
    """Return each column's mean over seeds as `score/<column>`.

    With several seeds, also its standard deviation as `sd/<column>`. `model`: id of the recorded model.
    """
    points = [
        MetricPoint(legal_name("score", name), sample.mean, model=model) for name, sample in samples.items()
    ]
    spreads = {name: sample.standard_deviation for name, sample in samples.items()}
    points += [
        MetricPoint(legal_name("sd", name), value) for name, value in spreads.items() if value is not None
    ]
    return points


def run_points(run: RunResult) -> list[MetricPoint]:
    """Return all scores as `<task>/<score>`, training curves, dev score, steps and seconds.

    Scores are `<task>/<evaluator>/<score>` if several evaluators score a task. `data/<part>/<figure>` are
    key figures of the training data. `overlap/<task>` is the share of test items with a sentence that,
    normalised, occurs in the training data.
    """
    return [*_scores(run), *_training(run), *_data(run)]


def live_points(run: RunResult) -> list[MetricPoint]:
    """Return an unfinished run's scores and curves so far.

    The names of a task's scores are final once all its evaluators have scored it.
    """
    num_evaluators = Counter(one.task for one in run.scores)
    named = (
        (one.task if num_evaluators[one.task] == 1 else f"{one.task} ({one.evaluator})", one)
        for one in run.scores
    )
    main = [MetricPoint(legal_name("score", name), one.scores[one.main_score]) for name, one in named]
    return [*main, *_scores(run), *_curve(run)]


def legal_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return parameters or tags with names and lengths that MLflow accepts."""
    return {legal_name(key): shortened(text, VALUE_LENGTH) for key, text in texts.items()}


def experiment_tags(result: ExperimentResult, table: str) -> dict[str, str]:
    """Return a result's tags: environment, registration, and a note (description, and `table` if short)."""
    tags = {
        legal_name(f"environment.{key}"): shortened(text, 2000) for key, text in result.environment.items()
    }
    if result.registration is not None:
        registered = {"hash": result.registration.hash, "time": result.registration.time}
        tags |= {f"registration.{key}": text for key, text in registered.items()}
    description = markdown_text(result.description)
    note = f"{description}\n\n{table}".strip()
    tags["mlflow.note.content"] = note if len(note) <= NOTE_LENGTH else shortened(description, NOTE_LENGTH)
    return tags


def experiment_points(result: ExperimentResult) -> Iterator[MetricPoint]:
    """Yield the audits' shares in percent, as `<row>/audit.<name>/<intended>/<judged>`.

    A share is relative to all items with the same intended label.
    """
    for each in result.audits:
        cells = each.audit.confusion.cells if each.audit else {}
        for row in each.rows:
            for judged, columns in cells.items():
                for intended, share in columns.items():
                    name = legal_name(row, f"audit.{each.name}", intended, judged)
                    yield MetricPoint(name, share.percent)


def _scores(run: RunResult) -> Iterator[MetricPoint]:
    tasks = [scores.task for scores in run.scores]
    for scores in run.scores:
        evaluator = [scores.evaluator] if tasks.count(scores.task) > 1 else []
        for name, value in scores.scores.items():
            yield MetricPoint(legal_name(scores.task, *evaluator, name), value)


def _data(run: RunResult) -> Iterator[MetricPoint]:
    for dataset in run.datasets:
        for name, value in dataset.figures.items():
            yield MetricPoint(legal_name("data", dataset.part, name), value)
    for overlap in run.overlaps:
        if overlap.num_items:
            share = overlap.sharing[NORMALISED] / overlap.num_items
            yield MetricPoint(legal_name("overlap", overlap.task), share)


def _curve(run: RunResult) -> Iterator[MetricPoint]:
    for step, name, value in run.history:
        yield MetricPoint(legal_name("training", name), value, step)


def _training(run: RunResult) -> Iterator[MetricPoint]:
    yield from _curve(run)
    if run.dev_score is not None:
        yield MetricPoint("dev_score", run.dev_score)
    yield MetricPoint("num_steps", run.num_steps)
    yield MetricPoint("seconds", run.seconds)


_NOT_IN_KEYS = linear_pattern(r"[^\w.\- ]")


def _legal_part(part: str) -> str:
    legal = _NOT_IN_KEYS.sub("_", part)
    if legal.strip(".") == "":
        legal = f"_{legal}"
    return legal if legal == part else f"{legal}-{_short_hash(part, 6)}"


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _short_hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


Columns = Mapping[str, tuple[Measurement, ...]]
"""The columns of a result, averages last: name -> the measurement, or those averaged."""


def samples_of(columns: Columns, runs: Sequence[RunResult]) -> dict[str, SeedScores]:
    """Return each column's main scores of these runs, one per seed, without empty columns."""
    found = {
        name: over[0].sample(runs) if len(over) == 1 else aggregate.average(runs, over)
        for name, over in columns.items()
    }
    return {name: sample for name, sample in found.items() if sample is not None}


def columns_of(result: ExperimentResult) -> Columns:
    """Return a result's columns, one per test set and evaluator, and the averages of its table.

    Averages over several values of an axis, or with a missing test set, are left out.
    """
    measured = aggregate.measurements(result)
    over: dict[str, tuple[Measurement, ...]] = {one.label: (one,) for one in measured}
    for name, tasks in result.table.get("averages", {}).items():
        named = tuple(one for one in measured if not one.names.isdisjoint(tasks))
        if len(named) == len(tasks) and name not in over:
            over[name] = named
    return over


TRAINER, BASE = "train.trainer", "train.base.model"
NO_VALUE = "-"
CHART_VALUE_LENGTH = 100
_OWN_NAMES = frozenset(("variant", "seed", "method"))


@dataclass(frozen=True)
class Settings:
    """The settings of a result that MLflow records.

    `names`: trainer, base, and settings that differ between runs, dotted path -> shortest unique name.
    `shared`: all others, which have the same value wherever they occur, dotted path -> value. `axes`: axis of
    the grid -> its name in MLflow. `varying`: names of the settings that differ between runs.
    """

    names: Mapping[str, str]
    shared: Mapping[str, str]
    axes: Mapping[str, str]
    varying: tuple[str, ...]

    def coordinates(self, run: RunResult) -> dict[str, str]:
        """Return the variant and the axes' values ("-" if the run has none), which name the row."""
        axes = {name: run.axes.get(axis, NO_VALUE) for axis, name in self.axes.items()}
        return {"variant": run.variant, **axes}

    def tags(self, run: RunResult) -> dict[str, str]:
        """Return the tags to search runs by; an axis takes precedence over a setting of the same name."""
        known = {"trainer": run.parameters.get(TRAINER), "base": run.parameters.get(BASE)}
        texts = {name: value_text(value) for name, value in known.items() if value is not None}
        return {**texts, **methods(run), **self.coordinates(run)}

    def row(self, run: RunResult) -> dict[str, str]:
        """Return the coordinates and settings that all runs of a row share."""
        values = {
            name: value_text(run.parameters[path])
            for path, name in self.names.items()
            if path in run.parameters
        }
        return {**self.coordinates(run), **methods(run), **values}

    def run(self, run: RunResult) -> dict[str, str]:
        """Return the settings of a run's row, its seed, and the settings chosen on dev."""
        chosen = {f"chosen.{short_path(path)}": value_text(value) for path, value in run.chosen.items()}
        return {**self.row(run), "seed": str(run.seed), **chosen}


def settings_of(result: ExperimentResult) -> Settings:
    """Return the settings of a result that are recorded, with their names."""
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
    """Return the methods that made the run's training data, as one setting; {} for gold data."""
    found = dict.fromkeys(dataset.method for dataset in run.datasets if dataset.method)
    return {"method": " + ".join(found)} if found else {}


def short_path(path: str) -> str:
    """Return at most the last two parts of a dotted path: "learning_rate", "sampler.k".

    The first part is left out unless it is the only one.
    """
    return ".".join(path.split(".")[1:][-2:]) or path


def value_text(value: object) -> str:
    """Return a value as text that fits into a chart; truncated text ends with a hash."""
    text = _text(value)
    if len(text) <= CHART_VALUE_LENGTH:
        return text
    return f"{text[: CHART_VALUE_LENGTH - 9]}… #{_short_hash(text, 6)}"


def _names(recorded: Iterable[str], known: Iterable[str], taken: set[str]) -> dict[str, str]:
    """Return path -> its shortest end that is unique in `known` and not in `taken`, else the whole path."""
    ends = Counter(end for path in known for end in _ends(path))
    return {
        path: next((end for end in _ends(path) if ends[end] == 1 and end not in taken), path)
        for path in recorded
    }


def _ends(path: str) -> list[str]:
    """Return the ends of a dotted path, shortest first."""
    parts = path.split(".")
    shortest = short_path(path).count(".") + 1
    return [".".join(parts[-length:]) for length in range(shortest, len(parts) + 1)]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
