"""Reading JSONL and CSV files into data sets, with every bad line named at once."""

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from synthbench.data.dataset import SyntheticDataset, from_row, is_unicode
from synthbench.data.records import RECORD_TYPES, Record, RecordKind
from synthbench.errors import UserError, did_you_mean

MAX_FAULTS = 10
# The first kind whose columns are all there is meant: a triplet has a pair's columns as well.
IMPORTABLE = (RecordKind.TRIPLET, RecordKind.PAIR, RecordKind.SCORED_PAIR, RecordKind.SENTENCE)
REQUIRED = {
    kind: (*RECORD_TYPES[kind].text_fields, *(["score"] if kind == RecordKind.SCORED_PAIR else []))
    for kind in IMPORTABLE
}
SHARED = tuple(each.name for each in fields(Record))


def import_file(file: Path, kind: RecordKind | None = None) -> SyntheticDataset:
    """Read a .jsonl or .csv file (UTF-8, header line in CSV) that has at least the kind's own columns.

    Without `kind` the columns of the first row decide. Records without an id get one of their content.
    Raises UserError with a message for each fault of a line, "file:line: what is wrong", at most MAX_FAULTS:
    bad JSON or CSV, missing or unknown column, a score that is no number in [0, 1], an empty sentence, bytes
    that are not UTF-8, an id that occurs twice.
    """
    faults = _Faults(file)
    with _opened(file) as stream:
        rows = _csv_rows(stream, faults) if file.suffix == ".csv" else _jsonl_rows(stream, faults)
        first = next(rows, None)
        if first is None:
            faults.raise_if_any()
            raise UserError(f"{file}: holds no records")
        kind = kind or _inferred_kind(first, file)
        if file.suffix == ".csv":
            _check_header(first, kind, faults)
        records = _checked(chain([first], rows), kind, faults)
        dataset = SyntheticDataset.create(
            kind, records, revisions={file.name: _content_hash(file)}, notes=[f"imported from {file.name}"]
        )
    faults.raise_if_any()
    return dataset


@dataclass(frozen=True)
class _Row:
    line: int
    cells: dict[str, Any]


@dataclass
class _Faults:
    """The bad lines of one file."""

    file: Path
    messages: list[str] = field(default_factory=list)
    num_more: int = 0

    def add(self, line: int, message: str) -> None:
        if len(self.messages) < MAX_FAULTS:
            self.messages.append(f"{self.file}:{line}: {message}")
        else:
            self.num_more += 1

    def raise_if_any(self) -> None:
        if self.messages:
            more = [f"... and {self.num_more} more"] if self.num_more else []
            raise UserError(*self.messages, *more)


def _opened(file: Path) -> TextIO:
    if file.suffix not in (".jsonl", ".csv"):
        raise UserError(f"{file}: neither .jsonl nor .csv, which are what can be imported")
    # Bad bytes become half characters instead of an exception, so that each line with some can be named.
    newline = "" if file.suffix == ".csv" else "\n"
    try:
        return file.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline)
    except OSError as error:
        raise UserError(f"{file}: can't be read: {error.strerror}") from error


def _content_hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _jsonl_rows(stream: Iterable[str], faults: _Faults) -> Iterator[_Row]:
    for number, line in enumerate(stream, start=1):
        if not line.strip():
            continue
        if not is_unicode(line):
            faults.add(number, "is not UTF-8")
            continue
        try:
            cells = json.loads(line.rstrip())
        except (ValueError, RecursionError) as error:
            where = (
                f"{error.msg} in column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
            )
            faults.add(number, f"is not JSON: {where}")
            continue
        if isinstance(cells, dict):
            yield _Row(number, {name: cell for name, cell in cells.items() if cell is not None})
        else:
            faults.add(number, 'is not a JSON object like {"sentence1": ..., ...}')


def _csv_rows(stream: Iterable[str], faults: _Faults) -> Iterator[_Row]:
    reader = csv.reader(stream, strict=True)
    header: list[str] = []
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            faults.add(line, f"is not CSV: {error}; the rest of the file was not read")
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
            yield _Row(line, {name: cell for name, cell in row.items() if cell or name != "seed"})


def _inferred_kind(row: _Row, file: Path) -> RecordKind:
    for kind in IMPORTABLE:
        if all(name in row.cells for name in REQUIRED[kind]):
            return kind
    known = {*SHARED, *chain.from_iterable(REQUIRED.values())}
    unknown = [f"'{name}'{did_you_mean(name, known)}" for name in row.cells if name not in known]
    kinds = "; ".join(f"{kind}: {', '.join(REQUIRED[kind])}" for kind in IMPORTABLE)
    found = f"unknown column {unknown[0]}" if unknown else f"columns {', '.join(row.cells) or '(none)'}"
    raise UserError(f"{file}:{row.line}: not the columns of any kind of record ({kinds}): {found}")


def _check_header(row: _Row, kind: RecordKind, faults: _Faults) -> None:
    """Raise what is wrong with a CSV file's columns once, and not again for each line."""
    for problem in _column_problems(row.cells, kind, (*SHARED, *REQUIRED[kind])):
        faults.add(1, problem)
    faults.raise_if_any()


def _checked(rows: Iterable[_Row], kind: RecordKind, faults: _Faults) -> Iterator[Record]:
    """Yield the good rows as records and note what is wrong with the others."""
    columns = (*SHARED, *REQUIRED[kind])
    lines: dict[str, int] = {}
    for row in rows:
        problems = [*_column_problems(row.cells, kind, columns)]
        cells: dict[str, Any] = {}
        for name in (name for name in columns if name in row.cells):
            try:
                cells[name] = _cell(name, row.cells[name], is_sentence=name in REQUIRED[kind])
            except ValueError as error:
                problems.append(str(error))
        identity = cells.get("id", "")
        if identity and lines.setdefault(identity, row.line) != row.line:
            problems.append(f"id '{identity}' stands in line {lines[identity]} already")
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
        yield f"unknown column '{name}'{did_you_mean(name, columns)}"


def _cell(name: str, value: object, *, is_sentence: bool) -> str | float | int:
    if name == "score":
        return _score(value)
    if name == "seed":
        return _seed(value)
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text: {value!r}")
    if not is_unicode(value):
        raise ValueError(f"{name} has half a character (a lone surrogate)")
    if is_sentence and not value.strip():
        raise ValueError(f"{name} is empty")
    return value


def _score(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"score is not a number: {value!r}")
    try:
        score = float(value)
    except ValueError:
        raise ValueError(f"score is not a number: {value!r}") from None
    except OverflowError:
        score = float("inf")
    if score != score:
        raise ValueError("score is NaN")
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"score {value} is outside [0, 1]")
    return score


def _seed(value: object) -> int:
    try:
        seed = int(value) if isinstance(value, str) else value
    except ValueError:
        seed = None
    if isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) >= 2**63:
        raise ValueError(f"seed is not a whole number of 64 bits: {value!r}")
    return seed
