"""Everything that a result shows in a terminal."""

from typing import TYPE_CHECKING

from synthbench.reporting.audit_tables import terminal_audits
from synthbench.reporting.build import build_table
from synthbench.reporting.results import ExperimentResult
from synthbench.reporting.terminal import terminal_table

if TYPE_CHECKING:
    from rich.console import RenderableType


def terminal_report(result: ExperimentResult) -> "RenderableType":
    """Return what rich prints: the table of scores, if there are any, and below it the audits."""
    from rich.console import Group
    from rich.text import Text

    scores = (terminal_table(build_table(result)),) if result.has_scores else ()
    audits = (terminal_audits(result),) if result.audits else ()
    between = (Text(""),) if scores and audits else ()
    return Group(*scores, *between, *audits)
