"""Read stored data sets of any size in constant memory: all their sentences, or a few records."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError
from synthbench.base.user_files import check_file
from synthbench.data.checking import batched, fingerprint
from synthbench.data.dataset import FAILURES_FILE, RECORDS_FILE, StoredRecords, opened
from synthbench.data.exchange import open_dataset
from synthbench.data.manifest import MANIFEST_FILE, read_manifest
from synthbench.data.records import RECORD_TYPES, Record, RecordKind, from_row

if TYPE_CHECKING:
    import pyarrow as pa

AT_ONCE = 10_000


def text_batches(path: Path) -> Iterator[Sequence[tuple[str, ...]]]:
    """Yield the sentences of each record, in blocks of many records, as `Record.texts` returns them.

    `path` is anything that `open_dataset` reads, or a .txt file with a sentence on each non-blank line.
    Folders and .txt files are streamed; other files are read whole.

    Raises UserError if the path is missing or damaged, or if it holds no records or no sentences.
    """
    batches = batched(_text_rows(path), AT_ONCE)
    first = next(batches, None)
    if first is None:
        raise UserError(f"{path}: holds no records")
    yield first
    yield from batches


def _text_rows(path: Path) -> Iterator[tuple[str, ...]]:
    folder = path / "dataset" if (path / "dataset" / MANIFEST_FILE).is_file() else path
    if path.suffix == ".txt" and path.exists() and not path.is_dir():
        return _lines(path)
    if not (folder / MANIFEST_FILE).is_file():
        return open_dataset(path).text_rows()
    stored = StoredRecords(folder)
    if not RECORD_TYPES[stored.kind].text_fields:
        raise UserError(f"{folder}: holds {stored.kind} records, which have no sentences")
    return stored.text_rows()


def _lines(path: Path) -> Iterator[tuple[str, ...]]:
    check_file(path)
    with path.open(encoding="utf-8-sig", newline="\n") as stream:
        try:
            yield from ((line.strip(),) for line in stream if line.strip())
        except UnicodeDecodeError as error:
            raise UserError(f"{path}: not UTF-8: {error.reason}") from error


NUM_RECORDS = 20
NUM_ANCHORS = 200
LONGEST_ANCHOR = 500
"""In characters; longer texts are not shown side by side."""
ANCHORED = (RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET)


def some_records(folder: Path) -> list[Record]:
    """Return at most twenty records, chosen by a hash of their ids.

    Raises UserError if the folder holds no data set, or a damaged one; so do the other functions here
    that take a folder.
    """
    return records_where(folder, "id", _smallest(_text_column(folder, "id"), NUM_RECORDS))


def some_anchors(folder: Path) -> list[str]:
    """Return at most 200 of the anchors that have at most 500 characters, chosen by their hashes.

    Anchors are the first sentences of pairs, scored pairs and triplets; other kinds have none. Data sets
    made from the same sentences return mostly the same anchors.
    """
    kind = read_manifest(folder).kind
    if kind not in ANCHORED:
        return []
    texts = (text for text in _text_column(folder, anchor_column(kind)) if len(text) <= LONGEST_ANCHOR)
    return _smallest(texts, NUM_ANCHORS)


def anchor_column(kind: RecordKind) -> str:
    """Return the name of the first column with sentences in this kind."""
    return RECORD_TYPES[kind].text_fields[0]


def records_where(folder: Path, column: str, values: Collection[str]) -> list[Record]:
    """Return the records with one of these values in a column, in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, wanted = read_manifest(folder).kind, pa.array(list(values), pa.string())
    return [
        from_row(kind, row)
        for batch in _record_batches(folder / RECORDS_FILE, None)
        for row in batch.filter(pc.is_in(batch.column(column), wanted)).to_pylist()
    ]


def failure_reasons(folder: Path) -> Counter[str]:
    """Return the number of failures by reason."""
    batches = _record_batches(folder / FAILURES_FILE, ["reason"])
    return Counter(reason for batch in batches for reason in batch.column(0).to_pylist())


def _smallest(texts: Iterator[str], number: int) -> list[str]:
    """Return the `number` distinct texts with the smallest hashes, in ascending order of hash."""
    found: set[tuple[int, str]] = set()
    for text in texts:
        found.add((fingerprint(text), text))
        if len(found) >= AT_ONCE:
            found = set(nsmallest(number, found))
    return [text for _, text in nsmallest(number, found)]


def _text_column(folder: Path, name: str) -> Iterator[str]:
    for batch in _record_batches(folder / RECORDS_FILE, [name]):
        yield from batch.column(0).to_pylist()


def _record_batches(file: Path, columns: Sequence[str] | None) -> "Iterator[pa.RecordBatch]":
    with opened(file) as parquet:
        yield from parquet.iter_batches(AT_ONCE, columns=columns)
