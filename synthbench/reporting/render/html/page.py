"""Render a whole report as one HTML page: collect the parts and fill the template."""

import hashlib
import math
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import TYPE_CHECKING

from synthbench.base.templates import templates_in
from synthbench.config.coordinates import values_text
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.sections import Grid
from synthbench.reporting.model.table import MISSING, SHOWS
from synthbench.reporting.render.html.answer import MOST_LINES, answer, cell_hint
from synthbench.reporting.render.html.learning_curves import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    learning_curves,
)
from synthbench.reporting.render.html.summary import Summary, summarize
from synthbench.reporting.render.html.training_data import overlap_grids, shown_data, shown_sentences
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = "reporting/render/html"
SCORES = "Scores"
NUM_RECORDS = 5
"""Records of each data set that are shown at first; the others can be unfolded."""
OVERLAP_NOTES = (
    "exact: letter by letter; normalised: ignoring case, punctuation and spaces; 13-gram: thirteen words in a"
    " row, or a shorter sentence as a whole, and so any in a script without spaces; near-duplicate: by"
    " MinHash. Exact matches are normalised ones, too, and those are found by both others.",
    "whole item: all its sentences, normalised; as a pair: both sentences are one training pair, normalised.",
)
TRAINING_NOTES = (
    "Seconds: computing time of a run's own stages when they were executed; shared stages count in full for"
    " each run.",
    "Dev scores of rows are comparable only on the same dev data.",
)


@dataclass(frozen=True)
class Picture:
    """A figure as a `data:` URL; `name` is the name of its files without ending, `inches` its width."""

    name: str
    title: str
    address: str
    inches: float


def html_report(
    report: Report, pictures: Sequence[Picture] = (), texts: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the report as one page of HTML that needs no other file.

    `texts` are the report's text files by name, for copying from the page. All texts are escaped. The page's
    security policy allows only the page's own script, by hash; without JavaScript the content is the same.
    Equal inputs give equal pages.
    """
    result = report.result
    script = Path(__file__).with_name("report.js").read_text(encoding="utf-8")
    return _template().render(
        script=script,
        script_hash=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        result=result,
        answer=answer(report.analysis, report.table, report.forest),
        warning=report.warning,
        cell_hint=cell_hint,
        texts=texts,
        curves=learning_curves(report.analysis),
        chart_size=(WIDTH, HEIGHT),
        frame=(LEFT, TOP, WIDTH - RIGHT, HEIGHT - BOTTOM),
        num_records=NUM_RECORDS,
        table=report.table if report.table.columns else None,
        shows_title=SHOWS,
        summary=_summary(report),
        scores=[picture for picture in pictures if picture.title == SCORES],
        figures=[picture for picture in pictures if picture.title != SCORES],
        comparisons=report.tables.get("Comparisons"),
        figure_tables=[each.section for each in report.figures if each.section.blocks],
        audits=report.tables.get("Audits"),
        labels=report.tables.get("Labels"),
        costs=report.tables.get("Costs"),
        data=shown_data(result),
        sentences=shown_sentences(result),
        overlaps=tuple(overlap_grids(result)),
        overlap_notes=OVERLAP_NOTES,
        trainings=trainings(report.analysis),
        training_notes=TRAINING_NOTES,
        again=reproducing(result),
    )


def _summary(report: Report) -> Summary | None:
    """Return the summary in words; None if the forest plot already shows all findings."""
    of_test_sets = any(each.finding for _, each in report.analysis.decisions.of("below"))
    is_whole = report.forest is None or len(report.forest.labels) <= MOST_LINES
    return None if is_whole and not of_test_sets else summarize(report.analysis)


@cache
def _template() -> "Template":
    """Return the page's template, compiled once per process."""
    return templates_in(TEMPLATES).get_template("report.html.jinja")


@dataclass(frozen=True)
class Reproducing:
    """The commands that reproduce a result, and its properties (`facts`) as (name, value).

    `file` is the name of the experiment file whose text the page shows; "" with overrides or without text.
    """

    commands: tuple[str, ...]
    file: str
    facts: tuple[tuple[str, str], ...]
    revisions: tuple[tuple[str, str], ...]


def reproducing(result: ExperimentResult) -> Reproducing:
    """Return how to reproduce a result; overrides are quoted for a shell."""
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
        revisions=tuple(dict.fromkeys((*result.revisions, *of_excerpts))),
    )


def trainings(analysis: Analysis) -> Grid | None:
    """Return a grid with a line for each row with training steps or seconds; None if no row has any."""
    lines = []
    for key, runs in analysis.grid_rows.items():
        if not any(run.num_steps or run.seconds for run in runs):
            continue
        dev = [run.dev_score for run in runs if run.dev_score is not None and math.isfinite(run.dev_score)]
        steps = sorted({run.num_steps for run in runs if run.num_steps})
        line = (
            values_text((("", key.variant), *key.axes)),
            str(len(runs)),
            " to ".join(f"{number:,}" for number in dict.fromkeys(steps[:1] + steps[-1:])) or MISSING,
            _dev(runs[0]) if dev else MISSING,
            f"{100 * fmean(dev):.2f}" if dev else MISSING,
            f"{sum(run.seconds for run in runs) / len(runs):,.0f}",
        )
        lines.append(line)
    header = ("row", "seeds", "steps", "dev", "dev score × 100, mean", "seconds per seed")
    return Grid(header, tuple(lines), title="Trainings") if lines else None


def _dev(run: RunResult) -> str:
    """Return the dev data of a run: sources, and held-out parts of the row's own data."""
    names = [
        name for key in ("sources", "parts") for name in run.parameters.get(f"train.selection.{key}") or ()
    ]
    return ", ".join(names)
