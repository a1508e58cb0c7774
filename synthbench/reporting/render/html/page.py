"""The page that holds a whole report: its parts and the template that sets them."""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import notes_without_scores
from synthbench.reporting.model.table import MISSING, SHOWS, values_text
from synthbench.reporting.render.html.summary import summarize
from synthbench.reporting.render.html.training_data import overlap_grids, shown_data, shown_sentences
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

SCORES = "scores"
OVERLAP_NOTES = (
    "exact: letter by letter; normalised: ignoring case, punctuation and spaces; 13-gram: thirteen words in a"
    " row, or a shorter sentence as a whole; near-duplicate: by MinHash. Exact matches are normalised ones,"
    " too, and those are found by both others.",
    "whole item: all its sentences, normalised; as a pair: both sentences are one training pair, normalised.",
)
TRAINING_NOTES = (
    "Seconds: computing time of a run's own stages when they were executed; shared stages count in full for"
    " each run.",
    "Dev scores of rows are comparable only on the same dev data.",
)


@dataclass(frozen=True)
class Picture:
    """A figure as the address of an image that holds it; `name` is that of its files."""

    name: str
    title: str
    address: str
    inches: float


def html_report(report: Report, pictures: Sequence[Picture] = ()) -> str:
    """Return the report as one page of HTML that needs no other file.

    All texts are escaped, whatever the data hold, and the page forbids scripts. The same report and pictures
    give the same page.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    result, trained = report.result, tuple(trainings(report.analysis))
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("synthbench.reporting.render", "html"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html.jinja").render(
        result=result,
        table=report.table if report.table.columns else None,
        shows_title=SHOWS,
        summary=summarize(report.analysis, report.table),
        scores=[picture for picture in pictures if picture.name == SCORES],
        figures=[picture for picture in pictures if picture.name != SCORES],
        comparisons=report.comparisons,
        studies=[study.section for study in report.studies if study.section and study.section.blocks],
        audits=report.audits,
        costs=report.costs,
        notes=report.table.notes if result.has_scores else notes_without_scores(report.analysis),
        data=shown_data(result),
        sentences=shown_sentences(result),
        overlaps=tuple(overlap_grids(result)),
        overlap_notes=OVERLAP_NOTES,
        trainings=trained,
        has_curves=any(training.curves for training in trained),
        curve_size=(WIDTH, HEIGHT),
        training_notes=TRAINING_NOTES,
        again=reproducing(result),
    )


@dataclass(frozen=True)
class Reproducing:
    """Commands, and facts as (name, value).

    `file` is the experiment file that the commands name, empty where its text is not part of the result.
    """

    commands: tuple[str, ...]
    file: str
    facts: tuple[tuple[str, str], ...]
    environment: tuple[tuple[str, str], ...]
    revisions: tuple[tuple[str, str], ...]


def reproducing(result: ExperimentResult) -> Reproducing:
    """Return how a result came to be. Its overrides are as typed, fit for a shell."""
    file = result.file or f"{result.experiment}.yaml"
    given = " ".join((shlex.quote(file), *result.overrides))
    data = " --data DIR" if result.is_data_folder_given else ""
    of_excerpts = (each for excerpt in result.excerpts for each in excerpt.revisions)
    seeds = ", ".join(map(str, sorted({run.seed for run in result.runs})))
    facts = {
        "seeds": seeds,
        "varied with the seed": ", ".join(result.varied),
        "result": result.identity,
        "request": result.request,
    }
    return Reproducing(
        commands=(
            f"synthbench run {given}{data}",
            f"synthbench report {given}",
            f"synthbench report {given} --trace ROW COLUMN",
        ),
        file=file if result.source and not result.overrides else "",
        facts=tuple((name, value) for name, value in facts.items() if value),
        environment=tuple(result.environment.items()),
        revisions=tuple(dict.fromkeys((*result.revisions, *of_excerpts))),
    )


DEV = "dev_score"
FEWEST_POINTS = 3
WIDTH, HEIGHT, MARGIN = 96.0, 22.0, 2.0


@dataclass(frozen=True)
class Training:
    """The trainings of one row: texts, and the dev scores of each seed as points of a drawing."""

    row: str
    seeds: str
    steps: str
    dev: str
    dev_score: str
    seconds: str
    curves: tuple[str, ...] = ()


def trainings(analysis: Analysis) -> Iterator[Training]:
    """Yield the trainings of each row that has any."""
    for key, runs in analysis.grid_rows.items():
        if not any(run.num_steps or run.seconds for run in runs):
            continue
        dev = [run.dev_score for run in runs if run.dev_score is not None and math.isfinite(run.dev_score)]
        steps = sorted({run.num_steps for run in runs if run.num_steps})
        yield Training(
            row=values_text((("", key.variant), *key.axes)),
            seeds=str(len(runs)),
            steps=" to ".join(f"{number:,}" for number in dict.fromkeys(steps[:1] + steps[-1:])) or MISSING,
            dev=_dev(runs[0]) if dev else MISSING,
            dev_score=f"{100 * fmean(dev):.2f}" if dev else MISSING,
            seconds=f"{sum(run.seconds for run in runs) / len(runs):,.0f}",
            curves=tuple(_curves(runs)),
        )


def _dev(run: RunResult) -> str:
    """Return what dev is made of: sources, and held-out parts of the row's own data."""
    names = [
        name for key in ("sources", "parts") for name in run.parameters.get(f"train.selection.{key}") or ()
    ]
    return ", ".join(names)


def _curves(runs: Sequence[RunResult]) -> Iterator[str]:
    """Yield the points of each seed's dev scores over the steps, all seeds in one frame."""
    paths = [[(step, value) for step, name, value in run.history if name == DEV] for run in runs]
    points = [point for path in paths for point in path]
    if not points or not all(math.isfinite(value) for _, value in points):
        return
    steps, values = zip(*points, strict=True)
    for path in paths:
        if len(path) >= FEWEST_POINTS:
            xs = _scaled([step for step, _ in path], (0, max(steps)), WIDTH)
            ys = _scaled([value for _, value in path], (max(values), min(values)), HEIGHT)
            yield " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def _scaled(values: Sequence[float], ends: tuple[float, float], length: float) -> Iterator[float]:
    """Yield where values lie on a length, the first end near 0 and the second near the length."""
    first, last = ends
    room = length - 2 * MARGIN
    return (MARGIN + room * ((value - first) / (last - first) if last != first else 0.5) for value in values)
