"""The section of audits: a table of intended against judged labels for each audit."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import notes_without_scores
from synthbench.reporting.model.sections import Block, CsvTable, Grid, Line, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import AuditResult

if TYPE_CHECKING:
    from synthbench.auditing.agreement import Agreement
    from synthbench.auditing.confusion import Confusion, Correlation, Share
    from synthbench.auditing.report import Audit
    from synthbench.config.published_tables import PublishedAudit

FIELDS = (
    "audit", "rows", "part", "judge", "intended", "judged", "count", "total", "percent", "low", "high",
    "published",
)  # fmt: skip


def audit_section(analysis: Analysis) -> ReportSection | None:
    """Return the section; None if no data were audited."""
    audits = analysis.result.audits
    if not audits:
        return None
    csv = CsvTable(FIELDS, [line for each in audits for line in _csv_lines(each)])
    blocks = tuple(
        Block(f"{each.title}: {each.num_items:,} items wait for judgement")
        if each.audit is None
        else audit_block(each.title, each.audit, each.published)
        for each in audits
    )
    return ReportSection("audit", csv, blocks, notes_without_scores(analysis), is_numbered=True)


def audit_block(title: str, audited: "Audit", published: "PublishedAudit | None" = None) -> Block:
    """Return tables: our confusion matrix, a paper's matrix if given, answers by annotator if several."""
    meaning = "judged labels (rows) of intended labels (columns)"
    grids = [confusion_grid(audited.confusion, meaning, audited.mean_similarity)]
    if published is not None:
        grids.append(_published_grid(published, audited.confusion))
    if len(audited.by_annotator) > 1:
        grids.append(_annotator_grid(audited.by_annotator))
    return Block(title, tuple(grids), tuple(_notes(audited)))


def confusion_grid(
    confusion: "Confusion", title: str = "", mean_similarity: Mapping[str, float] | None = None
) -> Grid:
    """Return the confusion matrix as a table: shares with intervals and counts, and numbers of judged items.

    With `mean_similarity` (column -> true similarity), a line of the means follows.
    """
    columns = confusion.columns
    body = tuple(
        (row, *(_cell(confusion.cells[row][column]) for column in columns)) for row in confusion.rows
    )
    foot: list[Line] = [("judged", *(f"{confusion.totals[column]:,}" for column in columns))]
    if mean_similarity:
        means = (mean_similarity.get(column) for column in columns)
        foot.append(("mean similarity", *(MISSING if mean is None else f"{mean:.3f}" for mean in means)))
    return Grid(("", *columns), body, tuple(foot), title)


def _notes(audited: "Audit") -> Iterator[str]:
    """Yield the notes needed to read the numbers in the tables."""
    yield "Percent of the column [95% interval] (number)."
    if audited.question:
        yield f"Asked: {audited.question}"
    yield f"Judged by: {audited.judge}"
    if audited.bands:
        bands = (f"{label} from {low:g}" for label, (low, _) in reversed(audited.bands.items()))
        yield f"True similarity: {', '.join(bands)}"
    if audited.outside:
        sides = (f"{number:,} x {side}" for side, number in audited.outside.items())
        yield f"Outside the grammar: {', '.join(sides)}"
    if audited.correlation is not None:
        yield _correlation(audited.correlation)
    if audited.agreement is not None:
        yield _agreement(audited.agreement)
    if any(audited.missing_answers.values()):
        missing = (f"{name} {number:,}" for name, number in audited.missing_answers.items() if number)
        yield (
            f"Missing answers: {', '.join(missing)}; "
            f"answered by no annotator and left out: {audited.num_unanswered:,}"
        )
    if audited.num_failures:
        reasons = (f"{number:,} x {reason}" for reason, number in audited.failures.items())
        yield f"Failures, without a text to judge: {audited.num_failures:,} ({'; '.join(reasons)})"


def _published_grid(published: "PublishedAudit", confusion: "Confusion") -> Grid:
    """Return a paper's shares in our order; labels found only in the paper come last."""
    theirs = published.cells
    rows = [
        *(row for row in confusion.rows if row in theirs),
        *(row for row in theirs if row not in confusion.rows),
    ]
    known = dict.fromkeys(column for cells in theirs.values() for column in cells)
    columns = dict.fromkeys([*(column for column in confusion.columns if column in known), *known])
    body = tuple((row, *(theirs[row].get(column, MISSING) for column in columns)) for row in rows)
    title = f"Published, in percent of the paper's own data: {published.source}"
    return Grid(("", *columns), body, title=title)


def _annotator_grid(shares: "Mapping[str, Mapping[str, Share]]") -> Grid:
    body = []
    for label in next(iter(shares.values())):
        row = [by_label[label] for by_label in shares.values()]
        mean = sum(each.percent for each in row) / len(row)
        body.append((label, *map(_cell, row), f"{mean:.1f}%"))
    return Grid(("", *shares, "mean"), tuple(body), title="Answers of each annotator")


def _cell(share: "Share") -> str:
    return f"{share.percent:.1f}% [{share.low:.1f}, {share.high:.1f}] ({share.count:,})"


def _correlation(found: "Correlation") -> str:
    interval = "" if found.low is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return (
        f"Rank correlation (Spearman) of intended score and judgement: {found.value:.3f}{interval}, "
        f"{found.num_pairs:,} pairs"
    )


def _agreement(found: "Agreement") -> str:
    values = {
        "equal answers": None if found.raw is None else f"{found.raw:.1%}",
        "Cohen's kappa": None if found.cohen_kappa is None else f"{found.cohen_kappa:.3f}",
        "Krippendorff's alpha": (
            None if found.krippendorff_alpha is None else f"{found.krippendorff_alpha:.3f}"
        ),
    }
    if found.num_annotators != 2:
        del values["Cohen's kappa"]
    texts = (f"{name} {value or 'undefined'}" for name, value in values.items())
    return f"Agreement of {found.num_annotators} annotators on {found.num_items:,}: {', '.join(texts)}"


def _csv_lines(result: AuditResult) -> Iterator[list[str]]:
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
