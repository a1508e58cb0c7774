"""The dataset schema: an immutable Parquet table of one record kind, with a manifest beside it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

from synthbench.base.durability import PASSING, not_now
from synthbench.base.errors import UserError, in_one_line
from synthbench.data.answer_kinds import unfinished_answers
from synthbench.data.checking import (
    RECORDS_AT_ONCE,
    CheckedRecords,
    batched,
    checked_table,
    record_batch,
)
from synthbench.data.foreign import fault_of
from synthbench.data.manifest import MANIFEST_FILE, Manifest, read_manifest, write_manifest
from synthbench.data.records import RECORD_TYPES, Failure, Record, RecordKind, from_row, schema

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS_AT_A_TIME = 1_000
"""Rows converted to Python objects at once; as objects they take about ten times a table's memory."""
OF_FEW_VALUES = ("split", "subset", "label", "method", "generator", "instruction")
RECORDS_FILE = "records.parquet"
FAILURES_FILE = "failures.parquet"


@dataclass(frozen=True)
class SyntheticDataset:
    """A table of records of one kind, with its manifest and the failures of its generation.

    Methods produce it, trainers read it, and test sets have the same form. Iterate over it for records, or
    read one column as a list with `column`.
    """

    table: "pa.Table"
    manifest: Manifest
    failure_table: "pa.Table"

    @classmethod
    def create(
        cls,
        kind: RecordKind,
        records: Iterable[Record],
        *,
        failures: Iterable[Record] = (),
        **manifest: Any,  # noqa: ANN401 - the manifest's own fields
    ) -> "SyntheticDataset":
        """Return a data set of checked records, each with an id, and its manifest with counts and a hash.

        Raises UserError naming the first offending record of each fault: another kind, an empty sentence, a
        score or grade that is NaN or outside [0, 1], candidates without grades, a duplicate id.
        """
        table, checked = checked_table(kind, records)
        failure_table, _ = checked_table(RecordKind.FAILURE, failures)
        complete = Manifest(
            kind=kind,
            num_records=table.num_rows,
            num_failures=failure_table.num_rows,
            unfinished_answers=unfinished_answers(failure_table.column("reason").to_pylist()),
            content_hash=checked.content_hash,
            **manifest,
        )
        return cls(table, complete, failure_table)

    @property
    def kind(self) -> RecordKind:
        """The kind of every record."""
        return self.manifest.kind

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Any]:
        return from_table(self.kind, self.table)

    def failures(self) -> Iterator[Record]:
        """Yield the failures of the data set's generation."""
        return from_table(RecordKind.FAILURE, self.failure_table)

    def column(self, name: str) -> list[Any]:
        """Return one column's values."""
        values: list[Any] = self.table.column(name).to_pylist()
        return values

    def rows_of(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of these columns, record by record."""
        for batch in self.table.select(list(names)).to_batches(max_chunksize=ROWS_AT_A_TIME):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    @property
    def task_name(self) -> str:
        """The test set's name, or its file's, for messages."""
        config = self.manifest.config
        return str(config.get("task") or config.get("file") or "the task")

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Every distinct sentence, in order of first appearance."""
        return tuple(dict.fromkeys(text for row in self.text_rows() for text in row))

    def text_rows(self) -> Iterator[tuple[str, ...]]:
        """Yield each record's sentences as a tuple, in the order of `Record.texts`."""
        columns = text_columns(self.kind, self.table.column_names)
        for batch in self.table.select(columns).to_batches(max_chunksize=ROWS_AT_A_TIME):
            yield from _texts(batch)

    def with_records(
        self,
        records: Iterable[Record],
        *,
        kind: RecordKind | None = None,
        **changes: Any,  # noqa: ANN401 - the manifest's own fields
    ) -> "SyntheticDataset":
        """Return a copy with other records; the failures and the rest of the manifest stay."""
        derived = {"kind", "num_records", "num_failures", "unfinished_answers", "content_hash"}
        manifest = self.manifest.model_dump(exclude=derived) | changes
        return SyntheticDataset.create(kind or self.kind, records, failures=self.failures(), **manifest)

    def with_splits(self, others: Iterable[tuple[str, "SyntheticDataset"]]) -> "SyntheticDataset":
        """Return the records as split "test", then the records of each data set under the given split."""
        parts = [("test", self), *others]
        return self.with_records(replace(record, split=split) for split, data in parts for record in data)

    def write(self, folder: Path) -> None:
        """Write records, failures and manifest into `folder`, which must exist."""
        import pyarrow.parquet as pq

        pq.write_table(self.table, folder / RECORDS_FILE)
        pq.write_table(self.failure_table, folder / FAILURES_FILE)
        write_manifest(self.manifest, folder)

    @classmethod
    def read(cls, folder: Path) -> "SyntheticDataset":
        """Read a data set that `write` wrote.

        Raises UserError if the folder holds no data set, a damaged one, or another schema version.
        """
        manifest = read_manifest(folder)
        table = _read_table(folder / RECORDS_FILE, manifest.kind, manifest.num_records)
        failure_table = _read_table(folder / FAILURES_FILE, RecordKind.FAILURE, manifest.num_failures)
        return cls(table, manifest, failure_table)


class ParquetRecords:
    """Records of one kind in a Parquet file that may exceed memory; each iteration starts anew."""

    def __init__(self, file: Path, kind: RecordKind, number: int) -> None:
        self.kind = kind
        self._file = file
        self._number = number

    def __len__(self) -> int:
        return self._number

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches(None):
            for row in batch.to_pylist():
                # Strings of these columns repeat often: share one object for each value.
                row.update((name, intern(row[name])) for name in OF_FEW_VALUES if row.get(name))
                yield from_row(self.kind, row)

    def column(self, name: str) -> list[Any]:
        """Return one column's values."""
        return [value for (value,) in self.rows_of(name)]

    def rows_of(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of these columns, record by record; other columns are not read."""
        for batch in self._batches(list(names)):
            yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)

    def text_rows(self) -> Iterator[tuple[str, ...]]:
        """Yield each record's sentences as a tuple, in the order of `Record.texts`."""
        with opened(self._file) as parquet:
            columns = text_columns(self.kind, parquet.schema_arrow.names)
            for batch in parquet.iter_batches(ROWS_AT_A_TIME, columns=columns):
                yield from _texts(batch.select(columns))

    def _batches(self, columns: list[str] | None) -> "Iterator[pa.RecordBatch]":
        with opened(self._file) as parquet:
            yield from parquet.iter_batches(ROWS_AT_A_TIME, columns=columns)


class StoredRecords(ParquetRecords):
    """The records of a data set's folder, which may exceed memory.

    Raises UserError as `SyntheticDataset.read` does: at once if the manifest or the columns are wrong, and
    during iteration if records are damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest = read_manifest(folder)
        file = folder / RECORDS_FILE
        super().__init__(file, self.manifest.kind, self.manifest.num_records)
        with opened(file) as parquet:
            _check_table(file, self.kind, parquet.schema_arrow, (parquet.metadata.num_rows, len(self)))


def set_aside(file: Path, kind: RecordKind, records: Iterable[Record]) -> ParquetRecords:
    """Write records to a Parquet file almost unchecked; return a view that reads the file.

    Raises UserError if a text holds a lone surrogate.
    """
    import pyarrow.parquet as pq

    number = 0
    with pq.ParquetWriter(file, schema(kind, with_optional=True)) as parquet:
        for some in batched(records, RECORDS_AT_ONCE):
            try:
                parquet.write_batch(record_batch(kind, some))
            except UnicodeEncodeError as error:
                raise UserError(f"a record holds a lone surrogate, which is no character: {error}") from error
            number += len(some)
    return ParquetRecords(file, kind, number)


def write_records(
    folder: Path,
    kind: RecordKind,
    records: Iterable[Record],
    **manifest: Any,  # noqa: ANN401 - the manifest's own fields
) -> Manifest:
    """Write records, and the failures among them, as a data set into `folder`, which must exist.

    The data set equals one made by `SyntheticDataset.create` and `write`. Raises UserError as `create` does.
    """
    counts = write_tables(folder, kind, records)
    written = Manifest(kind=kind, **counts, **manifest)
    write_manifest(written, folder)
    return written


def write_tables(folder: Path, kind: RecordKind, records: Iterable[Record]) -> dict[str, Any]:
    """Write records as `write_records` does, but no manifest; return the counts and hash for a manifest."""
    import pyarrow.parquet as pq

    unfinished: Counter[str] = Counter()
    with ExitStack() as files:

        def into(name: str, kind: RecordKind) -> CheckedRecords:
            checked = CheckedRecords(kind, lambda batch: file.write_batch(batch))
            file = files.enter_context(pq.ParquetWriter(folder / name, checked.schema))
            return checked

        kept, failures = into(RECORDS_FILE, kind), into(FAILURES_FILE, RecordKind.FAILURE)
        for record in records:
            if isinstance(record, Failure):
                unfinished.update(unfinished_answers([record.reason]))
            (failures if record.kind == RecordKind.FAILURE else kept).add(record)
        kept.finish()
        failures.finish()
    _drop_columns(folder / RECORDS_FILE, kept.empty_columns)
    return {
        "num_records": kept.num_records,
        "num_failures": failures.num_records,
        "unfinished_answers": dict(sorted(unfinished.items())),
        "content_hash": kept.content_hash,
    }


def _drop_columns(file: Path, names: Collection[str]) -> None:
    """Rewrite a file without the named columns; empty columns are known only after the last record."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not names:
        return
    rest = file.with_suffix(".rest")
    with opened(file) as parquet:
        kept = pa.schema([field for field in parquet.schema_arrow if field.name not in names])
        with pq.ParquetWriter(rest, kept) as writer:
            for batch in parquet.iter_batches(RECORDS_AT_ONCE, columns=kept.names):
                writer.write_batch(batch)
    rest.replace(file)


def check_dataset(folder: Path) -> None:
    """Check an untrusted data set block by block; raises UserError as `read`."""
    manifest = read_manifest(folder)
    for name, kind, num_rows in (
        (RECORDS_FILE, manifest.kind, manifest.num_records),
        (FAILURES_FILE, RecordKind.FAILURE, manifest.num_failures),
    ):
        with opened(folder / name) as parquet:
            _check_table(folder / name, kind, parquet.schema_arrow, (parquet.metadata.num_rows, num_rows))
            for batch in parquet.iter_batches(RECORDS_AT_ONCE):
                if fault := fault_of(kind, batch):
                    raise UserError(f"{folder / name}: {fault}")


def _read_table(file: Path, kind: RecordKind, num_rows: int) -> "pa.Table":
    with opened(file) as parquet:
        table = parquet.read()
    _check_table(file, kind, table.schema, (table.num_rows, num_rows))
    return table


def _check_table(file: Path, kind: RecordKind, found: "pa.Schema", rows: tuple[int, int]) -> None:
    """Raise UserError if columns don't fit the kind or `rows` (file's and manifest's number) differ."""
    # Any optional column may be missing.
    names = [
        *schema(kind).names,
        *(name for name in RECORD_TYPES[kind].optional_fields if name in found.names),
    ]
    whole = schema(kind, with_optional=True)
    if found.names != names or any(field != whole.field(field.name) for field in found):
        columns = ", ".join(f"{field.name} {field.type}" for field in found)
        raise UserError(f"{file}: its columns are not those of {kind} records: {columns}")
    if rows[0] != rows[1]:
        raise UserError(f"{file}: holds {rows[0]} records, {MANIFEST_FILE} says {rows[1]}")


@contextmanager
def opened(file: Path) -> "Iterator[pq.ParquetFile]":
    """Open a data set's Parquet file; errors within the block become a UserError of one line.

    An error that may be temporary becomes a NotNowError.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not file.is_file():
        raise UserError(f"{file.parent}: incomplete data set: no {file.name}")
    try:
        # Not read_table: it reads folders named key=value as partitions and adds them as columns.
        with pq.ParquetFile(file) as parquet:
            yield parquet
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno in PASSING:
            raise not_now(file, error) from error
        raise UserError(f"{file}: damaged, not readable as Parquet: {in_one_line(error)}") from error


def text_columns(kind: RecordKind, known: Collection[str]) -> list[str]:
    """Return the columns with sentences, in the order of `Record.texts`."""
    first, others = RECORD_TYPES[kind].text_fields[:1], RECORD_TYPES[kind].text_fields[1:]
    further = [name for name in RECORD_TYPES[kind].optional_texts if name in known]
    # Further queries follow the query, further negatives the negative.
    return [*first, *further, *others] if kind == RecordKind.RANKING else [*first, *others, *further]


def _texts(batch: "pa.RecordBatch") -> Iterator[tuple[str, ...]]:
    """Return the rows of a batch of text columns, each row as one tuple of texts."""
    import pyarrow as pa

    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    if not any(map(pa.types.is_list, batch.schema.types)):
        return rows
    listed = ([[cell] if isinstance(cell, str) else cell or () for cell in row] for row in rows)
    return (tuple(chain.from_iterable(cells)) for cells in listed)


def from_table(kind: RecordKind, table: "pa.Table") -> Iterator[Record]:
    """Yield the records of a table that has this kind's schema."""
    for batch in table.to_batches(max_chunksize=ROWS_AT_A_TIME):
        for row in batch.to_pylist():
            yield from_row(kind, row)
