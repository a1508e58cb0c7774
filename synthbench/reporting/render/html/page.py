"""The page: what stands in it, in which order."""

from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.reporting.figures.registry import study_grids
from synthbench.reporting.model.audit_grids import audit_grids, audit_lines
from synthbench.reporting.model.audit_tables import waiting_title
from synthbench.reporting.model.comparison_notes import comparison_notes
from synthbench.reporting.model.comparison_tables import comparison_grids
from synthbench.reporting.model.cost_tables import cost_grid, cost_table_notes
from synthbench.reporting.model.grids import Grid
from synthbench.reporting.model.notes import audit_notes
from synthbench.reporting.model.table import SHOWS, Table
from synthbench.reporting.render.html.reproducing import reproducing
from synthbench.reporting.render.html.summary import summarize
from synthbench.reporting.render.html.training_data import overlap_grids, shown_data, shown_sentences
from synthbench.reporting.render.html.trainings import HEIGHT, WIDTH, trainings
from synthbench.reporting.results import AuditResult, ExperimentResult
from synthbench.reporting.statistics.comparisons import compare

SCORES = "scores"
TITLES = {
    "curves": "Scores against an amount",
    "densities": "How scores of training pairs are distributed",
    "early_dev": "Early dev scores",
    "frontier": "Scores against what they cost",
    "confusion": "What was intended, and what it was judged to be",
}
OVERLAP_NOTES = (
    "exact: to the letter; normalised: case, punctuation and spaces apart; 13-gram: thirteen words in a row,"
    " of shorter sentences all; near-duplicate: by MinHash. What is found exactly is found normalised, what"
    " is found normalised by both others.",
    "whole item: every sentence of it, normalised; as a pair: as a pair of the training data, normalised.",
)
TRAINING_NOTES = (
    "Seconds: what computing a run's own stages took when they were executed, shared ones counted in full for"
    " each run.",
    "Dev scores of rows compare where dev is the same.",
)


@dataclass(frozen=True)
class Picture:
    """A figure as the address of an image that holds it; `name` is that of its files."""

    name: str
    address: str
    inches: float

    @property
    def title(self) -> str:
        """What the figure shows."""
        return TITLES.get(self.name, self.name.replace("_", " ").capitalize())


@dataclass(frozen=True)
class ShownAudit:
    """An audit's tables with what must be known beside them."""

    title: str
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]


def html_report(result: ExperimentResult, table: Table, pictures: Sequence[Picture] = ()) -> str:
    """Return the report as one page of HTML that needs nothing beside itself.

    All texts are escaped, whatever the data hold, and the page forbids scripts. The same result, table and
    pictures give the same page.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    columns, trained = compare(result), tuple(trainings(result))
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
        table=table if table.columns else None,
        shows_title=SHOWS,
        summary=summarize(result, table, columns),
        scores=[picture for picture in pictures if picture.name == SCORES],
        figures=[picture for picture in pictures if picture.name != SCORES],
        comparisons=tuple(comparison_grids(result)) if columns else (),
        comparison_notes=comparison_notes(result) if columns else (),
        studies=tuple(study_grids(result)),
        audits=tuple(map(_shown_audit, result.audits)),
        notes=table.notes if result.has_scores else audit_notes(result),
        data=shown_data(result),
        sentences=shown_sentences(result),
        overlaps=tuple(overlap_grids(result)),
        costs=cost_grid(result) if result.costs else None,
        cost_notes=tuple(cost_table_notes(result)) if result.costs else (),
        overlap_notes=OVERLAP_NOTES,
        trainings=trained,
        has_curves=any(training.curves for training in trained),
        curve_size=(WIDTH, HEIGHT),
        training_notes=TRAINING_NOTES,
        again=reproducing(result),
    )


def _shown_audit(audit: AuditResult) -> ShownAudit:
    if audit.audit is None:
        return ShownAudit(waiting_title(audit), (), ())
    grids = tuple(audit_grids("", audit.audit, audit.published))
    return ShownAudit(audit.title, grids, tuple(audit_lines(audit.audit)))
