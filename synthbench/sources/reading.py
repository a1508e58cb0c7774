"""What all readers of sources share: the records read, and every fault named by file and line."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError
from synthbench.base.user_files import check_file
from synthbench.data.records import Record
from synthbench.tables.characters import HOLDS_NUL, NUL, characters_of, is_invisible
from synthbench.tables.numbers import number_in
from synthbench.tables.opening import open_bytes

NO_GOLD_SCORE = "no gold score"


@dataclass
class Content:
    """Records in the order of the source, how many lines were left out and why, and remarks for people."""

    records: list[Record] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def drop(self, reason: str) -> None:
        """Count one line that is left out."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1


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


class SourceFaults:
    """Collects the faults of one source, to be raised together."""

    SHOWN = 10

    def __init__(self) -> None:
        self.messages: list[str] = []

    def add(self, message: str) -> None:
        """Note one fault."""
        self.messages.append(message)

    def raise_if_any(self) -> None:
        """Raise one UserError with the first faults and the number of the others."""
        if not self.messages:
            return
        hidden = len(self.messages) - self.SHOWN
        more = [f"... and {hidden} more"] if hidden > 0 else []
        raise UserError(*self.messages[: self.SHOWN], *more)


class NotUTF8Error(UserError):
    """A file holds other bytes than UTF-8."""


def read_text(path: Path, encoding: Literal["utf-8", "latin-1"] = "utf-8") -> str:
    """Return a file's text with its line ends as they are.

    Raises UserError if the file can't be read, NotUTF8Error if it is not what it should be (line and byte).
    """
    with open_bytes(path) as stream:
        raw = stream.read()
    try:
        return raw.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        byte = f"byte 0x{raw[error.start]:02X} at position {column}"
        raise NotUTF8Error(
            f"{path}:{line}: not UTF-8 ({byte} of the line); convert the file to UTF-8"
        ) from error


def read_lines(path: Path, encoding: Literal["utf-8", "latin-1"] = "utf-8") -> list[str]:
    r"""Return the lines of a file, without their ends (\n or \r\n).

    Only \n ends a line: the separators that `str.splitlines` knows beyond it occur inside real sentences.

    Raises UserError as `read_text` does.
    """
    text = read_text(path, encoding)
    within = text.rstrip("\r\n")
    if "\r" in within and "\n" not in within:
        raise UserError(f"{path}:1: its lines end in carriage returns alone; save it with line feeds")
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def is_blank(value: object) -> bool:
    """Say whether a cell holds nothing, or nothing that is seen."""
    return value is None or (isinstance(value, str) and is_invisible(value))


def sentence_of(value: object, name: str) -> str:
    """Return the sentence in a cell; raises ValueError if it is empty or no text."""
    if is_blank(value):
        raise ValueError(f"{name} is empty{characters_of(value)}")
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}, not text")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        raise ValueError(f"{name} holds a lone surrogate, which is no character")
    if NUL in value:
        raise ValueError(f"{name} {HOLDS_NUL}")
    return value


def score_of(value: object, score_range: tuple[float, float], name: str = "score") -> float:
    """Return the score in a cell, mapped linearly from `score_range` to [0, 1].

    Raises ValueError if it is no number, NaN, or outside the range.
    """
    low, high = score_range
    try:
        score = number_in(value)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from None
    if math.isnan(score):
        raise ValueError(f"{name} is NaN; a number from {low:g} to {high:g} is needed")
    if not low <= score <= high:
        raise ValueError(f"{name} {score:g} is outside {low:g} to {high:g}")
    return (score - low) / (high - low)
