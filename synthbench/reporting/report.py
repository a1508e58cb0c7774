"""A report: the table of scores, sections and figures of a result, each computed once for all formats."""

from collections.abc import Callable, Mapping, Sequence
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
from synthbench.reporting.model.labels_section import labels_section
from synthbench.reporting.model.sections import ReportSection, each_once
from synthbench.reporting.model.table import Table
from synthbench.reporting.model.world_warning import world_warning
from synthbench.reporting.results import ExperimentResult

ReportFigure = Curves | Densities | EarlyDevs | Frontier
FIGURES: tuple[Callable[[Analysis], ReportFigure | None], ...] = (curves, densities, early_dev, frontier)
SECTIONS: Mapping[str, Callable[[Analysis], ReportSection | None]] = {
    "Comparisons": comparison_section,
    "Labels": labels_section,
    "Audits": audit_section,
    "Costs": cost_section,
}


@dataclass(frozen=True)
class Report:
    """The content of a result's report, shared by all formats."""

    result: ExperimentResult

    @cached_property
    def analysis(self) -> Analysis:
        """The result's table options, rows, columns and comparisons."""
        return Analysis(self.result)

    @cached_property
    def table(self) -> Table:
        """The table of scores; raises pydantic.ValidationError if `result.table` holds no TableOptions."""
        return build_table(self.analysis)

    @cached_property
    def figures(self) -> tuple[ReportFigure, ...]:
        """The figures that the experiment asks for, except the figure of the scores."""
        found = (find(self.analysis) for find in FIGURES)
        return tuple(figure for figure in found if figure is not None)

    @cached_property
    def tables(self) -> Mapping[str, ReportSection]:
        """The sections except scores and figures, by title, in the order of printing."""
        found = {title: find(self.analysis) for title, find in SECTIONS.items()}
        return {title: section for title, section in found.items() if section is not None}

    @cached_property
    def forest(self) -> Forest | None:
        """The forest plot of the primary differences; None if no primary rows can be compared."""
        return forest(self.analysis)

    @cached_property
    def warning(self) -> str:
        """The warning that scores of the generated world are no evidence; "" if it is not used."""
        return " ".join(world_warning(self.result))

    @cached_property
    def further_notes(self) -> Mapping[str, Sequence[str]]:
        """The notes that stand below no table, by part of the report."""
        sections = {**self.tables, **{each.title: each.section for each in self.figures}}
        parts = {title: section.further_notes for title, section in sections.items()}
        title = "Scores" if self.result.has_scores else "Result"
        return each_once({title: self.table.further_notes, **parts})

    @property
    def sections(self) -> tuple[ReportSection, ...]:
        """All sections except the scores: `tables`, then the figures' sections."""
        return *self.tables.values(), *(figure.section for figure in self.figures)
