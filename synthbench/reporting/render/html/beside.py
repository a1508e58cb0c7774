"""The page with two results side by side."""

from dataclasses import dataclass

from synthbench.reporting.model.sections import ReportSection
from synthbench.reporting.model.two_results import FIRST, SECOND, differing_settings, rows_of_one
from synthbench.reporting.render.html.answer import LeadingRow, answer
from synthbench.reporting.render.html.page import rendered
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult


@dataclass(frozen=True)
class Side:
    """One of the two results; `only` are its rows that the other result lacks."""

    label: str
    title: str
    identity: str
    description: str
    answer: LeadingRow | None
    only: tuple[str, ...]


def beside_page(first: ExperimentResult, second: ExperimentResult, section: ReportSection) -> str:
    """Return the page of two results; `section` has their comparisons."""
    labels, only = (FIRST, SECOND), rows_of_one(first, second)
    sides = [_side(*each) for each in zip(labels, (first, second), map(tuple, only), strict=True)]
    settings = tuple(differing_settings(first, second))
    return rendered("beside.html.jinja", sides=sides, section=section, settings=settings)


def _side(label: str, result: ExperimentResult, only: tuple[str, ...]) -> Side:
    report = Report(result)
    found = answer(report.analysis, report.table)
    return Side(label, result.title, result.identity[:12], result.description, found, only)
