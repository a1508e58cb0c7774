"""The files that DINO's data are released in: JSON lines with text_a, text_b and label.

Labels are texts such as "0", "0.5" and "1", or numbers where they were smoothed. Where text_b is null, a row
is a single sentence: x1 alone.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError, did_you_mean
from synthbench.data.conversions import distinct_sentences
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.importing import ImportedRow, LineFaults, cell_value, jsonl_rows, opened
from synthbench.data.records import Record, RecordKind, ScoredPair, Sentence
from synthbench.tables.characters import is_invisible
from synthbench.tables.opening import ending

COLUMNS = ("text_a", "text_b", "label")
KINDS = (RecordKind.SCORED_PAIR, RecordKind.SENTENCE)
BLANK = "blank text"
_CLASSES_SHOWN = 5
OTHER_ROWS = {RecordKind.SCORED_PAIR: "no text_b", RecordKind.SENTENCE: "has a text_b"}


@dataclass(frozen=True)
class DinoRows:
    """A file's rows in order, scored pairs and (of rows without text_b) sentences, and what was left out."""

    file: Path
    records: tuple[Record, ...]
    dropped: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def of_kind(self, kind: RecordKind) -> "DinoRows":
        """Return the rows of one kind, the others counted as dropped; raises UserError if there are none."""
        chosen = tuple(record for record in self.records if record.kind == kind)
        if not chosen:
            raise UserError(f"{self.file}: {_none_of(kind)}")
        left_out = Counter({OTHER_ROWS[kind]: len(self.records) - len(chosen)})
        return replace(self, records=chosen, dropped=dict(Counter(self.dropped) + left_out))

    def sentences(self) -> "DinoRows":
        """Return each distinct sentence of pairs and single sentences once."""
        outcome = distinct_sentences(self.records)
        repeated = Counter({f"to sentence: {reason}": count for reason, count in outcome.dropped.items()})
        return replace(
            self,
            records=tuple(outcome.records),
            dropped=dict(Counter(self.dropped) + repeated),
            notes=(*self.notes, f"converted to sentence: {outcome.note}"),
        )


def read_dino(file: Path, split: str = "train", scores: Mapping[str, float] | None = None) -> DinoRows:
    """Read a .jsonl file (UTF-8); a pair's score is its label as a number, its `label` the label's text.

    With `scores`, class -> score, labels are classes, as of a task for NLI; pairs of other classes are left
    out. Sentences stay as they are, to the blank at their end. Rows with a blank text, which a language model
    may have written, are left out. What is left out is counted.
    Raises UserError naming each faulty line (as `import_file` does): bad JSON, a column that is missing or
    not DINO's, a text or label that is no text, a pair's label that is no number in [0, 1]. It is one line if
    no label is one, or if a class has a score and no row.
    """
    if ending(file) != ".jsonl" and file.is_file():
        raise UserError(f"{file}: a file in DINO's format is a .jsonl file")
    faults, records = LineFaults(file), list[Record]()
    dropped, labels, classes = Counter[str](), Counter[str](), Counter[str]()
    with opened(file) as stream:
        for row in jsonl_rows(stream, faults):
            labels[str(row.cells.get("label"))] += 1
            try:
                record = _record(row, f"{file.name}/{row.line:04d}", split, scores)
            except _ClassError as error:
                classes[str(row.cells.get("label"))] += 1
                faults.add(row.line, str(error))
            except ValueError as error:
                faults.add(row.line, str(error))
            else:
                if isinstance(record, str):
                    dropped[record] += 1
                else:
                    records.append(record)
    if classes and not any(isinstance(record, ScoredPair) for record in records):
        faults.raise_if_more_than(classes.total())
        raise UserError(_needs_scores(file, classes))
    faults.raise_if_any()
    if absent := [name for name in scores or () if name not in labels]:
        hints = {name: did_you_mean(name, labels) for name in absent}
        raise UserError(*(f"{file}: scores.{name}: no row has this class{hints[name]}" for name in absent))
    if not records:
        raise UserError(f"{file}: holds no records")
    return DinoRows(file, tuple(records), dict(dropped))


def import_dino(
    file: Path, kind: RecordKind | None = None, scores: Mapping[str, float] | None = None
) -> SyntheticDataset:
    """Make a data set of a released file: scored pairs if a row has a text_b, else sentences.

    With `kind` the rows that are not of this kind are left out and counted; `scores` as in `read_dino`.
    Raises UserError as `read_dino` does, or if the file can't hold this kind.
    """
    if kind is not None and kind not in KINDS:
        raise UserError(f"a file in DINO's format holds {' or '.join(KINDS)} records, no {kind} records")
    rows = read_dino(file, scores=scores)
    has_pairs = any(record.kind == RecordKind.SCORED_PAIR for record in rows.records)
    kind = kind or (RecordKind.SCORED_PAIR if has_pairs else RecordKind.SENTENCE)
    chosen = rows.of_kind(kind)
    return SyntheticDataset.create(
        kind,
        chosen.records,
        revisions={file.name: file_hash(file)},
        dropped=dict(chosen.dropped),
        notes=[f"imported from {file.name}, in DINO's format", *chosen.notes],
    )


def write_dino(dataset: SyntheticDataset, file: Path) -> None:
    """Write scored pairs or sentences as they are released.

    A pair's label is its `label` where this is a number in [0, 1], whatever was done to the score since
    (label smoothing), else its score. A sentence has a null text_b.
    Raises UserError for records of other kinds.
    """
    if dataset.kind not in KINDS:
        raise UserError(
            f"DINO's format holds {' or '.join(KINDS)} records, no {dataset.kind} records;"
            " `synthbench data convert` makes the ones of the others"
        )
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for record in dataset:
            stream.write(json.dumps(_released(record), ensure_ascii=False) + "\n")


def _released(record: ScoredPair | Sentence) -> dict[str, str | None]:
    texts = record.texts()
    label = _released_label(record) if isinstance(record, ScoredPair) else record.label or None
    return {"text_a": texts[0], "text_b": texts[1] if len(texts) > 1 else None, "label": label}


def _released_label(pair: ScoredPair) -> str:
    try:
        cell_value("score", pair.label, is_sentence=False)
    except ValueError:
        return repr(pair.score).removesuffix(".0")
    return pair.label


class _ClassError(ValueError):
    """The label of a pair is no number in [0, 1]."""


def _record(row: ImportedRow, identity: str, split: str, scores: Mapping[str, float] | None) -> Record | str:
    """Return a row's record, or why it is left out; raises ValueError saying what is wrong with it."""
    _check_columns(row.cells)
    cells = {
        name: cell_value(name, _label_text(value) if name == "label" else value, is_sentence=False)
        for name, value in row.cells.items()
    }
    label, text_b = cells.get("label", ""), cells.get("text_b")
    is_blank = any(is_invisible(text) for text in (cells["text_a"], text_b) if text is not None)
    if text_b is None:
        return (
            BLANK if is_blank else Sentence(id=identity, split=split, label=label, sentence=cells["text_a"])
        )
    if scores is not None and label not in scores:
        return f"of class {label}"
    score = _label_score(label) if scores is None else scores[label]
    if is_blank:
        return BLANK
    texts = {"sentence1": cells["text_a"], "sentence2": text_b}
    return ScoredPair(id=identity, split=split, label=label, score=score, **texts)


def _label_text(label: object) -> object:
    """Return a number as JSON writes it, anything else as it is."""
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return json.dumps(label) if is_number else label


def _label_score(label: str) -> float:
    try:
        return float(cell_value("score", label, is_sentence=False))
    except ValueError:
        raise _ClassError(f"the label of a pair must be a number from 0 to 1, is {label!r}") from None


def _needs_scores(file: Path, classes: Counter[str]) -> str:
    """Say that labels are classes, which they are, and how each gets a score."""
    counted = ", ".join(f"{number:,} {label!r}" for label, number in classes.most_common(_CLASSES_SHOWN))
    return (
        f"{file}: no label is a number from 0 to 1 ({counted}); if they are classes, say which score"
        " each has: `scores: {CLASS: SCORE, ...}` in an experiment, on the command line"
        " --score CLASS=SCORE for each"
    )


def _check_columns(names: Iterable[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            raise ValueError(f"unknown column '{name}'{did_you_mean(name, COLUMNS)}")
    if "text_a" not in names:
        raise ValueError("no 'text_a'")


def _none_of(kind: RecordKind) -> str:
    if kind == RecordKind.SCORED_PAIR:
        return "no row has a text_b, each is a single sentence (kind: sentence)"
    return "every row has a text_b; these are no single sentences"
