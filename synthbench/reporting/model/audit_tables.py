"""An experiment's audits for a terminal, and as Markdown, LaTeX and CSV."""

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from synthbench.escaping import CsvWriter, markdown_text
from synthbench.reporting.model.audit_grids import audit_grids, audit_lines
from synthbench.reporting.model.grids import latex_parts, markdown_grid, rich_grid
from synthbench.reporting.model.notes import audit_notes
from synthbench.reporting.render import latex_text
from synthbench.reporting.render.latex_layout import ORIGIN, layout_of
from synthbench.reporting.results import AuditResult, ExperimentResult

if TYPE_CHECKING:
    from rich.console import RenderableType

    from synthbench.auditing.report import Audit
    from synthbench.reporting.published import PublishedAudit

FIELDS = (
    "audit", "rows", "part", "judge", "intended", "judged", "count", "total", "percent", "low", "high",
    "published",
)  # fmt: skip


def terminal_audit(
    title: str, audited: "Audit", published: "PublishedAudit | None" = None
) -> "RenderableType":
    """Return what rich prints of one audit."""
    from rich.console import Group
    from rich.text import Text

    grids = audit_grids(title, audited, published)
    shown = (part for grid in grids for part in (Text(grid.title), rich_grid(grid)))
    return Group(*shown, *(Text(line) for line in audit_lines(audited)))


def terminal_audits(result: ExperimentResult) -> "RenderableType":
    """Return what rich prints of all audits; where there are no scores, with the notes of the whole."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for each in result.audits:
        parts += [Text("")] if parts and each.audit is not None else []
        parts.append(_terminal_part(each))
    notes = () if result.has_scores else audit_notes(result)
    return Group(*parts, *(Text(note) for note in (*([""] if notes else []), *notes)))


def _terminal_part(result: AuditResult) -> "RenderableType":
    from rich.text import Text

    if result.audit is None:
        return Text(waiting_title(result))
    return terminal_audit(result.title, result.audit, result.published)


def markdown_audits(result: ExperimentResult) -> str:
    """Return a table and what must be known beside it for each audit."""
    lines: list[str] = []
    for each in result.audits:
        if each.audit is None:
            lines += [f"**{markdown_text(waiting_title(each))}**", ""]
            continue
        for grid in audit_grids(each.title, each.audit, each.published):
            lines += [f"**{markdown_text(grid.title)}**", "", *markdown_grid(grid), ""]
        lines += [*(f"- {markdown_text(line)}" for line in audit_lines(each.audit)), ""]
    lines += [f"- {markdown_text(note)}" for note in audit_notes(result)]
    return "\n".join(lines).rstrip() + "\n"


def latex_audits(result: ExperimentResult) -> str:
    """Return a `table` environment for each audit that is judged."""
    lines, layout = [ORIGIN], layout_of(result, "audit")
    for number, each in enumerate(result.audits, start=1):
        if each.audit is None:
            lines.append(f"% {latex_text.escape(waiting_title(each))}")
            continue
        notes = [*audit_lines(each.audit), *audit_notes(result)]
        first, *others = audit_grids(each.title, each.audit, each.published)
        *parts, last = latex_parts(first)
        for grid in others:
            last += [rf"\par\medskip {latex_text.escape(grid.title)}\par\smallskip"]
            last += [line for part in latex_parts(grid) for line in part]
        lines += layout.named(number).environments(first.title, [*parts, last], notes)
    return "\n".join(lines) + "\n"


def csv_audits(result: ExperimentResult) -> str:
    """Return one line for each cell of each confusion: counts, percentage and its 95% interval."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for each in result.audits:
        writer.writerows(_csv_rows(each))
    return text.getvalue()


def _csv_rows(result: AuditResult) -> Iterator[list[str]]:
    if result.audit is None:
        return
    confusion = result.audit.confusion
    published = result.published.cells if result.published else {}
    named = [result.name, "; ".join(result.rows), result.part, result.audit.judge]
    for column in confusion.columns:
        for row in confusion.rows:
            share = confusion.cells[row][column]
            shares = [f"{value:.6f}" for value in (share.percent, share.low, share.high)]
            counts = [str(share.count), str(share.total)]
            yield [*named, column, row, *counts, *shares, published.get(row, {}).get(column, "")]


def waiting_title(result: AuditResult) -> str:
    """Return what is said of an audit that nobody has judged."""
    return f"{result.title}: {result.num_items:,} are to be judged; nobody has yet"
