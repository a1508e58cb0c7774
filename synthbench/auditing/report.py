"""The audit of a data set: who judged what, and how judgements compare with intended labels."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from pydantic import BaseModel, ConfigDict, Field

from synthbench.auditing.agreement import Agreement, agreement
from synthbench.auditing.confusion import Confusion, Correlation, Share, confusion, correlation, share
from synthbench.auditing.items import Item, Items, items_of
from synthbench.auditing.quality import LabelQuality, label_quality
from synthbench.auditing.sheets import Annotation
from synthbench.base.grouping import grouped
from synthbench.base.runtime import Progress
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.worlds import NAME, world

TIE = "no majority"


class Audit(BaseModel):
    """The figures that `data audit` shows; shares are in percent, similarities in [0, 1]."""

    model_config = ConfigDict(frozen=True)

    kind: RecordKind
    judge: str
    question: str = ""
    num_records: int
    num_items: int = Field(description="items judged, or given to annotators; a triplet gives two items")
    num_unanswered: int = Field(0, description="items without an answer; shares do not count them")
    missing_answers: dict[str, int] = Field(default_factory=dict, description="annotator -> items left blank")
    num_failures: int
    failures: dict[str, int] = Field(description="reason -> number of failures in making the data")
    bands: dict[str, tuple[float, float]] = Field(
        default_factory=dict, description="oracle's label -> its lowest and highest true similarity"
    )
    confusion: Confusion
    mean_similarity: dict[str, float] = Field(
        default_factory=dict,
        description="intended label -> mean true similarity, where known",
    )
    outside: dict[str, int] = Field(
        default_factory=dict,
        description="names of the sentences outside the grammar (`sentence1 and sentence2` if both are)"
        " -> number of items",
    )
    correlation: Correlation | None = None
    by_annotator: dict[str, dict[str, Share]] = Field(
        default_factory=dict, description="annotator -> label -> share of the annotator's answers"
    )
    agreement: Agreement | None = None
    quality: LabelQuality | None = None


def audit_by_oracle(dataset: SyntheticDataset, items: Items, progress: Progress) -> Audit:
    """Return the audit by the generated world's oracle.

    `items` are the items of the data set, or a sample of them.
    """
    oracle = world().oracle()
    verdicts = oracle.judge([item.texts for item in items.items], progress)
    judged = list(zip(items.items, verdicts, strict=True))
    is_pairs = len(items.text_names) == 2
    return Audit(
        judge=f"oracle {NAME}, version {world().version}",
        bands=dict(oracle.bands()) if is_pairs else {},
        **_of_dataset(dataset),
        num_items=len(judged),
        confusion=confusion(
            ((item.intended, verdict.label) for item, verdict in judged),
            oracle.labels_for(len(items.text_names)),
            items.intentions,
        ),
        mean_similarity=_means((item.intended, verdict.similarity) for item, verdict in judged),
        outside=_outside((verdict.outside for verdict in verdicts), items.text_names),
        correlation=correlation(
            {
                item.id: (item.score, verdict.similarity)
                for item, verdict in judged
                if item.score is not None and verdict.similarity is not None
            }
        ),
    )


def audit_by_gold(dataset: SyntheticDataset, gold: SyntheticDataset, positive: float) -> Audit:
    """Return the audit of scored pairs by gold's scores of the same pairs, with `LabelQuality`.

    `positive` is the least gold score of a positive pair. Raises UserError as `label_quality`.
    """
    quality = label_quality(list(dataset), list(gold), positive)
    told = items_of(gold)
    judged = {item.texts: item.intended for item in told.items}
    items = items_of(dataset)
    found = [(item.intended, judged[item.texts]) for item in items.items if item.texts in judged]
    return Audit(
        judge="gold",
        **_of_dataset(dataset),
        num_items=len(found),
        num_unanswered=len(items.items) - len(found),
        confusion=confusion(found, told.intentions, items.intentions),
        quality=quality,
    )


def audit_by_people(dataset: SyntheticDataset, items: Items, annotations: Sequence[Annotation]) -> Audit:
    """Return the audit by annotators' sheets; an item gets the label that most annotators gave."""
    question = annotations[0].question
    asked = {identity for annotation in annotations for identity in annotation.answers}
    answers = {
        item: [annotation.answers.get(item.id) for annotation in annotations]
        for item in items.items
        if item.id in asked
    }
    labels = {item: majority(row) for item, row in answers.items() if any(row)}
    rows = [*question.labels, *([TIE] if TIE in labels.values() else [])]
    return Audit(
        judge=", ".join(annotation.annotator for annotation in annotations),
        question=question.text,
        **_of_dataset(dataset),
        num_items=len(answers),
        num_unanswered=len(answers) - len(labels),
        missing_answers={
            annotation.annotator: sum(not annotation.answers.get(item.id) for item in answers)
            for annotation in annotations
        },
        confusion=confusion(
            ((item.intended, label) for item, label in labels.items()), rows, items.intentions
        ),
        correlation=correlation(_numbers(answers)),
        by_annotator={each.annotator: _shares(each) for each in annotations},
        agreement=agreement(list(answers.values())) if len(annotations) > 1 else None,
    )


def majority(answers: Iterable[str | None]) -> str:
    """Return the most frequent answer, `TIE` if several are equally frequent; all None raises ValueError."""
    counts = Counter(answer for answer in answers if answer is not None)
    (first, most), *others = counts.most_common()
    return TIE if others and others[0][1] == most else first


def _of_dataset(dataset: SyntheticDataset) -> dict[str, object]:
    reasons = Counter(dataset.failure_table.column("reason").to_pylist())
    return {
        "kind": dataset.kind,
        "num_records": len(dataset),
        "num_failures": dataset.manifest.num_failures,
        "failures": dict(reasons.most_common()),
    }


def _means(judged: Iterable[tuple[str, float | None]]) -> dict[str, float]:
    values = grouped((intended, similarity) for intended, similarity in judged if similarity is not None)
    return {intended: fmean(found) for intended, found in values.items()}


def _outside(found: Iterable[tuple[int, ...]], names: Sequence[str]) -> dict[str, int]:
    """Count the items with sentences outside the grammar, by the names of these sentences."""
    counts = Counter(positions for positions in found if positions)
    return {
        " and ".join(names[position] for position in positions): number
        for positions, number in sorted(counts.items())
    }


def _numbers(answers: Mapping[Item, Sequence[str | None]]) -> dict[str, tuple[float, float]]:
    """Return item id -> (intended score, mean answer), for items with both; {} if a label is no number."""
    try:
        return {
            item.id: (item.score, fmean(float(answer) for answer in row if answer is not None))
            for item, row in answers.items()
            if item.score is not None and any(row)
        }
    except ValueError:
        return {}


def _shares(annotation: Annotation) -> dict[str, Share]:
    given = Counter(answer for answer in annotation.answers.values() if answer is not None)
    return {label: share(given[label], given.total()) for label in annotation.question.labels}
