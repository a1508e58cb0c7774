"""A few records of a stored data set, the same ones whatever their order, found in constant memory."""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.data.dataset import FAILURES_FILE, RECORDS_FILE, from_row, opened, read_manifest
from synthbench.data.records import RECORD_TYPES, Record, RecordKind
from synthbench.data.streaming import AT_ONCE

if TYPE_CHECKING:
    import pyarrow as pa

NUM_RECORDS = 5
NUM_ANCHORS = 200
LONGEST_ANCHOR = 500
"""Characters: nobody reads longer texts side by side."""
ANCHORED = (RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET)


def some_records(folder: Path) -> list[Record]:
    """Return at most five records, chosen by a hash of their ids.

    Raises UserError if the folder holds no data set, or a damaged one; so do all functions here.
    """
    return records_where(folder, "id", _smallest(_column(folder, "id"), NUM_RECORDS))


def some_anchors(folder: Path) -> list[str]:
    """Return at most 200 of the sentences that stand first in pairs and triplets, chosen by their hashes.

    Data sets that were made of the same sentences have the same ones among these. Other kinds have none.
    """
    kind = read_manifest(folder).kind
    if kind not in ANCHORED:
        return []
    texts = (text for text in _column(folder, anchor_column(kind)) if len(text) <= LONGEST_ANCHOR)
    return _smallest(texts, NUM_ANCHORS)


def anchor_column(kind: RecordKind) -> str:
    """Return the column of the sentence that stands first."""
    return RECORD_TYPES[kind].text_fields[0]


def records_where(folder: Path, column: str, values: Collection[str]) -> list[Record]:
    """Return the records that have one of these values in a column, in the order of the data set."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind, wanted = read_manifest(folder).kind, pa.array(list(values), pa.string())
    return [
        from_row(kind, row)
        for batch in _batches(folder / RECORDS_FILE, None)
        for row in batch.filter(pc.is_in(batch.column(column), wanted)).to_pylist()
    ]


def failure_reasons(folder: Path) -> Counter[str]:
    """Return how many pieces of work gave nothing usable for which reason."""
    batches = _batches(folder / FAILURES_FILE, ["reason"])
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


def _column(folder: Path, name: str) -> Iterator[str]:
    for batch in _batches(folder / RECORDS_FILE, [name]):
        yield from batch.column(0).to_pylist()


def _batches(file: Path, columns: Sequence[str] | None) -> "Iterator[pa.RecordBatch]":
    with opened(file) as parquet:
        yield from parquet.iter_batches(AT_ONCE, columns=columns)
