"""The page that lists all reports with their main results."""

from collections.abc import Sequence
from dataclasses import dataclass

from synthbench.reporting.render.html.answer import answer
from synthbench.reporting.render.html.page import rendered
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult


@dataclass(frozen=True)
class ReportEntry:
    """A report's summary in the list; `address` is its page's, relative to the index."""

    title: str
    address: str
    description: str
    sentences: tuple[str, ...]
    num_rows: int
    num_seeds: int
    test_sets: str
    is_unfinished: bool


def entry(result: ExperimentResult, address: str) -> ReportEntry:
    """Return the index's entry for a result whose page is at `address`."""
    report = Report(result)
    found = answer(report.analysis, report.table)
    return ReportEntry(
        title=result.title,
        address=address,
        description=result.description,
        sentences=() if found is None else found.sentences,
        num_rows=len(report.analysis.grid_rows),
        num_seeds=len(report.analysis.seeds),
        test_sets=", ".join(column.title for column in report.table.columns if not column.is_average),
        is_unfinished=bool(result.failures or result.pending),
    )


def index_page(entries: Sequence[ReportEntry]) -> str:
    """Return the page. It works without JavaScript; its policy allows only the bundled script."""
    return rendered("index.html.jinja", entries=entries)
