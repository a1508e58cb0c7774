"""Reading of external texts and tables: lines, rows and cells; every fault has its file and line."""

import csv
import json
import math
from collections.abc import Iterator, Mapping
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
"""The line number where a row starts, and its cells by column."""
Cells = tuple[int, list[str]]


@dataclass
class Content:
    """Records in source order, the number of dropped lines by reason, and notes for people."""

    records: list[Record] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str, number: int = 1) -> None:
        """Count dropped lines."""
        self.dropped[reason] = self.dropped.get(reason, 0) + number


def hashes(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of each file under the same names."""
    found = {}
    for name, path in files.items():
        check_file(path)
        found[name] = file_hash(path)
    return found


class Faults:
    """Collects the faults of files, to raise all in one UserError."""

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
        """Note a fault of a line."""
        self.add(f"{path}:{line}: {message}")

    def raise_if_any(self) -> None:
        """Raise a UserError with the first ten faults and the number of further faults, if there are any."""
        if self.messages:
            hidden = self.number - self.SHOWN
            raise UserError(*self.messages, *([f"... and {hidden} more"] if hidden > 0 else []))


class FirstLines:
    """The line in which each id first occurs."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def check(self, name: str, line: int, what: str = "id") -> None:
        """Raise ValueError if a non-empty id occurred in an earlier line."""
        if name and self._lines.setdefault(name, line) != line:
            raise ValueError(f"duplicate {what} '{name}', first in line {self._lines[name]}")


def lines(path: Path, faults: Faults) -> Iterator[tuple[int, str]]:
    r"""Yield number and text of each line, without its end (\n or \r\n); note lines that are not UTF-8.

    Only \n ends a line: the other separators of `str.splitlines` occur inside real sentences.

    Raises UserError if the file can't be read, or if its lines end with carriage returns only.
    """
    # Invalid bytes become surrogates instead of an exception, so that every bad line can be named.
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
    """Return all lines that `lines` yields; raises UserError as it does, and for invalid UTF-8."""
    faults = Faults()
    found = [line for _, line in lines(path, faults)]
    faults.raise_if_any()
    return found


def _no_utf8(line: str) -> str:
    """Return a message on a line's first byte that is not UTF-8, "" if the line is valid."""
    if line.isascii() or is_unicode(line):
        return ""
    index = next(index for index, character in enumerate(line) if "\ud800" <= character <= "\udfff")
    byte, position = ord(line[index]) - 0xDC00, len(line[:index].encode()) + 1
    return f"not UTF-8 (byte 0x{byte:02X} at position {position} of the line); convert the file to UTF-8"


def json_lines(path: Path, faults: Faults) -> Iterator[Row]:
    """Yield the line number and JSON object of each non-blank line; note all invalid lines as faults."""
    for number, line in lines(path, faults):
        if line.strip():
            try:
                yield number, json_object(line)
            except ValueError as error:
                faults.at(path, number, error)


def open_table(path: Path, faults: Faults, *, takes_marks: bool = False) -> tuple[list[str], Iterator[Cells]]:
    """Return a table's header ([] for an empty file), and the cells of all further non-blank rows.

    A .csv has spreadsheet quoting, a .tsv none. Rows longer or shorter than the header are faults, and so are
    byte order marks inside the file unless `takes_marks`. Raises UserError if the header can't be read.
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
    """Yield the lines of a stream; add (line number, fault) to `bad` for each line of invalid UTF-8."""
    for number, line in enumerate(stream, start=1):
        if fault := _no_utf8(line):
            bad.append((number, fault))
        yield line


def tabs_in_csv(path: Path) -> str:
    """Return the message for a .csv file whose columns are separated by tabs."""
    return f"{path}: tabs are between its columns: {TABLES}"


def is_blank(value: object) -> bool:
    """Return whether a cell is empty or has only invisible characters."""
    return value is None or (isinstance(value, str) and is_invisible(value))


def text_of(value: object, name: str) -> str:
    """Return a cell's text, which may be blank; raises ValueError if the cell holds no text."""
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, not text")
    if not is_unicode(value):
        raise ValueError(f"{name} holds a lone surrogate, which is no character")
    if NUL in value:
        raise ValueError(f"{name} {HOLDS_NUL}")
    return value


def sentence_of(value: object, name: str) -> str:
    """Return a cell's sentence; raises ValueError if it is empty or not a text."""
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
    """A score is outside the allowed range."""


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
"""List column -> the word for an item, and an example of a cell."""
MAY_BE_EMPTY = ("further_negatives", "further_queries", "scores")


def list_of(value: object, name: str, score_range: tuple[float, float]) -> list[Any]:
    """Return a cell's list, or the list in its JSON text: sentences, grades in [0, 1] or a teacher's scores.

    Raises ValueError if there is no list, if an item is wrong, or if the list is empty but must not be.
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


def _likelihood(value: object) -> float:
    number = _finite(value, "likelihood")
    if not 0 <= number <= 1:
        raise ValueError(f"likelihood {number:g} is outside 0 to 1")
    return number


def value_of(value: object, name: str, score_range: tuple[float, float] = (0.0, 1.0)) -> Any:  # noqa: ANN401
    """Return a cell as column `name` needs it: a sentence, score, likelihood or list.

    Raises ValueError if the cell holds no such value.
    """
    if name == "score":
        return score_of(value, score_range)
    if name == "likelihood":
        return _likelihood(value)
    return list_of(value, name, score_range) if name in _LISTS else sentence_of(value, name)


def unmatched_lists(cells: Mapping[str, Any]) -> Iterator[str]:
    """Yield a fault if candidates and grades, or a triplet's texts and scores, differ in number."""
    if cells.get("scores"):
        num_negatives = 1 + len(cells.get("further_negatives", ()))
        if len(cells["scores"]) != 1 + num_negatives:
            yield f"{len(cells['scores'])} scores, but 1 positive and {num_negatives} negatives"
    sizes = {name: len(cells[name]) for name in ("candidates", "grades") if name in cells}
    if len(set(sizes.values())) > 1:
        yield f"{sizes['candidates']} candidates, but {sizes['grades']} grades"
