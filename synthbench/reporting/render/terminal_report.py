"""What a terminal shows of a result, and how much a reader finds elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.reporting.figures.registry import study_grids, terminal_studies
from synthbench.reporting.model.audit_tables import terminal_audits
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.cost_tables import cost_table_notes, terminal_costs
from synthbench.reporting.model.notes import audit_notes
from synthbench.reporting.model.warning_notes import flat_labels, warning_notes
from synthbench.reporting.options import TableOptions
from synthbench.reporting.render.terminal import Shown, terminal_table
from synthbench.reporting.results import ExperimentResult

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


@dataclass(frozen=True)
class Notes:
    """How many notes a file of the report has, and what must be read before figures are believed.

    `first` counts in words: ("1 failure", "2 warnings").
    """

    number: int
    file: str
    first: tuple[str, ...]


def terminal_report(result: ExperimentResult, console: "Console", lines: int | None = None) -> Shown:
    """Return the table of scores without its notes, for at most so many lines of the console; None: whole.

    Where nothing is scored, it is audits, costs and studies.
    """
    if result.has_scores:
        return terminal_table(build_table(result), console, lines)
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if result.audits:
        parts.append(terminal_audits(result))
    if result.costs:
        parts.append(terminal_costs(result))
    parts += terminal_studies(result)
    first, *others = parts
    whole = Group(first, *(piece for part in others for piece in (Text(""), part)))
    width = console.measure(whole).maximum
    rendered = console.render_lines(whole, pad=False)
    if lines is None or len(rendered) <= lines:
        return Shown(whole, width)
    kept = (Text.assemble(*((each.text, each.style or "") for each in line)) for line in rendered[:lines])
    return Shown(Group(*kept), width, (f"{len(rendered) - lines} of {len(rendered)} lines",))


def notes_of(result: ExperimentResult) -> Notes:
    """Return how many notes the report has, and which of them come first."""
    missing = warnings = 0
    if result.has_scores:
        table = build_table(result)
        file, number = "table.md", len(table.notes)
        missing = sum(cell is None for row in table.rows for cell in row.cells)
        warnings = len(warning_notes(table, result, TableOptions.model_validate(result.table)))
    else:
        warnings = len(list(flat_labels(result)))
        file, number = next(_elsewhere(result))
    counts = {
        "failure": len(result.failures),
        "result pending": len(result.pending),
        "cell without a score": missing,
        "warning": warnings,
    }
    return Notes(number, file, tuple(_count(number, what) for what, number in counts.items() if number))


def _elsewhere(result: ExperimentResult) -> Iterator[tuple[str, int]]:
    """Yield the files that hold the notes where nothing is scored, with the number of notes."""
    if result.audits:
        yield "audit.md", len(audit_notes(result))
    if result.costs:
        yield "costs.md", len(list(cost_table_notes(result)))
    yield from ((f"{name}.md", len(notes)) for name, _, notes in study_grids(result))


def _count(number: int, what: str) -> str:
    noun, _, rest = what.partition(" ")
    return f"{number:,} {noun}{'' if number == 1 else 's'}{f' {rest}' if rest else ''}"
