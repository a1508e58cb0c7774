"""Reading stored data sets of any size in constant memory: all their sentences, or a few of their records."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError
from synthbench.base.user_files import check_file
from synthbench.data.dataset import (
    FAILURES_FILE,
    MANIFEST_FILE,
    RECORDS_FILE,
    SyntheticDataset,
    opened,
    read_manifest,
)
from synthbench.data.exchange import open_dataset
from synthbench.data.records import RECORD_TYPES, Record, RecordKind, from_row

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
    further = [name for name in RECORD_TYPES[kind].optional_texts if name in known]
    # Further queries stand behind the query, further negatives behind the negative.
    return [first, *further, *others] if kind == RecordKind.RANKING else [first, *others, *further]


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


NUM_RECORDS = 20
NUM_ANCHORS = 200
LONGEST_ANCHOR = 500
"""Characters: longer texts are not read side by side."""
ANCHORED = (RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET)


def some_records(folder: Path) -> list[Record]:
    """Return at most twenty records, chosen by a hash of their ids.

    Raises UserError if the folder holds no data set, or a damaged one; so do all functions here.
    """
    return records_where(folder, "id", _smallest(_text_column(folder, "id"), NUM_RECORDS))


def some_anchors(folder: Path) -> list[str]:
    """Return at most 200 of the sentences that come first in pairs and triplets, chosen by their hashes.

    Data sets that were made of the same sentences have the same ones among these. Other kinds have none.
    """
    kind = read_manifest(folder).kind
    if kind not in ANCHORED:
        return []
    texts = (text for text in _text_column(folder, anchor_column(kind)) if len(text) <= LONGEST_ANCHOR)
    return _smallest(texts, NUM_ANCHORS)


def anchor_column(kind: RecordKind) -> str:
    """Return the column of the sentence that comes first."""
    return RECORD_TYPES[kind].text_fields[0]


def records_where(folder: Path, column: str, values: Collection[str]) -> list[Record]:
    """Return the records that have one of these values in a column, in the order of the data set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, wanted = read_manifest(folder).kind, pa.array(list(values), pa.string())
    return [
        from_row(kind, row)
        for batch in _record_batches(folder / RECORDS_FILE, None)
        for row in batch.filter(pc.is_in(batch.column(column), wanted)).to_pylist()
    ]


def failure_reasons(folder: Path) -> Counter[str]:
    """Return how many pieces of work gave nothing usable for which reason."""
    batches = _record_batches(folder / FAILURES_FILE, ["reason"])
    return Counter(reason for batch in batches for reason in batch.column(0).to_pylist())


def text_key(text: str) -> bytes:
    """Return what texts are chosen by: those with the least."""
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def _smallest(texts: Iterator[str], number: int) -> list[str]:
    """Return the different texts with the smallest keys, smallest first."""
    found: set[tuple[bytes, str]] = set()
    for text in texts:
        found.add((text_key(text), text))
        if len(found) >= AT_ONCE:
            found = set(nsmallest(number, found))
    return [text for _, text in nsmallest(number, found)]


def _text_column(folder: Path, name: str) -> Iterator[str]:
    for batch in _record_batches(folder / RECORDS_FILE, [name]):
        yield from batch.column(0).to_pylist()


def _record_batches(file: Path, columns: Sequence[str] | None) -> "Iterator[pa.RecordBatch]":
    with opened(file) as parquet:
        yield from parquet.iter_batches(AT_ONCE, columns=columns)
