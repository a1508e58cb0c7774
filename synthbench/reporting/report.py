"""A report: the table of scores, sections and figures of a result, each made once for all formats."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

from synthbench.reporting.figures.curves import curves
from synthbench.reporting.figures.densities import densities
from synthbench.reporting.figures.early_dev import early_dev
from synthbench.reporting.figures.frontier import frontier
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.audit_section import audit_section
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.cost_section import cost_section
from synthbench.reporting.model.sections import ReportSection
from synthbench.reporting.model.table import Table
from synthbench.reporting.results import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Study(Protocol):
    """What a figure shows, with the numbers behind it."""

    name: ClassVar[str]
    """The name of its files."""
    title: ClassVar[str]

    @property
    def section(self) -> ReportSection | None:
        """Its numbers as tables, if it has any."""

    def draw(self, *, has_caption: bool = True) -> "Figure | None":
        """Return the figure, if there is anything to draw; without its caption it has no notes either."""


STUDIES: Mapping[str, Callable[[Analysis], Study | None]] = {
    "curves": curves,
    "densities": densities,
    "early_dev": early_dev,
    "frontier": frontier,
}
"""The figures by the names of their files: each finds what one shows; None where it is not asked for."""


@dataclass(frozen=True)
class Report:
    """What all formats print of a result."""

    result: ExperimentResult

    @cached_property
    def analysis(self) -> Analysis:
        """Options, rows, columns and comparisons."""
        return Analysis(self.result)

    @cached_property
    def table(self) -> Table:
        """The table of scores; raises pydantic.ValidationError if `result.table` holds no TableOptions."""
        return build_table(self.analysis)

    @cached_property
    def studies(self) -> tuple[Study, ...]:
        """What the figures show, beside that of the scores."""
        found = (find(self.analysis) for find in STUDIES.values())
        return tuple(study for study in found if study is not None)

    @cached_property
    def comparisons(self) -> ReportSection | None:
        """The comparisons with baselines, if there are any."""
        return comparison_section(self.analysis)

    @cached_property
    def audits(self) -> ReportSection | None:
        """The audits of data, if there are any."""
        return audit_section(self.analysis)

    @cached_property
    def costs(self) -> ReportSection | None:
        """What LLMs cost, if any was asked."""
        return cost_section(self.analysis)

    @property
    def sections(self) -> tuple[ReportSection, ...]:
        """All sections beside the scores."""
        found = (self.comparisons, self.audits, self.costs, *(study.section for study in self.studies))
        return tuple(section for section in found if section is not None)
