"""A report: the table of scores, sections and figures of a result, each computed once for all formats."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from synthbench.reporting.figures.curves import Curves, curves
from synthbench.reporting.figures.densities import Densities, densities
from synthbench.reporting.figures.early_dev import EarlyDevs, early_dev
from synthbench.reporting.figures.frontier import Frontier, frontier
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.audit_section import audit_section
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.cost_section import cost_section
from synthbench.reporting.model.forest import Forest, forest
from synthbench.reporting.model.further_notes import NotesOn, each_once
from synthbench.reporting.model.labels_section import labels_section
from synthbench.reporting.model.sections import ReportSection
from synthbench.reporting.model.table import Table
from synthbench.reporting.model.world_warning import world_warning
from synthbench.reporting.results import ExperimentResult

ReportFigure = Curves | Densities | EarlyDevs | Frontier
FIGURES: tuple[Callable[[Analysis], ReportFigure | None], ...] = (curves, densities, early_dev, frontier)


@dataclass(frozen=True)
class Report:
    """The content of a result's report, shared by all formats."""

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
    def figures(self) -> tuple[ReportFigure, ...]:
        """The figures that the experiment asks for, without that of the scores."""
        found = (find(self.analysis) for find in FIGURES)
        return tuple(figure for figure in found if figure is not None)

    @cached_property
    def comparisons(self) -> ReportSection | None:
        """The comparisons with baselines, if there are any."""
        return comparison_section(self.analysis)

    @cached_property
    def forest(self) -> Forest | None:
        """The primary differences, plotted; None if nothing is primary."""
        return forest(self.analysis)

    @cached_property
    def warning(self) -> str:
        """The warning that scores of the generated world are no evidence; "" if it was not used."""
        return " ".join(world_warning(self.result))

    @cached_property
    def audits(self) -> ReportSection | None:
        """The audits of data, if there are any."""
        return audit_section(self.analysis)

    @cached_property
    def labels(self) -> ReportSection | None:
        """What labels are worth against gold, and what they cost, if any were compared."""
        return labels_section(self.analysis)

    @cached_property
    def costs(self) -> ReportSection | None:
        """The costs of LLMs, if any was asked."""
        return cost_section(self.analysis)

    @cached_property
    def further_notes(self) -> tuple[NotesOn, ...]:
        """The notes that stand below no table, by part of the report."""
        figures = [(each.title, each.section) for each in self.figures]
        own = {"Comparisons": self.comparisons, "Labels": self.labels, "Audits": self.audits}
        named = [*own.items(), ("Costs", self.costs), *figures]
        parts = (NotesOn(title, section.further_notes) for title, section in named if section is not None)
        title = "Scores" if self.result.has_scores else "Result"
        return tuple(each_once((NotesOn(title, self.table.further_notes), *parts)))

    @property
    def sections(self) -> tuple[ReportSection, ...]:
        """All sections except the scores."""
        found = (self.comparisons, self.labels, self.audits, self.costs)
        return *filter(None, found), *(figure.section for figure in self.figures)
