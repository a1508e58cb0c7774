"""Which columns of a table hold texts and scores, by their names and cells."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.listing import listed
from synthbench.base.patterns import linear_pattern
from synthbench.base.user_files import check_file
from synthbench.data.reading import Faults, Row, is_blank, json_lines, open_table
from synthbench.sources.files import parquet_rows
from synthbench.sources.models import SUFFIXES
from synthbench.tables.numbers import number_in
from synthbench.tables.opening import ending

Column = str | int
"""A column's name, or its number in a file without header."""

TEXT_NAMES = (
    *("sentence", "text", "passage", "content", "body", "document", "message", "description", "comment"),
    *("review", "question", "query", "title"),
)
SCORE_NAMES = (
    *("score", "similarity", "relatedness", "gold", "rating", "grade", "label"),
    *("duplicate", "quality", "relevance", "judgement", "judgment"),
)
KNOWN_PAIRS = (
    *(("premise", "hypothesis"), ("anchor", "positive"), ("source", "target"), ("text", "paraphrase")),
    *(("query", "passage"), ("query", "document"), ("question", "answer")),
)
MOST_CLASSES = 12
MOST_OF_A_NAME = 40
MOST_OF_A_SCORE = 100
MOST_SHOWN = 6
MOSTLY = 0.9
_ID = linear_pattern(r"(^|[^a-z])(id|ids|idx|index|number|year|pid|qid\d?)($|[^a-z])")
_MARK = linear_pattern(r"(left|right|first|second|[12ab])")


class UnguessedError(UserError):
    """A file's columns or the scores of its classes can't be guessed; the user may give them in the study."""


@dataclass(frozen=True)
class FileTable:
    """A file's cells by column; `role` and `name` are the file's role and name in the study."""

    path: Path
    role: str
    name: str
    columns: Mapping[Column, Sequence[Any]]

    def cells(self, column: Column) -> Sequence[Any]:
        """Return a column's cells; raises UserError with the file's columns if there is no such column."""
        if column not in self.columns:
            raise self._refusal(f"no column {shown(column)}, only", self.columns, "one of them in", "{...}")
        return self.columns[column]

    def texts(self, column: Column) -> Sequence[Any]:
        """Return the cells of a column of texts; raises UserError if a cell is neither text nor blank."""
        cells = self.cells(column)
        wrong = next((cell for cell in cells if not (isinstance(cell, str) or is_blank(cell))), None)
        if wrong is not None:
            raise UserError(f"{self.path}: {shown(column)} holds no texts: one is {wrong!r}")
        return cells

    def text_column(self) -> Column:
        """Return the column of the texts: the only one, or the one with a usual name; raises UserError."""
        texts = self.text_columns or [*self.columns][: len(self.columns) == 1]
        named = [column for name in TEXT_NAMES for column in texts if bare(column) == name]
        found = texts if len(texts) == 1 else named[:1]
        if found:
            return found[0]
        keys = "it in", "{sentence: ...}"
        if not texts:
            raise self._refusal("no column holds texts:", self.columns, *keys)
        raise self._refusal("which column holds the texts?", texts, *keys)

    def two_texts(self, other: Column | None) -> tuple[Column, Column]:
        """Return the two columns of a pair's texts, leaving out the column `other`.

        Takes the only two columns of texts, or the only two with matching names, such as question1 and
        question2. Raises UserError with the candidates.
        """
        texts = [column for column in self.text_columns if column != other]
        if len(texts) == 2:
            return texts[0], texts[1]
        matching = [pair for pair in combinations(texts, 2) if _stem(*pair)]
        usual = [pair for pair in matching if _stem(*pair) in TEXT_NAMES]
        by_name = {bare(column): column for column in texts}
        known = [pair for pair in KNOWN_PAIRS if {*pair} <= {*by_name}]
        found = usual or matching or [(by_name[first], by_name[second]) for first, second in known]
        if len(found) == 1:
            return found[0]
        keys = "two in", "{sentence1: ..., sentence2: ...}"
        if len(texts) < 2:
            raise self._refusal("needs two columns of texts, has", self.columns, *keys)
        raise self._refusal("which two columns hold the texts?", texts, *keys)

    def score_column(self, texts: Sequence[Column]) -> Column:
        """Return the only column of numbers, or the one named as scores, else the column of classes.

        Raises UnguessedError.
        """
        numbers, classes = self.score_columns(texts)
        for columns in (numbers, classes):
            named = [column for column in columns if _is_named(column, SCORE_NAMES)]
            exact = [column for column in named if bare(column) in SCORE_NAMES]
            found = next((each for each in (columns, exact, named) if len(each) == 1), None)
            if found is not None:
                return found[0]
        keys = "it in", "{score: ...}"
        if not numbers and not classes:
            raise self._refusal("no column holds scores or classes of pairs:", self.columns, *keys)
        raise self._refusal("which column holds the scores?", [*dict.fromkeys((*numbers, *classes))], *keys)

    def score_columns(self, texts: Sequence[Column]) -> tuple[list[Column], list[Column]]:
        """Return the columns of numbers on a usual scale, and the columns of classes, without `texts`."""
        others = {column: cells for column, cells in self.columns.items() if column not in texts}
        numbers = [column for column, cells in others.items() if _holds_scores(column, cells)]
        return numbers, [column for column, cells in others.items() if _holds_classes(cells)]

    @property
    def text_columns(self) -> list[Column]:
        """The columns that hold texts."""
        return [column for column, cells in self.columns.items() if _holds_texts(cells)]

    def section(self, key: str, value: str) -> str:
        """Return the line to write in the study: "`ROLE: {file: NAME, KEY: VALUE}`"."""
        return f"`{self.role}: {{file: {self.name}, {key}: {value}}}`"

    def _refusal(self, what: str, candidates: Collection[Column], which: str, columns: str) -> UnguessedError:
        """Return the error for a column that can't be guessed, with the line to write in the study."""
        names = listed(map(shown, candidates), MOST_SHOWN)
        section = self.section("columns", columns)
        return UnguessedError(f"{self.path}: {what} {names}; name {which} the study: {section}")


def read_table(file: Path, role: str, name: str) -> FileTable:
    """Return a file's columns; raises UserError if the file can't be read, is no table or has no rows."""
    if ending(file) not in SUFFIXES:
        advice = "write an object in each line" if ending(file) == ".json" else "save a spreadsheet as .csv"
        raise UserError(f"{file}: the name must end in {', '.join(SUFFIXES)}; {advice}")
    check_file(file)
    faults = Faults()
    if ending(file) in (".csv", ".tsv"):
        columns = _delimited(file, faults)
    else:
        columns = _named(parquet_rows(file) if ending(file) == ".parquet" else json_lines(file, faults))
    raise_first(faults)
    if not columns or not len(next(iter(columns.values()))):
        raise UserError(f"{file}: holds no rows")
    return FileTable(file, role, name, columns)


def raise_first(faults: Faults) -> None:
    """Raise UserError for the first fault, with the number of further ones."""
    if faults.messages:
        more = f" (and {faults.number - 1:,} more)" if faults.number > 1 else ""
        raise UserError(f"{faults.messages[0]}{more}")


def number_of(cell: object) -> float | None:
    """Return a cell's number, None if it holds none; a decimal comma is read as a point."""
    try:
        number = number_in(cell.replace(",", ".") if isinstance(cell, str) else cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def shown(column: Column) -> str:
    """Return a column's name for messages."""
    return f"column {column}" if isinstance(column, int) else f"'{column}'"


def not_in(candidates: Collection[Column], chosen: Collection[Column]) -> str:
    """Return ", not in 'rating'" for candidates that were not chosen; "" if all were chosen."""
    others = [shown(column) for column in dict.fromkeys(candidates) if column not in chosen]
    return f", not in {listed(others, MOST_SHOWN, ' or ')}" if others else ""


def bare(column: Column) -> str:
    """Return the letters of a column's name, in lower case."""
    return "".join(filter(str.isalpha, str(column).lower()))


def _delimited(file: Path, faults: Faults) -> dict[Column, Sequence[Any]]:
    first, cells = open_table(file, faults)
    rows = [row for _, row in cells]
    if len(first) == 1 and ending(file) == ".csv":
        _check_separator(file, [first[0], *(row[0] for row in rows)])
    if not first:
        return {}
    names: Sequence[Column] = first
    if not _is_header(first, rows):
        names, rows = range(len(first)), [first, *rows]
    if doubled := [name for name, number in Counter(names).items() if number > 1]:
        raise UserError(f"{file}:1: two columns are named '{doubled[0]}'; rename one")
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}


def _check_separator(file: Path, lines: Sequence[str]) -> None:
    if all("\t" in line for line in lines):
        raise UserError(f"{file}:1: tabs are between its columns; let its name end in .tsv")
    if all(";" in line for line in lines):
        raise UserError(f"{file}:1: semicolons are between its columns; save it with commas")


def _is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first line names the columns: it has known names, or short cells above longer ones.

    A single Latin word above texts of another script is a name: many scripts have no spaces between words.
    """
    if all(map(is_blank, first)) or any(number_of(cell) is not None for cell in first):
        return False
    if any(_is_named(cell, (*TEXT_NAMES, *SCORE_NAMES)) and len(cell.split()) <= 2 for cell in first):
        return True
    if any(number_of(cell) is not None for row in rows[:1] for cell in row):
        return True
    if len(first) == 1:
        is_above_other_letters = first[0].isascii() and not any(row[0].isascii() for row in rows)
        is_above_texts = is_above_other_letters or any(len(row[0].split()) > 1 for row in rows)
        return len(first[0].split()) == 1 and is_above_texts
    return all(len(cell) <= MOST_OF_A_NAME and not cell.strip().endswith((".", "?", "!")) for cell in first)


def _named(rows: Iterator[Row]) -> dict[Column, Sequence[Any]]:
    found = [row for _, row in rows]
    return {name: [row.get(name) for row in found] for name in found[0]} if found else {}


def _stem(first: Column, second: Column) -> str:
    """Return the common part of two names that differ only in a mark, as question1 and question2, else ""."""
    names = {_MARK.sub("", str(name).lower()) for name in (first, second)}
    return bare(names.pop()) if len(names) == 1 and isinstance(first, str) else ""


def _holds_texts(cells: Sequence[Any]) -> bool:
    """Return whether the cells are texts, not the names of a few classes.

    Most cells must have several words, or characters outside ASCII.
    """
    given = [cell for cell in cells if not is_blank(cell)]
    if not given or not all(isinstance(cell, str) for cell in given):
        return False
    several_words = sum(len(cell.split()) > 1 or not cell.isascii() for cell in given)
    few = len({*given}) <= min(MOST_CLASSES, len(given) // 2)
    return several_words > len(given) / 2 and not few


def _holds_scores(column: Column, cells: Sequence[Any]) -> bool:
    """Return whether most cells are numbers on a usual scale, and neither name nor order suggests ids."""
    numbers = [number for cell in cells if (number := number_of(cell)) is not None]
    given = sum(not is_blank(cell) for cell in cells)
    if not numbers or len(numbers) < MOSTLY * given or _ID.search(str(column).lower().replace("_", " ")):
        return False
    is_count = len(numbers) > 2 and all(after - before == 1 for before, after in pairwise(numbers))
    return max(map(abs, numbers)) <= MOST_OF_A_SCORE and not is_count


def _holds_classes(cells: Sequence[Any]) -> bool:
    given = [cell for cell in cells if not is_blank(cell)]
    if not all(isinstance(cell, str | bool) for cell in given):
        return False
    return 0 < len({*given}) <= min(MOST_CLASSES, max(1, len(given) // 2))


def _is_named(column: Column, names: Sequence[str]) -> bool:
    """Return whether a column's name contains one of these: "is_duplicate" contains "duplicate"."""
    return any(name in bare(column) for name in names)
