"""One reader for texts and tables from outside: lines, rows and cells, every fault with file and line."""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError
from synthbench.base.user_files import check_file
from synthbench.data.records import Record, is_unicode
from synthbench.tables.characters import HOLDS_NUL, NUL, characters_of, is_invisible
from synthbench.tables.json_objects import json_object
from synthbench.tables.numbers import number_in
from synthbench.tables.opening import allow_long_cells, ending, open_text

NO_GOLD_SCORE = "no gold score"
BLANK_TEXT = "blank text"
TABLES = "the name of a table ends in .tsv, and standard sets such as SICK are read by `task:`"
BYTE_ORDER_MARK = "\ufeff"
Row = tuple[int, dict[str, Any]]
"""The number of a row's first line, and its cells by the names of their columns."""
Cells = tuple[int, list[str]]


@dataclass
class Content:
    """Records in the order of the source, how many lines were left out and why, and remarks for people."""

    records: list[Record] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str, number: int = 1) -> None:
        """Count lines that are left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + number


def hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file, by the same names."""
    found = {}
    for name, path in files.items():
        check_file(path)
        found[name] = file_hash(path)
    return found


def missing(paths: Iterable[Path]) -> list[Path]:
    """Return the paths that are no files."""
    return [path for path in paths if not path.is_file()]


class Faults:
    """Collects the faults of files, to be raised together."""

    SHOWN = 10

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.number = 0

    def add(self, message: str) -> None:
        """Note one fault."""
        self.number += 1
        if self.number <= self.SHOWN:
            self.messages.append(message)

    def at(self, path: Path, line: int, message: object) -> None:
        """Note what is wrong with a line."""
        self.add(f"{path}:{line}: {message}")

    def raise_if_any(self) -> None:
        """Raise one UserError with the first faults and the number of the others."""
        if self.messages:
            hidden = self.number - self.SHOWN
            raise UserError(*self.messages, *([f"... and {hidden} more"] if hidden > 0 else []))


class FirstLines:
    """The line in which each id is first."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def check(self, name: str, line: int, what: str = "id") -> None:
        """Raise ValueError if an id that is not empty was in another line before."""
        if name and self._lines.setdefault(name, line) != line:
            raise ValueError(f"duplicate {what} '{name}', first in line {self._lines[name]}")


def lines(path: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    r"""Yield number and text of each line, without its end (\n or \r\n); lines that are not UTF-8 are faults.

    Only \n ends a line: the separators that `str.splitlines` knows beyond it occur inside real sentences.

    Raises UserError if the file can't be read, or only carriage returns end its lines.
    """
    # Bad bytes become half characters instead of an exception, so that each line with some can be named.
    with open_text(path, errors="surrogateescape") as stream:
        first, second = stream.readline(), stream.readline()
        if "\r" in first.rstrip("\r\n") and not second:
            raise UserError(f"{path}:1: its lines end in carriage returns alone; save it with line feeds")
        for number, line in enumerate(chain([first, second] if second else [first], stream), start=1):
            if fault := _no_utf8(line):
                faults.at(path, number, fault)
            elif line:
                yield number, line.removesuffix("\n").removesuffix("\r")


def read_lines(path: Path) -> list[str]:
    """Return all lines as `lines` yields them; raises UserError as it does, and for what is not UTF-8."""
    faults = Faults()
    found = [line for _, line in lines(path, faults)]
    faults.raise_if_any()
    return found


def _no_utf8(line: str) -> str:
    """Say which byte of a line is not UTF-8, "" if none is."""
    if line.isascii() or is_unicode(line):
        return ""
    index = next(index for index, character in enumerate(line) if "\ud800" <= character <= "\udfff")
    byte, position = ord(line[index]) - 0xDC00, len(line[:index].encode()) + 1
    return f"not UTF-8 (byte 0x{byte:02X} at position {position} of the line); convert the file to UTF-8"


def json_lines(path: Path, faults: Faults) -> Iterator[Row]:
    """Yield the number and the object of each line that is not blank; all else is a fault."""
    for number, line in lines(path, faults):
        if line.strip():
            try:
                yield number, json_object(line)
            except ValueError as error:
                faults.at(path, number, error)


def open_table(path: Path, faults: Faults, *, takes_marks: bool = False) -> tuple[list[str], Iterator[Cells]]:
    """Return a table's first line, [] if it has none, and the cells of all others, blank ones left out.

    A .csv has quotes as spreadsheets write them, a .tsv has none. Rows that are not as long as the first one
    are faults, and so is a byte order mark within the file unless it `takes_marks` as part of texts.
    Raises UserError if the first line can't be read.
    """
    found = _comma_separated(path, faults) if ending(path) == ".csv" else _tab_separated(path, faults)
    _, first = next(found, (0, []))
    faults.raise_if_any()
    return first, _whole_rows(path, len(first), found, faults, takes_marks=takes_marks)


def _whole_rows(
    path: Path, width: int, rows: Iterator[Cells], faults: Faults, *, takes_marks: bool
) -> Iterator[Cells]:
    for number, cells in rows:
        if width > 1 and not any(cell.strip() for cell in cells):
            continue
        if cells[0].startswith(BYTE_ORDER_MARK) and not takes_marks:
            faults.at(path, number, "begins with a byte order mark; were two files joined?")
        elif len(cells) != width:
            faults.at(path, number, f"{len(cells)} columns, {width} in line 1")
        else:
            yield number, cells


def _tab_separated(path: Path, faults: Faults) -> Iterator[Cells]:
    return ((number, line.split("\t")) for number, line in lines(path, faults))


def _comma_separated(path: Path, faults: Faults) -> Iterator[Cells]:
    allow_long_cells()
    bad: list[tuple[int, str]] = []
    start = 1
    with open_text(path, newline="", errors="surrogateescape") as stream:
        reader = csv.reader(_noting(stream, bad), strict=True)
        try:
            for cells in reader:
                for line, fault in bad:
                    faults.at(path, line, fault)
                if cells and not bad:
                    yield start, cells
                bad.clear()
                start = reader.line_num + 1
        except csv.Error as error:
            unclosed = "unexpected end of data" in str(error)
            what = "a quotation mark is never closed" if unclosed else error
            faults.at(path, start, f"not CSV: {what}; the rest of the file was not read")
            _, first = next(lines(path, Faults()), (1, ""))
            if "\t" in first:
                faults.add(tabs_in_csv(path))


def _noting(stream: TextIO, bad: list[tuple[int, str]]) -> Iterator[str]:
    """Yield the lines of a stream, and note those that are not UTF-8."""
    for number, line in enumerate(stream, start=1):
        if fault := _no_utf8(line):
            bad.append((number, fault))
        yield line


def tabs_in_csv(path: Path) -> str:
    """Say how a table is read whose columns are separated by tabs, not commas."""
    return f"{path}: tabs are between its columns: {TABLES}"


def is_blank(value: object) -> bool:
    """Say whether a cell holds nothing, or nothing that is seen."""
    return value is None or (isinstance(value, str) and is_invisible(value))


def text_of(value: object, name: str) -> str:
    """Return the text in a cell, which may be blank; raises ValueError if it is none."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, not text")
    if not is_unicode(value):
        raise ValueError(f"{name} holds a lone surrogate, which is no character")
    if NUL in value:
        raise ValueError(f"{name} {HOLDS_NUL}")
    return value


def sentence_of(value: object, name: str) -> str:
    """Return the sentence in a cell; raises ValueError if it is empty or no text."""
    if is_blank(value):
        raise ValueError(f"{name} is empty{characters_of(value)}")
    return text_of(value, name)


def _finite(value: object, name: str, hint: str = "") -> float:
    try:
        number = number_in(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if math.isnan(number):
        raise ValueError(f"{name} is NaN{hint}")
    return number


class OutsideRangeError(ValueError):
    """A score is outside the range of scores."""


def score_of(value: object, score_range: tuple[float, float], name: str = "score") -> float:
    """Return the score in a cell, mapped linearly from `score_range` to [0, 1].

    Raises ValueError if it is no number, NaN, or outside the range.
    """
    low, high = score_range
    score = _finite(value, name, f"; a number from {low:g} to {high:g} is needed")
    if not low <= score <= high:
        shown = f"{score:g}" if math.isfinite(score) else value
        raise OutsideRangeError(f"{name} {shown} is outside {low:g} to {high:g}")
    return (score - low) / (high - low)


_TEXTS = '["text", "text"]'
_LISTS = {
    "candidates": ("candidate {}", _TEXTS),
    "further_negatives": ("further negative {}", _TEXTS),
    "further_queries": ("further query {}", _TEXTS),
    "grades": ("grade (candidate {})", "[1, 0]"),
    "scores": ("score {}", "[7.5, -2.1]"),
}
"""The columns that hold lists: what an item is called, and an example."""
MAY_BE_EMPTY = ("further_negatives", "further_queries", "scores")


def list_of(value: object, name: str, score_range: tuple[float, float]) -> list[Any]:
    """Return a cell's list, or that of its JSON text: sentences, grades in [0, 1] or a teacher's scores.

    Raises ValueError if there is no list, a wrong item in it, or nothing in one that may not be empty.
    """
    items, (title, example) = value, _LISTS[name]
    if isinstance(value, str):
        try:
            items = json.loads(value)
        except (ValueError, RecursionError):
            items = None
    if not isinstance(items, list):
        raise ValueError(f"{name} is not a list like {example}: {value!r}")
    if not items and name not in MAY_BE_EMPTY:
        raise ValueError(f"{name} is empty")
    named = ((title.format(number), item) for number, item in enumerate(items, start=1))
    if name == "grades":
        return [score_of(item, score_range, one) for one, item in named]
    return [_teacher_score(item, one) if name == "scores" else sentence_of(item, one) for one, item in named]


def _teacher_score(value: object, name: str) -> float:
    number = _finite(value, name)
    if math.isinf(number):
        raise ValueError(f"{name} is infinite")
    return number


def value_of(value: object, name: str, score_range: tuple[float, float] = (0.0, 1.0)) -> Any:  # noqa: ANN401
    """Return what a cell of a record's own column holds; raises ValueError saying what is wrong with it."""
    if name == "score":
        return score_of(value, score_range)
    return list_of(value, name, score_range) if name in _LISTS else sentence_of(value, name)


def unmatched_lists(cells: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong where candidates and grades, or sentences and scores, are not of one number."""
    if cells.get("scores"):
        num_negatives = 1 + len(cells.get("further_negatives", ()))
        if len(cells["scores"]) != 1 + num_negatives:
            yield f"{len(cells['scores'])} scores, but 1 positive and {num_negatives} negatives"
    sizes = {name: len(cells[name]) for name in ("candidates", "grades") if name in cells}
    if len(set(sizes.values())) > 1:
        yield f"{sizes['candidates']} candidates, but {sizes['grades']} grades"
