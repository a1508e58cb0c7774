"""Everything that a result shows in a terminal."""

from typing import TYPE_CHECKING

from synthbench.reporting.audit_tables import terminal_audits
from synthbench.reporting.build import build_table
from synthbench.reporting.cost_tables import terminal_costs
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.studies import terminal_studies
from synthbench.reporting.terminal import terminal_table

if TYPE_CHECKING:
    from rich.console import RenderableType


def terminal_report(result: ExperimentResult) -> "RenderableType":
    """Return what rich prints: audits, costs, studies, and last, where people look, the table of scores."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if result.audits:
        parts.append(terminal_audits(result))
    if result.costs:
        parts.append(terminal_costs(result))
    parts += terminal_studies(result)
    if result.has_scores:
        parts.append(terminal_table(build_table(result)))
    first, *others = parts
    return Group(first, *(piece for part in others for piece in (Text(""), part)))
