"""Import of JSONL, CSV and TSV files as data sets, reporting every bad line at once."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any

from synthbench.base.durability import file_hash
from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.user_files import check_file
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.reading import (
    Faults,
    FirstLines,
    OutsideRangeError,
    Row,
    json_lines,
    open_table,
    text_of,
    unmatched_lists,
    value_of,
)
from synthbench.data.records import RECORD_TYPES, Record, RecordKind, from_row
from synthbench.tables.numbers import whole_number_in
from synthbench.tables.opening import ending

_OTHER_NAMES = "; other names are given by --column FIELD=NAME, or `columns:` in an experiment"
_OTHER_RANGES = "; others are read with --score-range LOW,HIGH, or score_range in an experiment"
SUFFIXES = (".jsonl", ".csv", ".tsv")
# The first kind with all its columns present wins: a triplet has a pair's columns as well.
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


def no_hint(columns: Collection[str]) -> str:
    """Return "": the default `hint` of `import_file`, which has no advice on unknown columns."""
    return ""


def import_file(
    file: Path, kind: RecordKind | None = None, hint: Callable[[Collection[str]], str] = no_hint
) -> SyntheticDataset:
    """Read a .jsonl, .csv or .tsv file (UTF-8, may be .gz) with at least the kind's own columns.

    A .csv and a .tsv have a header line; a .tsv has no quoting. Without `kind` the first row's columns
    decide. Records without an id get one from their content. `hint` returns a note on unknown columns, such
    as the file type they suggest. Raises UserError with up to ten messages "file:line: fault": bad JSON or
    CSV, a missing or unknown column, a score or grade that is no number in [0, 1], an empty sentence, invalid
    UTF-8, a duplicate id. In tables, the lists of a ranking are JSON.
    """
    _check_name(file)
    faults, is_table = Faults(), ending(file) != ".jsonl"
    rows = _table_rows(file, faults) if is_table else json_lines(file, faults)
    first = next(rows, None)
    if first is None:
        faults.raise_if_any()
        raise UserError(f"{file}: holds no records")
    kind = kind or _inferred_kind(first, file, hint)
    if is_table:
        # A fault of a table's columns is reported once, not for each line.
        for problem in _column_problems(first[1], kind, (*SHARED, *OWN[kind])):
            faults.at(file, 1, problem)
        faults.raise_if_any()
    records = _checked(file, chain([first], rows), kind, faults)
    dataset = SyntheticDataset.create(
        kind, records, revisions={file.name: file_hash(file)}, notes=[f"imported from {file.name}"]
    )
    faults.raise_if_any()
    return dataset


def _check_name(file: Path) -> None:
    allowed = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
    if file.is_dir():
        raise UserError(f"{file}: is a folder, not a {allowed} file")
    if ending(file) not in SUFFIXES:
        hint = "; a table with tabs, such as SICK's, is a .tsv, and --kind sentence reads a list of sentences"
        raise UserError(f"{file}: the name must end in {allowed}{hint * (ending(file) == '.txt')}")
    check_file(file)


def _table_rows(file: Path, faults: Faults) -> Iterator[Row]:
    header, rows = open_table(file, faults, takes_marks=True)
    if len(header) == 1:
        _check_separator(header[0], file)
    if len(set(header)) < len(header):
        raise UserError(f"{file}:1: two columns have the same name")
    for line, cells in rows:
        if any(cells):
            named = zip(header, cells, strict=True)
            yield line, {name: cell for name, cell in named if cell or name != "seed"}


def _check_separator(header: str, file: Path) -> None:
    """Raise UserError if a header of one column contains a separator of another format (tab, comma, ;)."""
    for separator, name, instead in (
        ("\t", "tabs", "name the file .tsv"),
        (",", "commas", "name the file .csv"),
        (";", "semicolons", "use commas (.csv) or tabs (.tsv)"),
    ):
        if separator in header and not instead.endswith(ending(file)):
            raise UserError(f"{file}:1: the columns are separated by {name}; {instead}")


def _inferred_kind(row: Row, file: Path, hint: Callable[[Collection[str]], str]) -> RecordKind:
    line, cells = row
    for kind in IMPORTABLE:
        if all(cells.get(name) is not None for name in REQUIRED[kind]):
            return kind
    known = {*SHARED, *chain.from_iterable(REQUIRED.values())}
    unknown = [name for name in cells if name not in known]
    hints = [each for each in (hint(cells), *(_nearest(name, known) for name in unknown)) if each]
    if not hints and len(unknown) == len(cells) and ending(file) != ".jsonl":
        hints = ["; is the line with the columns' names missing?"]
    kinds = "; ".join(f"{kind}: {', '.join(REQUIRED[kind])}" for kind in IMPORTABLE)
    where = f"{file}:{line if ending(file) == '.jsonl' else 1}"
    columns = ", ".join(cells) or "(none)"
    raise UserError(f"{where}: columns {columns} make no record ({kinds}){''.join(hints[:1])}{_OTHER_NAMES}")


def _nearest(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean 'x'?" for a similar known name, else ""."""
    return did_you_mean(name, get_close_matches(name, list(known), n=1))


def _checked(file: Path, rows: Iterable[Row], kind: RecordKind, faults: Faults) -> Iterator[Record]:
    """Yield the valid rows as records, and note the faults of the others."""
    columns = (*SHARED, *OWN[kind])
    seen = FirstLines()
    for line, row in rows:
        given = {name: cell for name, cell in row.items() if cell is not None}
        problems = [*_column_problems(given, kind, columns)]
        cells: dict[str, Any] = {}
        for name in (name for name in columns if name in given):
            try:
                cells[name] = value_of(given[name], name) if name in OWN[kind] else _shared(given[name], name)
            except OutsideRangeError as error:
                problems.append(f"{error}{_OTHER_RANGES}")
            except ValueError as error:
                problems.append(str(error))
        problems.extend(unmatched_lists(cells))
        try:
            seen.check(cells.get("id", ""), line)
        except ValueError as error:
            problems.append(str(error))
        for problem in problems:
            faults.at(file, line, problem)
        if not problems:
            yield from_row(kind, cells)


def _column_problems(cells: Iterable[str], kind: RecordKind, columns: Sequence[str]) -> Iterator[str]:
    present = set(cells)
    for name in REQUIRED[kind]:
        if name not in present:
            yield f"no '{name}', which a {kind} must have"
    for name in sorted(present - set(columns)):
        yield f"unknown column '{name}'{_nearest(name, columns)}"


def _shared(value: object, name: str) -> str | int:
    """Return a cell of a column that all kinds have: an integer for `seed`, else a text.

    Raises ValueError if the cell holds no such value.
    """
    if name != "seed":
        return text_of(value, name)
    try:
        seed = whole_number_in(value) if isinstance(value, str) else value
    except ValueError:
        seed = None
    if isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) >= 2**63:
        raise ValueError(f"seed is not a whole number of 64 bits: {value!r}")
    return seed
