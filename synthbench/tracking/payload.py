"""What is tracked of a result, in the names and sizes that MLflow accepts."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.escaping import markdown_text
from synthbench.reporting.model import aggregate
from synthbench.reporting.model.aggregate import Measurement
from synthbench.reporting.results import NORMALISED, ExperimentResult, RunResult
from synthbench.reporting.statistics.differences import Sample

NAME_LENGTH = 250
VALUE_LENGTH = 6000
NOTE_LENGTH = 8000


@dataclass(frozen=True)
class Point:
    """One value of a metric, of the model with that id as well if there is one."""

    name: str
    value: float
    step: int = 0
    model: str = ""


def legal_name(*parts: str) -> str:
    """Return the parts, and what slashes part in them, as a name that MLflow takes on every system.

    A part that had to be changed gets a hash of the original, so that different names stay different.
    """
    name = "/".join(_legal_part(piece) for part in parts for piece in part.split("/"))
    if len(name) <= NAME_LENGTH:
        return name
    return f"{name[: NAME_LENGTH - 9]}-{_short_hash(name, 8)}"


def row_name(run: RunResult) -> str:
    """Return "augsbert-bm25 · static"."""
    return _cut(" · ".join([run.variant, *run.axes.values()]), NAME_LENGTH)


def run_name(run: RunResult) -> str:
    """Return "augsbert-bm25 · static · seed 0"."""
    seed = f" · seed {run.seed}"
    return f"{_cut(row_name(run), NAME_LENGTH - len(seed))}{seed}"


def experiment_run_name(result: ExperimentResult) -> str:
    """Return "augsbert_stsb", with overrides "augsbert_stsb --seeds 0"."""
    return _cut(result.title, NAME_LENGTH)


def run_digest(run: RunResult) -> str:
    """Return a hash of all that is tracked of a run; computing time does not count."""
    return _digest(run.model_dump(mode="json", exclude={"seconds"}))


def experiment_digest(result: ExperimentResult) -> str:
    """Return a hash of all that is tracked of a result; how and when it was computed does not count."""
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
    """Return a hash of all of a result, how and when it was computed included."""
    return _digest(result.model_dump(mode="json"))


def score_points(samples: Mapping[str, Sample], model: str = "") -> list[Point]:
    """Return each column's mean over the seeds as `score/<column>`, and `sd/<column>` of several seeds."""
    points = [Point(legal_name("score", name), sample.mean, model=model) for name, sample in samples.items()]
    spreads = {name: sample.standard_deviation for name, sample in samples.items()}
    points += [Point(legal_name("sd", name), value) for name, value in spreads.items() if value is not None]
    return points


def run_points(run: RunResult) -> list[Point]:
    """Return all scores as `<task>/<score>`, the training curves, the dev score, steps and seconds.

    `data/<part>/<figure>` are the training data's, `overlap/<task>` the share of the test set's
    items of which a sentence, normalised, stands in them.
    """
    return [*_scores(run), *_training(run), *_data(run)]


def legal_texts(texts: Mapping[str, str], length: int = VALUE_LENGTH) -> dict[str, str]:
    """Return parameters or tags with the names and the lengths that MLflow takes."""
    return {legal_name(key): _cut(text, length) for key, text in texts.items()}


def experiment_points(result: ExperimentResult) -> list[Point]:
    """Return the shares of audits, in percent, as `<row>/audit.<name>/<intended>/<judged>`."""
    return list(_audit_points(result))


def experiment_tags(result: ExperimentResult, table: str) -> dict[str, str]:
    """Return the environment and MLflow's note: the description and, where it fits, the Markdown table."""
    tags = {legal_name(f"environment.{key}"): _cut(text, 2000) for key, text in result.environment.items()}
    description = markdown_text(result.description)
    note = f"{description}\n\n{table}".strip()
    tags["mlflow.note.content"] = note if len(note) <= NOTE_LENGTH else _cut(description, NOTE_LENGTH)
    return tags


def _audit_points(result: ExperimentResult) -> Iterator[Point]:
    for each in result.audits:
        cells = each.audit.confusion.cells if each.audit else {}
        for row in each.rows:
            for judged, columns in cells.items():
                for intended, share in columns.items():
                    name = legal_name(row, f"audit.{each.name}", intended, judged)
                    yield Point(name, share.percent)


def _scores(run: RunResult) -> Iterator[Point]:
    tasks = [scores.task for scores in run.scores]
    for scores in run.scores:
        evaluator = [scores.evaluator] if tasks.count(scores.task) > 1 else []
        for name, value in scores.scores.items():
            yield Point(legal_name(scores.task, *evaluator, name), value)


def _data(run: RunResult) -> Iterator[Point]:
    for dataset in run.datasets:
        for name, value in dataset.figures.items():
            yield Point(legal_name("data", dataset.part, name), value)
    for overlap in run.overlaps:
        yield Point(legal_name("overlap", overlap.task), overlap.sharing[NORMALISED] / overlap.num_items)


def _training(run: RunResult) -> Iterator[Point]:
    for step, name, value in run.history:
        yield Point(legal_name("training", name), value, step)
    if run.dev_score is not None:
        yield Point("dev_score", run.dev_score)
    yield Point("num_steps", run.num_steps)
    yield Point("seconds", run.seconds)


def _legal_part(part: str) -> str:
    legal = re.sub(r"[^\w.\- ]", "_", part)
    if legal.strip(".") == "":
        legal = f"_{legal}"
    return legal if legal == part else f"{legal}-{_short_hash(part, 6)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _short_hash(text: str, length: int) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


@dataclass(frozen=True)
class Columns:
    """The columns of a result, averages last: name -> what is averaged, one measurement where nothing is."""

    over: dict[str, tuple[Measurement, ...]]

    def samples(self, runs: Sequence[RunResult]) -> dict[str, Sample]:
        """Return each column's main scores of these runs, one for each seed; empty columns are left out."""
        found = {
            name: over[0].sample(runs) if len(over) == 1 else aggregate.average(runs, over)
            for name, over in self.over.items()
        }
        return {name: sample for name, sample in found.items() if sample is not None}


def columns_of(result: ExperimentResult) -> Columns:
    """Return the columns of a result, one for each test set and evaluator, and the averages of its table.

    Where the table goes across an axis, each value of it is a place of its own here: an average over
    several of them is left out.
    """
    measured = aggregate.measurements(result)
    over: dict[str, tuple[Measurement, ...]] = {one.label: (one,) for one in measured}
    for name, tasks in result.table.get("averages", {}).items():
        named = tuple(one for one in measured if not one.names.isdisjoint(tasks))
        if len(named) == len(tasks) and name not in over:
            over[name] = named
    return Columns(over)
