"""Escape untrusted text for terminals, spreadsheets and Markdown."""

import csv
from collections.abc import Iterable
from typing import TextIO

from synthbench.base.patterns import linear_pattern

# Control characters, and characters that reverse the direction of text.
_CONTROL = linear_pattern(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Beginnings that spreadsheets read as a formula, after any quotes or white space, and in full-width form.
_FORMULA = linear_pattern(r"^'*+(?:\s*[=+\-@＝＋－＠]|[\t\r\n])")
_NUMBER = linear_pattern(r"^[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?%?")
_MARKDOWN = linear_pattern(r"([\\`*_{}\[\]<>|~#$&])")


def shown(text: str) -> str:
    r"""Return the text with control and bidirectional characters escaped (\u001b); \t and \n stay."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def harmless(text: str) -> str:
    """Return the text as a cell that is no formula, after an apostrophe if needed; undo with `restored`."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def restored(cell: str) -> str:
    """Return the original text of a cell that `harmless` made."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


class CsvWriter:
    """Writes CSV for spreadsheets; passes every text through `harmless`."""

    def __init__(self, stream: TextIO, line_end: str = "\n") -> None:
        self._writer = csv.writer(stream, lineterminator=line_end)

    def writerow(self, cells: Iterable[object]) -> None:
        """Write one row."""
        self._writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])

    def writerows(self, rows: Iterable[Iterable[object]]) -> None:
        """Write rows."""
        for row in rows:
            self.writerow(row)


def markdown_text(text: str) -> str:
    """Return the text on one line, with all Markdown and table syntax escaped."""
    return _MARKDOWN.sub(r"\\\1", shown(" ".join(text.split())))
