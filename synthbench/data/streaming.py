"""The sentences of a data set a thousand records at a time, whatever its size."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.data.dataset import MANIFEST_FILE, RECORDS_FILE, SyntheticDataset, read_manifest
from synthbench.data.exchange import open_dataset
from synthbench.data.records import RECORD_TYPES, RecordKind
from synthbench.errors import UserError
from synthbench.given_files import check_file

if TYPE_CHECKING:
    import pyarrow as pa

Rows = Sequence[tuple[str, ...]]
AT_ONCE = 10_000


def text_batches(path: Path) -> Iterator[Rows]:
    """Yield the sentences of each record, many records at a time: as `Record.texts` gives them.

    `path` is what `open_dataset` reads, or a .txt file with a sentence a line, of which blank lines are none.
    Folders and .txt files are streamed; other files are read whole.

    Raises UserError if there is no such thing, it is damaged, holds no records, or records without sentences.
    """
    num_rows = 0
    for rows in _batches(path):
        num_rows += len(rows)
        yield rows
    if not num_rows:
        raise UserError(f"{path}: holds no records")


def batches_of(dataset: SyntheticDataset) -> Iterator[Rows]:
    """Yield the sentences of each record of an opened data set, many records at a time."""
    return table_batches(dataset.kind, dataset.table)


def table_batches(kind: RecordKind, table: "pa.Table") -> Iterator[Rows]:
    """Yield the sentences of each record of a table that has this kind's schema."""
    for batch in table.select(text_columns(kind, table.column_names)).to_batches(max_chunksize=AT_ONCE):
        yield _rows(batch)


def text_columns(kind: RecordKind, known: Sequence[str]) -> list[str]:
    """Return the columns with sentences, in the order of `Record.texts`."""
    first, *others = RECORD_TYPES[kind].text_fields
    further = [name for name in RECORD_TYPES[kind].optional_fields if name in known]
    return [first, *further, *others]


def _batches(path: Path) -> Iterator[Rows]:
    folder = path / "dataset" if (path / "dataset" / MANIFEST_FILE).is_file() else path
    if path.suffix == ".txt" and path.exists() and not path.is_dir():
        yield from _lines(path)
    elif (folder / MANIFEST_FILE).is_file():
        yield from _stored(folder)
    else:
        yield from batches_of(open_dataset(path))


def _lines(path: Path) -> Iterator[Rows]:
    rows: list[tuple[str, ...]] = []
    check_file(path)
    with path.open(encoding="utf-8-sig", newline="\n") as stream:
        try:
            for line in stream:
                if line.strip():
                    rows.append((line.strip(),))
                if len(rows) == AT_ONCE:
                    yield rows
                    rows = []
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8: {error.reason}") from error
    yield rows


def _stored(folder: Path) -> Iterator[Rows]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kind = read_manifest(folder).kind
    if not RECORD_TYPES[kind].text_fields:
        raise UserError(f"{folder}: holds {kind} records, which have no sentences")
    file = folder / RECORDS_FILE
    try:
        with pq.ParquetFile(file) as parquet:
            names = text_columns(kind, parquet.schema_arrow.names)
            for batch in parquet.iter_batches(batch_size=AT_ONCE, columns=names):
                yield _rows(batch.select(names))
    except (pa.ArrowException, OSError, KeyError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{file}: damaged, not readable as Parquet: {reason}") from error


def _rows(batch: "pa.RecordBatch") -> Rows:
    columns = [
        [tuple(texts or ()) for texts in column.to_pylist()]
        if _is_list(column)
        else [(text,) for text in column.to_pylist()]
        for column in batch.columns
    ]
    return [tuple(text for cell in row for text in cell) for row in zip(*columns, strict=True)]


def _is_list(column: "pa.Array") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(column.type))
