"""DINO's release format: JSON lines with text_a, text_b and label.

Labels are texts such as "0", "0.5" and "1", or numbers after smoothing. A row with a null text_b is a
single sentence.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from synthbench.api import (
    Content,
    Faults,
    Importer,
    ImportOptions,
    Record,
    RecordKind,
    ScoredPair,
    Sentence,
    SyntheticDataset,
    UserError,
    did_you_mean,
    distinct_sentences,
    is_invisible,
    json_lines,
    number_in,
    text_of,
)

COLUMNS = ("text_a", "text_b", "label")
BLANK = "blank text"
_CLASSES_SHOWN = 5
OTHER_ROWS = {RecordKind.SCORED_PAIR: "no text_b", RecordKind.SENTENCE: "has a text_b"}
_NONE_OF = {
    RecordKind.SCORED_PAIR: "no row has a text_b, each is a single sentence (kind: sentence)",
    RecordKind.SENTENCE: "every row has a text_b; these are no single sentences",
}


class DINOFile(Importer):
    """JSON lines in DINO's release format; without `kind`, scored pairs if there are any, else sentences."""

    version = 1
    title = "DINO's format"
    suffix = ".jsonl"
    kinds = (RecordKind.SCORED_PAIR, RecordKind.SENTENCE)
    makes = (RecordKind.SENTENCE,)
    takes_scores = True
    columns = ("text_a", "label")

    def read(self, file: Path, kind: RecordKind | None, options: ImportOptions) -> Content:
        """Read scored pairs if a row has a text_b, else sentences.

        With `options.converts`, all distinct texts are returned as sentences.

        A pair's score is its label as a number; its `label` is the label's text. With `options.scores`,
        labels are classes, as for an NLI task; pairs of classes without a score are dropped. Sentences
        are unchanged, including final spaces. Rows with a blank text, which a language model may have
        written, are dropped.

        Raises UserError naming each faulty line: bad JSON, a missing or unknown column, a text or label that
        is no text, a pair's label that is no number in [0, 1]. Also raises UserError if no pair's label is a
        number, if a class in `options.scores` has no row, if no row is of the given `kind`, or if no record
        is left.
        """
        content = _read(file, options)
        if options.converts:
            outcome = distinct_sentences(content.records)
            for reason, count in outcome.dropped.items():
                if count:
                    content.drop(f"to sentence: {reason}", count)
            notes = [f"converted to sentence: {outcome.note}"]
            return Content(list(outcome.records), content.dropped, notes)
        found = {record.kind for record in content.records}
        kind = kind or next(each for each in self.kinds if each in found)
        if kind not in found:
            raise UserError(f"{file}: {_NONE_OF[kind]}")
        chosen = [record for record in content.records if record.kind == kind]
        if len(chosen) < len(content.records):
            content.drop(OTHER_ROWS[kind], len(content.records) - len(chosen))
        return Content(chosen, content.dropped)

    def write(self, dataset: SyntheticDataset, file: Path) -> None:
        """Write scored pairs or sentences in DINO's release format.

        A pair's label is its `label` if that is a number in [0, 1], even if label smoothing has changed
        its score; otherwise its score. A sentence has a null text_b. Raises UserError for other kinds.
        """
        if dataset.kind not in self.kinds:
            raise UserError(
                f"DINO's format holds {' or '.join(self.kinds)} records, no {dataset.kind} records;"
                " `synthbench data convert` makes the ones of the others"
            )
        with file.open("w", encoding="utf-8", newline="\n") as stream:
            for record in dataset:
                stream.write(json.dumps(_released(record), ensure_ascii=False) + "\n")


def _read(file: Path, options: ImportOptions) -> Content:
    """Return the records of both kinds."""
    content, faults = Content(), Faults()
    labels, classes = Counter[str](), Counter[str]()
    for line, row in json_lines(file, faults):
        cells = {name: cell for name, cell in row.items() if cell is not None}
        label = str(cells.get("label", ""))
        labels[label] += 1
        try:
            record = _record(cells, f"{file.name}/{line:04d}", options)
        except ValueError as error:
            classes[label] += isinstance(error, _ClassError)
            faults.at(file, line, error)
        else:
            if isinstance(record, str):
                content.drop(record)
            else:
                content.records.append(record)
    if +classes and not any(isinstance(record, ScoredPair) for record in content.records):
        if faults.number > classes.total():
            faults.raise_if_any()
        raise UserError(_needs_scores(file, +classes))
    faults.raise_if_any()
    if absent := [name for name in options.scores or () if name not in labels]:
        hints = {name: did_you_mean(name, filter(None, labels)) for name in absent}
        raise UserError(*(f"{file}: scores.{name}: no row has this class{hints[name]}" for name in absent))
    if not content.records:
        raise UserError(f"{file}: holds no records")
    return content


def _released(record: ScoredPair | Sentence) -> dict[str, str | None]:
    texts = record.texts()
    label = _released_label(record) if isinstance(record, ScoredPair) else record.label or None
    return {"text_a": texts[0], "text_b": texts[1] if len(texts) > 1 else None, "label": label}


def _released_label(pair: ScoredPair) -> str:
    try:
        _label_score(pair.label)
    except ValueError:
        return repr(pair.score).removesuffix(".0")
    return pair.label


class _ClassError(ValueError):
    """A pair's label is not a number in [0, 1]."""


def _record(row: Mapping[str, Any], identity: str, options: ImportOptions) -> Record | str:
    """Return a row's record, or the reason for dropping it; raises ValueError saying what is wrong."""
    _check_columns(row)
    cells = {
        name: text_of(_label_text(value) if name == "label" else value, name) for name, value in row.items()
    }
    label, text_b = cells.get("label", ""), cells.get("text_b")
    shared: dict[str, Any] = {"id": identity, "split": options.split, "label": label}
    is_blank = any(is_invisible(text) for text in (cells["text_a"], text_b) if text is not None)
    if text_b is None:
        return BLANK if is_blank else Sentence(sentence=cells["text_a"], **shared)
    if options.scores is not None and label not in options.scores:
        return f"of class {label}"
    score = _label_score(label) if options.scores is None else options.scores[label]
    return (
        BLANK if is_blank else ScoredPair(sentence1=cells["text_a"], sentence2=text_b, score=score, **shared)
    )


def _label_text(label: object) -> object:
    """Return a number as JSON writes it, other values unchanged."""
    is_number = isinstance(label, int | float) and not isinstance(label, bool)
    return json.dumps(label) if is_number else label


def _label_score(label: str) -> float:
    try:
        score = number_in(label)
    except ValueError:
        score = -1.0
    if 0.0 <= score <= 1.0:
        return score
    raise _ClassError(f"the label of a pair must be a number from 0 to 1, is {label!r}")


def _needs_scores(file: Path, classes: Counter[str]) -> str:
    """Return the error message for a file whose labels are classes without scores."""
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
