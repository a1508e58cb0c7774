"""Annotation sheets: CSV files for people to annotate in a spreadsheet, without the intended labels.

The columns are the item's id, its sentences, and the answer, whose header holds the question and the labels:
`Is it safe? Answer: safe | unsafe`. People type their answers into the last of these columns. Columns that
people add are ignored.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from synthbench.auditing.items import Item, Items
from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.escaping import CsvWriter, restored
from synthbench.base.user_files import check_file
from synthbench.data.exchange import replacing
from synthbench.data.reading import Faults
from synthbench.tables.numbers import number_in
from synthbench.tables.opening import allow_long_cells

ID = "id"
ANSWER = " Answer: "
SEPARATOR = " | "


@dataclass(frozen=True)
class SheetQuestion:
    """The question for annotators, and its labels in the order of the confusion table's rows."""

    text: str
    labels: tuple[str, ...]

    @property
    def header(self) -> str:
        """The header cell of the answer column: question and labels."""
        return f"{self.text}{ANSWER}{SEPARATOR.join(self.labels)}"

    @classmethod
    def from_header(cls, cell: str) -> "SheetQuestion | None":
        """Return the question in a header cell, or None if the cell has none."""
        text, found, labels = cell.rpartition(ANSWER)
        return cls(text, tuple(labels.split(SEPARATOR))) if found else None

    def label(self, answer: str) -> str:
        """Return the label for an answer, ignoring case; numbers may have a decimal comma.

        Raises ValueError if the answer is none of the labels.
        """
        for label in self.labels:
            if label.casefold() == answer.casefold() or _number(label) == _number(answer) is not None:
                return label
        near = did_you_mean(answer.casefold(), [label.casefold() for label in self.labels])
        raise ValueError(f"'{answer}' is none of the labels{near}")


SIMILARITY = SheetQuestion(
    "How similar are the two sentences in meaning? same: they say (almost) the same; similar: the same "
    "situation, something important differs; a little: another situation, some aspect in common; "
    "different: nothing in common.",
    ("different", "a little", "similar", "same"),
)


def question_of(text: str | None, labels: str | None, items: Items) -> SheetQuestion:
    """Return the question to ask; the default for pairs is `SIMILARITY`.

    `labels` are separated by commas. Raises UserError if only one of `text` and `labels` is given, if neither
    is given for single sentences, if the question is empty, or if the labels are fewer than two, repeated or
    unfit for a header.
    """
    if text is None and labels is None and len(items.text_names) == 2:
        return SIMILARITY
    if text is None or labels is None:
        raise UserError(
            "say what to ask and what may be answered: "
            '--question "Is the text safe?" --labels safe,unsafe (pairs are asked for similarity if not)'
        )
    names = tuple(" ".join(name.split()) for name in labels.split(","))
    faulty = "" in names or len(names) < 2 or len({name.casefold() for name in names}) < len(names)
    if faulty or any("|" in name or "Answer:" in name for name in names):
        raise UserError(f"--labels {labels}: must be two or more different labels with commas between them")
    question = " ".join(text.split())
    if not question:
        raise UserError("--question: is empty")
    return SheetQuestion(question, names)


def write_sheet(items: Items, question: SheetQuestion, file: Path, *, force: bool) -> None:
    """Write a sheet; raises UserError if the file is no .csv, exists (unless `force`) or can't be written."""
    if file.suffix != ".csv":
        raise UserError(f"{file}: the name must end in .csv")
    # Spreadsheets read a file as UTF-8 only if it begins with the byte order mark.
    with (
        replacing(file, force=force) as temporary,
        temporary.open("w", encoding="utf-8-sig", newline="") as stream,
    ):
        rows = CsvWriter(stream, "\r\n")
        rows.writerow((ID, *items.text_names, question.header))
        rows.writerows((item.id, *item.texts, "") for item in items.items)


def _number(text: str) -> float | None:
    try:
        return number_in(text.replace(",", "."))
    except ValueError:
        return None


# A comma, or the separator of spreadsheets in other countries.
DELIMITERS = ",;\t"


@dataclass(frozen=True)
class Annotation:
    """One annotator's labels by item id, None for a missing answer."""

    annotator: str
    question: SheetQuestion
    answers: Mapping[str, str | None]


@dataclass
class _Sheet:
    """A sheet while it is read: the items it may have, and the line of each id found so far."""

    file: Path
    items: Mapping[str, Item]
    text_names: tuple[str, ...]
    known_texts: Set[tuple[str, ...]]
    lines: dict[str, int] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)


def read_annotations(files: Sequence[Path], items: Items) -> list[Annotation]:
    """Read one sheet per annotator; the file's name becomes the annotator's name.

    Raises UserError with file and line for unknown or duplicate ids, rows with another item's sentences, and
    answers that are no labels. Also raises UserError for a file that is given twice, holds no answers, or was
    made from another data set, and for files with different questions.
    """
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        names = [str(file) for file in files]
    for position, file in enumerate(files):
        if file.resolve() in {other.resolve() for other in files[:position]}:
            raise UserError(f"{file}: is given twice")
    known = {item.id: item for item in items.items}
    texts = {item.texts for item in items.items}
    sheets = [_Sheet(file, known, items.text_names, texts) for file in files]
    found = [_read(name, sheet) for name, sheet in zip(names, sheets, strict=True)]
    for file, annotation in zip(files, found, strict=True):
        if annotation.question != found[0].question:
            raise UserError(f"{file}: its question or labels are not those of {files[0]}")
    return found


def is_blank(file: Path) -> bool:
    """Return whether a file is an unanswered sheet."""
    try:
        rows = _rows(file)
        _, header = next(rows, (1, []))
        _, column = _question(header, file)
        return column == len(header) - 1 and not any("".join(cells[column:]).strip() for _, cells in rows)
    except UserError:
        return False


def _read(name: str, sheet: _Sheet) -> Annotation:
    rows = _rows(sheet.file)
    _, header = next(rows, (1, []))
    question, column = _question(header, sheet.file)
    answers: dict[str, str | None] = {}
    for line, cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) > len(header) or len(cells) <= header.index(ID):
            sheet.faults.at(sheet.file, line, f"has {len(cells)} fields, the header {len(header)}")
            continue
        row = dict(zip(header, (restored(cell) for cell in cells), strict=False))
        _check_row(row, line, sheet)
        answer = " ".join(row.get(header[column], "").split())
        try:
            answers[row[ID].strip()] = question.label(answer) if answer else None
        except ValueError as error:
            sheet.faults.at(sheet.file, line, error)
    if sheet.lines and not sheet.items.keys() & sheet.lines.keys():
        raise UserError(f"{sheet.file}: was made from another data set: none of its ids is one of this one's")
    sheet.faults.raise_if_any()
    if not any(answers.values()):
        raise UserError(
            f"{sheet.file}: holds no answers; they belong into the column '{header[column][:40]} ...'"
        )
    return Annotation(name, question, answers)


def _check_row(row: Mapping[str, str], line: int, sheet: _Sheet) -> None:
    """Add to `sheet.faults` an unknown or duplicate id, and sentences that belong to another id.

    Sentences that a spreadsheet merely changed (a dash, a number) are accepted.
    """
    identity = row[ID].strip()
    first = sheet.lines.setdefault(identity, line)
    item = sheet.items.get(identity)
    if item is None:
        sheet.faults.at(sheet.file, line, f"id '{identity}' is none of this data set's")
        return
    if first != line:
        sheet.faults.at(sheet.file, line, f"duplicate id '{identity}', first in line {first}")
    texts = tuple(row.get(name, "") for name in sheet.text_names)
    if texts != item.texts and texts in sheet.known_texts:
        sheet.faults.at(
            sheet.file, line, "its sentences belong to another id; was one column sorted without the others?"
        )


def _question(header: Sequence[str], file: Path) -> tuple[SheetQuestion, int]:
    """Return the question, and the column of the answers."""
    asked = {column: SheetQuestion.from_header(cell) for column, cell in enumerate(header)}
    found = {column: question for column, question in asked.items() if question is not None}
    if ID not in header or len(found) != 1:
        raise UserError(
            f"{file}:1: must be the header that was written, with a column '{ID}' and one like "
            "'Is it safe? Answer: safe | unsafe'"
        )
    column, question = next(iter(found.items()))
    return question, column


def _rows(file: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each row's first line, and the row's cells.

    Only the header's cells are stripped and unescaped.
    """
    check_file(file)
    allow_long_cells()
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            header = stream.readline()
            stream.seek(0)
            reader = csv.reader(stream, delimiter=_delimiter(header), strict=True)
            line = 1
            for cells in reader:
                yield line, [restored(cell.strip()) for cell in cells] if line == 1 else cells
                line = reader.line_num + 1
    except UnicodeDecodeError:
        raise UserError(f"{file}: is not UTF-8; save it as 'CSV UTF-8'") from None
    except csv.Error as error:
        raise UserError(f"{file}:{line}: is not CSV: {error}") from error
    except OSError as error:
        raise UserError(f"{file}: can't be read: {error.strerror or error}") from error


def _delimiter(header: str) -> str:
    """Return the first of `DELIMITERS` that makes "id" a cell of the header; the comma if none does."""
    found = (each for each in DELIMITERS if ID in next(csv.reader([header], delimiter=each), []))
    return next(found, DELIMITERS[0])
