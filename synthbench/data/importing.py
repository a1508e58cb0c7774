"""Reading JSONL, CSV and TSV files into data sets, with every bad line named at once."""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError, did_you_mean
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, Record, RecordKind, from_row, is_unicode
from synthbench.tables.characters import HOLDS_NUL, NUL, characters_of, is_invisible
from synthbench.tables.json_objects import json_object
from synthbench.tables.numbers import number_in, whole_number_in
from synthbench.tables.opening import allow_long_cells, ending, open_text

if TYPE_CHECKING:
    from _csv import Reader

MAX_FAULTS = 10
_OTHER_NAMES = "; other names are given by --column FIELD=NAME, or `columns:` in an experiment"
SUFFIXES = (".jsonl", ".csv", ".tsv")
# The first kind whose columns are all there is meant: a triplet has a pair's columns as well.
IMPORTABLE = (
    RecordKind.TRIPLET,
    RecordKind.PAIR,
    RecordKind.SCORED_PAIR,
    RecordKind.RANKING,
    RecordKind.SENTENCE,
)
REQUIRED = {kind: RECORD_TYPES[kind].own_fields() for kind in IMPORTABLE}
OWN = {kind: (*REQUIRED[kind], *RECORD_TYPES[kind].optional_fields) for kind in IMPORTABLE}
SHARED = tuple(each.name for each in fields(Record))


def import_file(file: Path, kind: RecordKind | None = None) -> SyntheticDataset:
    """Read a .jsonl, .csv or .tsv file (UTF-8, or one as .gz) that has at least the kind's own columns.

    A .csv and a .tsv have a header line; a .tsv has no quoting. Without `kind` the columns of the first row
    decide. Records without an id get one of their content.
    Raises UserError with a message for each fault of a line, "file:line: what is wrong", at most MAX_FAULTS:
    bad JSON or CSV, missing or unknown column, a score or grade that is no number in [0, 1], an empty
    sentence, bytes that are not UTF-8, an id that occurs twice. The lists of a ranking are JSON in a table.
    """
    faults = LineFaults(file)
    with opened(file) as stream:
        is_table = ending(file) != ".jsonl"
        rows = _table_rows(_reader(stream, file), faults) if is_table else jsonl_rows(stream, faults)
        first = next(rows, None)
        if first is None:
            faults.raise_if_any()
            raise UserError(f"{file}: holds no records")
        _check_separator(first, file)
        kind = kind or _inferred_kind(first, file)
        if is_table:
            _check_header(first, kind, faults)
        records = _checked(chain([first], rows), kind, faults)
        dataset = SyntheticDataset.create(
            kind, records, revisions={file.name: file_hash(file)}, notes=[f"imported from {file.name}"]
        )
    faults.raise_if_any()
    return dataset


@dataclass(frozen=True)
class ImportedRow:
    """The cells of one line by the names of their columns."""

    line: int
    cells: dict[str, Any]


@dataclass
class LineFaults:
    """The bad lines of one file."""

    file: Path
    messages: list[str] = field(default_factory=list)
    num_more: int = 0

    def add(self, line: int, message: str) -> None:
        """Note what is wrong with a line."""
        if len(self.messages) < MAX_FAULTS:
            self.messages.append(f"{self.file}:{line}: {message}")
        else:
            self.num_more += 1

    def raise_if_more_than(self, number: int) -> None:
        """Raise as `raise_if_any` does if there are more faults than these."""
        if len(self.messages) + self.num_more > number:
            self.raise_if_any()

    def raise_if_any(self) -> None:
        """Raise one UserError with the first faults and the number of the others."""
        if self.messages:
            more = [f"... and {self.num_more} more"] if self.num_more else []
            raise UserError(*self.messages, *more)


def opened(file: Path) -> TextIO:
    """Open a file that `import_file` reads; raises UserError if its name is another's or it can't be read."""
    allowed = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    if file.is_dir():
        raise UserError(f"{file}: is a folder, not a {allowed} file")
    if ending(file) not in SUFFIXES:
        is_text = ending(file) == ".txt"
        hint = (
            "; a table with tabs, such as SICK's, is a .tsv, and --kind sentence reads a list of sentences"
            if is_text
            else ""
        )
        raise UserError(f"{file}: the name must end in {allowed}{hint}")
    # Bad bytes become half characters instead of an exception, so that each line with some can be named.
    return open_text(file, newline="" if ending(file) == ".csv" else "\n", errors="surrogateescape")


def jsonl_rows(stream: Iterable[str], faults: LineFaults) -> Iterator[ImportedRow]:
    """Yield the objects of JSON lines without their nulls; blank lines are none, bad ones become faults."""
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        if not is_unicode(line):
            faults.add(number, "is not UTF-8")
            continue
        try:
            cells = json_object(line)
        except ValueError as error:
            faults.add(number, str(error))
            continue
        yield ImportedRow(number, {name: cell for name, cell in cells.items() if cell is not None})


def _reader(stream: Iterable[str], file: Path) -> "Reader":
    allow_long_cells()
    if ending(file) == ".csv":
        return csv.reader(stream, strict=True)
    lines = (line.removesuffix("\n").removesuffix("\r") for line in stream)
    return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True)


def _table_rows(reader: "Reader", faults: LineFaults) -> Iterator[ImportedRow]:
    header: list[str] = []
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            unclosed = "unexpected end of data" in str(error)
            fault = "a quotation mark is never closed" if unclosed else error
            faults.add(line, f"is not CSV: {fault}; the rest of the file was not read")
            return
        if not cells:
            continue
        if not is_unicode("".join(cells)):
            faults.add(line, "is not UTF-8")
        elif not header:
            header = cells
            if len(set(header)) < len(header):
                faults.add(line, "two columns have the same name")
                return
        elif len(cells) != len(header):
            faults.add(line, f"has {len(cells)} fields, the header {len(header)}")
        else:
            row = dict(zip(header, cells, strict=True))
            yield ImportedRow(line, {name: cell for name, cell in row.items() if cell or name != "seed"})


def _check_separator(row: ImportedRow, file: Path) -> None:
    """Raise where the header is one column, and would be several by another separator."""
    header = next(iter(row.cells), "")
    if ending(file) == ".jsonl" or len(row.cells) != 1:
        return
    for separator, name, instead in (
        ("\t", "tabs", "name the file .tsv"),
        (",", "commas", "name the file .csv"),
        (";", "semicolons", "use commas (.csv) or tabs (.tsv)"),
    ):
        if separator in header:
            raise UserError(f"{file}:1: the columns are separated by {name}; {instead}")


def _inferred_kind(row: ImportedRow, file: Path) -> RecordKind:
    for kind in IMPORTABLE:
        if all(name in row.cells for name in REQUIRED[kind]):
            return kind
    known = {*SHARED, *chain.from_iterable(REQUIRED.values())}
    unknown = [name for name in row.cells if name not in known]
    hints = [hint for hint in (_nearest(name, known) for name in unknown) if hint]
    if {"text_a", "label"} <= row.cells.keys():
        hints = ["; is it DINO's format? `synthbench data import FILE FOLDER --format dino` reads that"]
    elif not hints and len(unknown) == len(row.cells) and ending(file) != ".jsonl":
        hints = ["; is the line with the columns' names missing?"]
    kinds = "; ".join(f"{kind}: {', '.join(REQUIRED[kind])}" for kind in IMPORTABLE)
    where = f"{file}:{row.line if ending(file) == '.jsonl' else 1}"
    columns = ", ".join(row.cells) or "(none)"
    raise UserError(f"{where}: columns {columns} make no record ({kinds}){''.join(hints[:1])}{_OTHER_NAMES}")


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" if a known name is near, else ""."""
    return did_you_mean(name, get_close_matches(name, list(known), n=1))


def _check_header(row: ImportedRow, kind: RecordKind, faults: LineFaults) -> None:
    """Raise what is wrong with a CSV file's columns once, and not again for each line."""
    for problem in _column_problems(row.cells, kind, (*SHARED, *OWN[kind])):
        faults.add(1, problem)
    faults.raise_if_any()


def _checked(rows: Iterable[ImportedRow], kind: RecordKind, faults: LineFaults) -> Iterator[Record]:
    """Yield the good rows as records and note what is wrong with the others."""
    columns = (*SHARED, *OWN[kind])
    lines: dict[str, int] = {}
    for row in rows:
        problems = [*_column_problems(row.cells, kind, columns)]
        cells: dict[str, Any] = {}
        for name in (name for name in columns if name in row.cells):
            try:
                cells[name] = cell_value(name, row.cells[name], is_sentence=name in OWN[kind])
            except ValueError as error:
                problems.append(str(error))
        problems.extend(unmatched_lists(cells))
        identity = cells.get("id", "")
        if identity and lines.setdefault(identity, row.line) != row.line:
            problems.append(f"duplicate id '{identity}', first in line {lines[identity]}")
        for problem in problems:
            faults.add(row.line, problem)
        if not problems:
            yield from_row(kind, cells)


def _column_problems(cells: Iterable[str], kind: RecordKind, columns: Sequence[str]) -> Iterator[str]:
    present = set(cells)
    for name in REQUIRED[kind]:
        if name not in present:
            yield f"no '{name}', which a {kind} must have"
    for name in sorted(present - set(columns)):
        yield f"unknown column '{name}'{_nearest(name, columns)}"


_TEXTS = '["text", "text"]'
_EXAMPLES = {
    "candidates": _TEXTS,
    "further_negatives": _TEXTS,
    "further_queries": _TEXTS,
    "grades": "[1, 0]",
    "scores": "[7.5, -2.1]",
}
MAY_BE_EMPTY = ("further_negatives", "further_queries", "scores")
_ITEM_NAMES = {
    "candidates": "candidate {}",
    "further_negatives": "further negative {}",
    "further_queries": "further query {}",
    "grades": "grade (candidate {})",
    "scores": "score {}",
}


def cell_value(name: str, value: object, *, is_sentence: bool) -> Any:  # noqa: ANN401 - the column's type
    """Return what a cell of the column `name` holds; raises ValueError saying what is wrong with it."""
    if name == "score":
        return _score(value, name)
    if name == "seed":
        return _seed(value)
    if name in ("candidates", "further_negatives", "further_queries"):
        return [_text(text, one, is_sentence=is_sentence) for one, text in numbered(value, name)]
    if name == "grades":
        return [_score(grade, one) for one, grade in numbered(value, name)]
    if name == "scores":
        return teacher_scores(value)
    return _text(value, name, is_sentence=is_sentence)


def numbered(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Yield the name ("candidate 2") and value of each item of a cell that holds a list, or JSON text of one.

    Raises ValueError if there is no list, or nothing in one that may not be empty.
    """
    items = value
    if isinstance(value, str):
        try:
            items = json.loads(value)
        except (ValueError, RecursionError):
            items = None
    if not isinstance(items, list):
        raise ValueError(f"{name} is not a list like {_EXAMPLES[name]}: {value!r}")
    if not items and name not in MAY_BE_EMPTY:
        raise ValueError(f"{name} is empty")
    for number, item in enumerate(items, start=1):
        yield _ITEM_NAMES[name].format(number), item


def teacher_scores(value: object) -> list[float]:
    """Return the scores of a triplet, of any range; raises ValueError if one is no finite number."""
    return [_finite(score, one) for one, score in numbered(value, "scores")]


def unmatched_lists(cells: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong where candidates and grades, or sentences and scores, are not of one number."""
    if cells.get("scores"):
        num_negatives = 1 + len(cells.get("further_negatives", ()))
        if len(cells["scores"]) != 1 + num_negatives:
            yield f"{len(cells['scores'])} scores, but 1 positive and {num_negatives} negatives"
    sizes = {name: len(cells[name]) for name in ("candidates", "grades") if name in cells}
    if len(set(sizes.values())) > 1:
        yield f"{sizes['candidates']} candidates, but {sizes['grades']} grades"


def _text(value: object, name: str, *, is_sentence: bool) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text: {value!r}")
    if not is_unicode(value):
        raise ValueError(f"{name} holds a lone surrogate, which is no character")
    if NUL in value:
        raise ValueError(f"{name} {HOLDS_NUL}")
    if is_sentence and is_invisible(value):
        raise ValueError(f"{name} is empty{characters_of(value)}")
    return value


def _number(value: object, name: str) -> float:
    try:
        number = number_in(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if number != number:
        raise ValueError(f"{name} is NaN")
    return number


def _finite(value: object, name: str) -> float:
    number = _number(value, name)
    if math.isinf(number):
        raise ValueError(f"{name} is infinite")
    return number


def _score(value: object, name: str) -> float:
    score = _number(value, name)
    if not 0.0 <= score <= 1.0:
        raise ValueError(
            f"{name} {value} is outside [0, 1]; others are read with --score-range LOW,HIGH, or score_range"
            " in an experiment"
        )
    return score


def _seed(value: object) -> int:
    try:
        seed = whole_number_in(value) if isinstance(value, str) else value
    except ValueError:
        seed = None
    if isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) >= 2**63:
        raise ValueError(f"seed is not a whole number of 64 bits: {value!r}")
    return seed
