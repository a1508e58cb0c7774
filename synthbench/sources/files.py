"""Records from a plain file: TSV, CSV, JSON lines, Parquet, or text with a sentence on each line."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError, did_you_mean, in_one_line
from synthbench.data.reading import (
    BLANK_TEXT,
    NO_GOLD_SCORE,
    TABLES,
    Content,
    Faults,
    FirstLines,
    Row,
    is_blank,
    json_lines,
    open_table,
    read_lines,
    score_of,
    sentence_of,
    tabs_in_csv,
    unmatched_lists,
    value_of,
)
from synthbench.data.records import RECORD_TYPES, Ranking, RecordKind
from synthbench.sources.doubts import (
    KindsOfCells,
    carriage_returns,
    check_is_no_header,
    contradictions,
    unused_range,
)
from synthbench.sources.tasks import Split
from synthbench.tables.opening import GZIP, ending, open_bytes

OPTIONAL_FIELDS = ("id", "subset", "label")
BY_NUMBER = (".tsv", ".csv")
A_TEXT = "a .txt file has a sentence a line"
_OF_CLASS = "of class "
MOST_BYTES_UNPACKED_TO_COUNT = 50_000_000


def _where(column: str) -> str:
    """Return the key for a `where` column in parsed rows; it differs from all field names."""
    return f"where.{column}"


@dataclass(frozen=True)
class FileColumns:
    """How to read a file's rows: the column of each field, by name, or by number from 0 without a header."""

    kind: RecordKind
    names: Mapping[str, str | int]
    score_range: tuple[float, float]
    split: Split
    scores: Mapping[str, float] | None = None
    """Score by class, if the score's column holds classes."""
    skip_blank: bool = False
    """Drop and count rows with a blank text."""
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Accepted values by column; other rows are dropped and counted."""

    @property
    def has_header(self) -> bool:
        """Whether the file's first line names its columns."""
        return any(isinstance(column, str) for column in self.picked.values())

    @property
    def picked(self) -> Mapping[str, str | int]:
        """The columns to read, by key: the field's name, or for a `where` column its key from `_where`."""
        return {**self.names, **{_where(column): column for column in self.where}}


def num_rows(path: Path, *, has_header: bool) -> int | None:
    """Return about how many rows a file has, without parsing them.

    None if the file can't be read, or if a compressed file has more than 50 MB.
    """
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return int(pq.ParquetFile(path).metadata.num_rows)
        if path.suffix == GZIP and path.stat().st_size > MOST_BYTES_UNPACKED_TO_COUNT:
            return None
        with open_bytes(path) as stream:
            blocks = iter(lambda: stream.read(1 << 20), b"")
            return max(0, sum(block.count(b"\n") for block in blocks) - has_header)
    except (OSError, ValueError, UserError):
        return None


def required_fields(kind: RecordKind) -> tuple[str, ...]:
    """Return the fields that a file must have for records of a kind."""
    return RECORD_TYPES[kind].own_fields()


def known_fields(kind: RecordKind) -> tuple[str, ...]:
    """Return the fields that a file may have for records of a kind."""
    return (*required_fields(kind), *RECORD_TYPES[kind].optional_fields, *OPTIONAL_FIELDS)


def read_file(path: Path, columns: FileColumns) -> Content:
    """Read a file's records; ids are file name and line, unless a column holds them.

    Drops and counts rows that `where` refuses, rows with a blank score, and rows of a class without a score;
    with `skip_blank`, also rows with a blank text. Notes name doubts: a little-used score range, carriage
    returns, and contradictory scores.

    Raises one UserError for all faults, with file and line: wrong numbers of columns, bad scores, empty
    sentences, candidates without one grade each, duplicate ids, and classes or `where` values that no row
    has. Raises UserError also for a missing column, and if no record is left.
    """
    content, problems = Content(), Faults()
    seen, kinds = FirstLines(), KindsOfCells()
    for line, row in _chosen(path, columns, content, problems):
        reason = _drop_reason(row, columns)
        if reason:
            content.drop(reason)
            continue
        try:
            kinds.check(line, {name: row[name] for name in columns.names if name in OPTIONAL_FIELDS})
            values = {"id": f"{path.name}/{line:04d}", **dict(_values(row, columns))}
            for unmatched in unmatched_lists(values):
                raise ValueError(unmatched)
            seen.check(values["id"], line)
        except ValueError as error:
            problems.at(path, line, f"{error}{_blank_advice(row, columns.kind)}")
            continue
        content.records.append(RECORD_TYPES[columns.kind](split=columns.split, **values))
    _check_classes(path, columns, content, problems)
    problems.raise_if_any()
    if not content.records:
        raise UserError(f"{path}: holds no {columns.kind} records")
    if columns.kind == RecordKind.SCORED_PAIR and columns.scores is None:
        content.notes.extend(unused_range(content.records, columns.score_range))
    content.notes.extend(carriage_returns(content.records))
    content.notes.extend(contradictions(content.records))
    return content


def _blank_advice(row: Mapping[str, Any], kind: RecordKind) -> str:
    """Return advice on how to drop a row with a blank text, "" if the row has none."""
    has_blank = any(is_blank(row[name]) for name in RECORD_TYPES[kind].text_fields)
    return "; `skip_blank: true` leaves out rows with a blank text" if has_blank else ""


def _drop_reason(row: Mapping[str, Any], columns: FileColumns) -> str:
    """Return the reason for dropping a row, "" to keep it."""
    if columns.kind == RecordKind.SCORED_PAIR and is_blank(row["score"]):
        return NO_GOLD_SCORE
    if columns.scores is not None and str(row["score"]) not in columns.scores:
        return f"{_OF_CLASS}{row['score']}"
    texts = RECORD_TYPES[columns.kind].text_fields
    return BLANK_TEXT if columns.skip_blank and any(is_blank(row[name]) for name in texts) else ""


def _check_classes(path: Path, columns: FileColumns, content: Content, problems: Faults) -> None:
    """Note a fault for each class in `scores` that no kept row has: the class may be misspelt."""
    if columns.scores is None:
        return
    found = {record.label for record in content.records}
    others = [reason.removeprefix(_OF_CLASS) for reason in content.dropped if reason.startswith(_OF_CLASS)]
    for name in columns.scores:
        if name not in found:
            problems.add(f"{path}: scores.{name}: no kept row has this class{did_you_mean(name, others)}")


def _values(row: Mapping[str, Any], columns: FileColumns) -> Iterator[tuple[str, Any]]:
    for name in columns.names:
        value = row[name]
        if name == "score" and columns.scores is not None:
            yield name, columns.scores[str(value)]
            yield "label", str(value)
        elif name in OPTIONAL_FIELDS:
            yield name, "" if value is None else str(value)
        else:
            yield name, value_of(value, name, columns.score_range)


def _chosen(path: Path, columns: FileColumns, content: Content, problems: Faults) -> Iterator[Row]:
    """Yield the rows that `where` accepts; count the others, and note a fault for values that no row has."""
    found: dict[str, set[str]] = {column: set() for column in columns.where}
    for line, row in rows(path, columns, problems):
        cells = {column: cell_text(row[_where(column)]) for column in columns.where}
        for column, cell in cells.items():
            found[column].add(cell)
        refused = [column for column, cell in cells.items() if cell not in columns.where[column]]
        if refused:
            content.drop(f"{refused[0]} is not {' or '.join(sorted(columns.where[refused[0]]))}")
        else:
            yield line, row
    for column, values in columns.where.items():
        for value in sorted(values - found[column]) if found[column] else ():
            message = f"{path}: where.{column}: no row has the value '{value}'"
            problems.add(message + did_you_mean(value, found[column]))


def cell_text(value: object) -> str:
    """Return a cell as text to compare with `where`: texts unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def rows(path: Path, columns: FileColumns, problems: Faults) -> Iterator[Row]:
    """Yield each row's line number and values by field; raises UserError if the file has another format."""
    if ending(path) == ".txt":
        return ((number, {"sentence": line}) for number, line in _sentences(path))
    if ending(path) in BY_NUMBER:
        return _tabular(path, columns, problems)
    is_parquet = path.suffix == ".parquet"
    return _named(
        path,
        parquet_rows(path, columns.picked.values()) if is_parquet else json_lines(path, problems),
        columns,
        problems,
    )


def _sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line of a text file; raises UserError if the file is a table."""
    lines = read_lines(path)
    tabs = {line.count("\t") for line in lines}
    if len(lines) > 1 and len(tabs) == 1 and 0 not in tabs:
        raise UserError(
            f"{path}: a table of {tabs.pop() + 1} columns with tabs between them, but {A_TEXT}; {TABLES}"
        )
    return enumerate(lines, start=1)


def _tabular(path: Path, columns: FileColumns, problems: Faults) -> Iterator[Row]:
    first, lines = open_table(path, problems)
    if not first:
        return
    column_indices = _column_indices(path, first, columns)
    if not columns.has_header:
        check_is_no_header(path, first, column_indices)
        lines = chain([(1, first)], lines)
    for number, cells in lines:
        yield number, {name: cells[index] for name, index in column_indices.items()}


def _column_indices(path: Path, first: list[str], columns: FileColumns) -> dict[str, int]:
    """Return the column number of each field; raises UserError naming every missing or ambiguous column."""
    problems = Faults()
    column_indices = {}
    for name, column in columns.picked.items():
        if isinstance(column, int):
            if column >= len(first):
                problems.add(f"{path}:1: no column {column} (from 0) for {name}: {len(first)} columns")
            column_indices[name] = column
        elif first.count(column) > 1:
            number = first.count(column)
            problems.add(f"{path}:1: {number} columns are named '{column}'; which one is {name}?")
        elif column in first:
            column_indices[name] = first.index(column)
        else:
            problems.add(f"{path}:1: no column '{column}' for {name}{did_you_mean(column, first)}")
    if problems.messages and ending(path) == ".csv" and "\t" in "".join(first):
        problems.add(tabs_in_csv(path))
    elif problems.messages and columns.kind == RecordKind.RANKING:
        problems.add(
            f"{path}: if a row is one candidate, give columns: {{query: ..., candidate: ..., grade: ...}}"
        )
    problems.raise_if_any()
    return column_indices


def parquet_rows(path: Path, picked: Collection[str | int] = ()) -> Iterator[Row]:
    """Yield row number and row; raises UserError for an unreadable file or a picked name with two columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as table:
            names = table.schema_arrow.names
            doubled = [name for name in {*picked} if names.count(name) > 1]
            if doubled:
                raise UserError(f"{path}: {names.count(doubled[0])} columns are named '{doubled[0]}'")
            found = (row for batch in table.iter_batches() for row in batch.to_pylist())
            yield from enumerate(found, start=1)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable Parquet file: {in_one_line(error)}") from error


def _named(path: Path, rows: Iterator[Row], columns: FileColumns, problems: Faults) -> Iterator[Row]:
    """Yield (row number, field -> value) from rows with named columns; a missing column is a fault."""
    for number, row in rows:
        absent = [str(column) for column in columns.picked.values() if column not in row]
        if absent:
            hints = ", ".join(f"'{column}'" for column in absent) + did_you_mean(absent[0], row)
            if {"query", "positive", "negative"} <= {*row}:
                hints += "; `format: reranking` reads rows of query, positive and negative"
            problems.add(f"{path}:{number}: no field {hints}")
        else:
            yield number, {name: row[str(column)] for name, column in columns.picked.items()}


CANDIDATE_FIELDS = ("query", "candidate", "grade")


@dataclass
class _Query:
    text: str
    given: dict[str, Any]
    candidates: list[str] = field(default_factory=list)
    grades: list[float] = field(default_factory=list)


def _given(value: object, name: str) -> str:
    if value is None:
        raise ValueError(f"{name} is null; leave the column out, or write a text in each row")
    return str(value)


def read_candidates(path: Path, columns: FileColumns) -> Content:
    """Read rankings from rows of one candidate each, grouped by query, or by id if a column holds it.

    Without an id column, a query's id is the file name and the line of the query's first row. Subset and
    label come from this row. Drops and counts rows that `where` refuses; with `skip_blank`, also rows with a
    blank text.

    Raises one UserError for all faults, with file and line: bad grades, empty texts, and ids of two different
    queries. Raises UserError also for a missing column, and if no query is left.
    """
    content, problems = Content(), Faults()
    queries: dict[str, _Query] = {}
    for line, row in _chosen(path, columns, content, problems):
        if columns.skip_blank and any(is_blank(row[name]) for name in ("query", "candidate")):
            content.drop(BLANK_TEXT)
            continue
        try:
            text, candidate = (sentence_of(row[name], name) for name in ("query", "candidate"))
            grade = score_of(row["grade"], columns.score_range, "grade")
            given: dict[str, Any] = {
                name: _given(row[name], name) for name in OPTIONAL_FIELDS if name in columns.names
            }
        except ValueError as error:
            problems.at(path, line, error)
            continue
        query = queries.setdefault(given.get("id", text), _Query(text, given))
        if query.text != text:
            problems.at(path, line, f"id '{given['id']}' stands for the query '{query.text}' already")
        query.given.setdefault("id", f"{path.name}/{line:04d}")
        query.candidates.append(candidate)
        query.grades.append(grade)
    problems.raise_if_any()
    if not queries:
        raise UserError(f"{path}: holds no queries with candidates")
    for query in queries.values():
        content.records.append(
            Ranking(
                query=query.text,
                candidates=tuple(query.candidates),
                grades=tuple(query.grades),
                split=columns.split,
                **query.given,
            )
        )
    content.notes.extend(contradictions(content.records))
    return content
