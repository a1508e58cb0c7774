"""The report's section on labellers: their biases and costs, and how well their labels agree with gold."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.sections import Block, CsvTable, Grid, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import AuditResult, LabelCost

if TYPE_CHECKING:
    from synthbench.auditing.confusion import Correlation, Share
    from synthbench.auditing.quality import Estimate, LabelQuality

TITLE = "Which labeller is worth its price"
_FIGURES = {
    "spearman": "correlation", "kappa": "kappa", "correct": "correct", "error": "error",
    "swapped": "swapped", "flipped": "flipped", "length": "length",
}  # fmt: skip
"""Name of a figure in the CSV file -> its field of LabelQuality."""
FIELDS = (
    "audit", "labels", "pairs", "dev_pairs", "missing", "threshold",
    *(f"{figure}{end}" for figure in _FIGURES for end in ("", "_low", "_high")),
    "labels_made", "usd", "usd_per_correct", "seconds", "training_seconds",
)  # fmt: skip
_Judged = Mapping[str, "tuple[AuditResult, LabelQuality]"]


def labels_section(analysis: Analysis) -> ReportSection | None:
    """Return the section with a block per audit that compared labels with gold; None without such audits."""
    judged: dict[str, dict[str, tuple[AuditResult, LabelQuality]]] = {}
    for each in analysis.result.audits:
        if each.audit is not None and each.audit.quality is not None:
            judged.setdefault(each.name, {})[", ".join(each.rows)] = each, each.audit.quality
    if not judged:
        return None
    lines = [_csv_line(name, *line) for name, rows in judged.items() for line in rows.items()]
    blocks = tuple(labels_block(name, rows) for name, rows in judged.items())
    return ReportSection("labels", CsvTable(FIELDS, lines), blocks, is_numbered=True)


def labels_block(name: str, rows: _Judged) -> Block:
    """Return one audit's block: quality, biases and costs of labels per row, and agreement between rows."""
    qualities = {row: quality for row, (_, quality) in rows.items()}
    grids = [*quality_grids(qualities), _costs(rows)]
    if len(rows) > 1:
        grids.append(_agreement(qualities))
    notes = [*quality_notes(list(qualities.values()))]
    notes.append("US dollars and seconds: of the labels alone; a labeller's own training is apart.")
    if any(audit.cost is None or audit.cost.usd is None for audit, _ in rows.values()):
        notes.append(f"{MISSING} Unknown: no price, or another stage paid for the answers.")
    return Block(f"{TITLE} ({name})", tuple(grids), tuple(notes))


def quality_grids(labels: "Mapping[str, LabelQuality]") -> tuple[Grid, Grid]:
    """Return two grids with a line per labeller: agreement with gold, and biases."""
    agreement = tuple(
        (
            name,
            _estimate(each.correlation),
            _estimate(each.kappa),
            _share(each.correct),
            f"{each.threshold:.2f}",
            _estimate(each.error),
            f"{each.num_missing:,}",
        )
        for name, each in labels.items()
    )
    header = ("labels", "Spearman", "kappa", "correct", "threshold", "mean error", "missing")
    biases = tuple(
        (name, _estimate(each.swapped), _share(each.flipped), _estimate(each.length))
        for name, each in labels.items()
    )
    return (
        Grid(header, agreement, title="agreement with gold"),
        Grid(("labels", "difference if swapped", "class flips", "error by length"), biases, title="biases"),
    )


def quality_notes(qualities: "Sequence[LabelQuality]") -> Iterator[str]:
    """Yield the notes needed to read `quality_grids`, the most important first."""
    most = max(qualities, key=lambda each: each.num_pairs)
    how = f"has the best kappa on {most.num_dev:,} dev pairs" if most.num_dev else "is gold's, uncalibrated"
    yield (
        f"On {most.num_pairs:,} gold pairs; brackets are 95 % intervals, which take pairs as independent."
        f" A pair is positive from {most.positive:g} on in gold; the threshold of labels {how}."
    )
    yield (
        "Correct: on gold's side, in percent. Mean error: label less gold. Swapped: mean difference of a"
        " pair's labels in both orders. Error by length: rank correlation with the words in both texts."
    )


def _costs(rows: _Judged) -> Grid:
    body = []
    for name, (audit, quality) in rows.items():
        cost = audit.cost
        each = [MISSING] * 4
        if cost is not None:
            usd = None if cost.usd is None else 1000 * cost.usd / cost.num_labels
            correct = quality.correct.percent / 100
            each = [
                _number(usd, ".4f"),
                _number(usd / correct if usd is not None and correct else None, ".4f"),
                _number(1000 * cost.seconds / cost.num_labels, ".1f"),
                _number(cost.training_seconds, ".1f"),
            ]
        body.append((name, *each))
    header = ("labels", "US$ per 1,000", "US$ per 1,000 correct", "seconds per 1,000", "training seconds")
    return Grid(header, tuple(body), title="costs")


def _agreement(labels: "Mapping[str, LabelQuality]") -> Grid:
    """Return a grid with the rank correlation and kappa between every two labellers."""
    from synthbench.auditing.quality import agreement_of_labels

    body = []
    for first, own in labels.items():
        cells = []
        for second, others in labels.items():
            found = agreement_of_labels(own, others) if first != second else (None, None)
            cells.append(", ".join(MISSING if each is None else f"{each.value:.2f}" for each in found))
        body.append((first, *cells))
    return Grid(("Spearman, kappa", *labels), tuple(body), title="agreement with each other")


def _estimate(found: "Estimate | Correlation | None") -> str:
    if found is None:
        return MISSING
    interval = "" if found.low is None or found.high is None else f" [{found.low:.3f}, {found.high:.3f}]"
    return f"{found.value:.3f}{interval}"


def _share(found: "Share | None") -> str:
    return MISSING if found is None else f"{found.percent:.1f} [{found.low:.1f}, {found.high:.1f}]"


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else format(value, form)


def _csv_line(name: str, rows: str, judged: "tuple[AuditResult, LabelQuality]") -> list[object]:
    audit, quality = judged
    figures: list[object] = []
    for field in _FIGURES.values():
        each = getattr(quality, field)
        value = getattr(each, "value", getattr(each, "percent", None))
        ends = (getattr(each, "low", None), getattr(each, "high", None))
        figures += ["" if one is None else f"{one:.6f}" for one in (value, *ends)]
    counts = [quality.num_pairs, quality.num_dev, quality.num_missing, f"{quality.threshold:.6f}"]
    return [name, rows, *counts, *figures, *_cost_cells(audit.cost, quality)]


def _cost_cells(cost: LabelCost | None, quality: "LabelQuality") -> list[object]:
    if cost is None:
        return [""] * 5
    correct = cost.num_labels * quality.correct.percent / 100
    usd, each = "", ""
    if cost.usd is not None:
        usd, each = f"{cost.usd:.9f}", f"{cost.usd / correct:.9f}" if correct else ""
    return [cost.num_labels, usd, each, f"{cost.seconds:.3f}", f"{cost.training_seconds:.3f}"]
