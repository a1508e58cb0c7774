"""Check, number, count and hash records, some thousand at a time, on their way into a data set."""

import hashlib
import json
import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from synthbench.base.errors import UserError
from synthbench.data.records import (
    RECORD_TYPES,
    Pair,
    Ranking,
    Record,
    RecordKind,
    RetrievalText,
    ScoredPair,
    Triplet,
    is_unicode,
    schema,
)
from synthbench.tables.characters import is_invisible

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
RECORDS_AT_ONCE = 10_000
_CANONICAL_JSON = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


def fingerprint(text: str) -> int:
    """Return a 64-bit hash of a text as a number."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest())


class Fingerprints:
    """A set of texts as 64-bit hashes: 8 bytes per text, against about 100 in a set of strings.

    In a million texts, the probability that any two share a hash is 3e-8.
    """

    def __init__(self) -> None:
        self._sorted = array("Q")
        self._recent: set[int] = set()

    def __contains__(self, text: str) -> bool:
        number = fingerprint(text)
        return number in self._recent or self._is_sorted_in(number)

    def add(self, text: str) -> bool:
        """Add a text; return whether it is new."""
        number = fingerprint(text)
        if number in self._recent or self._is_sorted_in(number):
            return False
        self._recent.add(number)
        if len(self._recent) > max(RECORDS_AT_ONCE, len(self._sorted) // 16):
            self._sort_in()
        return True

    def _is_sorted_in(self, number: int) -> bool:
        position = bisect_left(self._sorted, number)
        return position < len(self._sorted) and self._sorted[position] == number

    def _sort_in(self) -> None:
        import numpy as np

        recent = np.fromiter(self._recent, np.uint64, len(self._recent))
        together = np.concatenate([np.array(self._sorted, np.uint64), recent])
        together.sort()
        self._sorted = array("Q", together.tobytes())
        self._recent = set()


class CheckedRecords:
    """Checks records one by one and passes batches with all columns, even optional ones, to `hand_on`.

    `empty_columns` are the optional columns that hold nothing in any record.
    """

    def __init__(self, kind: RecordKind, hand_on: "Callable[[pa.RecordBatch], object]") -> None:
        self.kind = kind
        self.schema = schema(kind, with_optional=True)
        self.num_records = 0
        self._hand_on = hand_on
        self._digest = hashlib.sha256()
        self._buffer: list[Record] = []
        self._ids = Fingerprints()
        self._faults: dict[str, str] = {}
        self._repeats: Counter[str] = Counter()
        self._has: Counter[str] = Counter()

    @property
    def content_hash(self) -> str:
        """Hash of all records so far."""
        return self._digest.hexdigest()

    @property
    def empty_columns(self) -> list[str]:
        """Optional columns that have been empty so far."""
        return [name for name in RECORD_TYPES[self.kind].optional_fields if not self._has[name]]

    def add(self, record: Record) -> None:
        """Check and add one record."""
        if isinstance(record, ScoredPair) and not isinstance(record.score, float):
            record = replace(record, score=float(record.score))
        is_new = self._ids.add(record.id) if record.id else True
        record = record if record.id else self._with_content_id(record)
        line = _CANONICAL_JSON.encode(record.values())
        for fault, detail in self._faults_of(record, line, is_new=is_new):
            self._faults.setdefault(fault, f"record {record.id}: {fault}{detail}")
        if self._faults:
            return
        self._digest.update(line.encode())
        self._digest.update(b"\n")
        self.num_records += 1
        self._buffer.append(record)
        self._has.update(name for name in record.optional_fields if getattr(record, name))
        if len(self._buffer) == RECORDS_AT_ONCE:
            self._flush()

    def finish(self) -> None:
        """Pass on the last records; raises UserError with one message for each kind of fault."""
        if self._faults:
            raise UserError(*self._faults.values())
        self._flush()

    def _with_content_id(self, record: Record) -> Record:
        """Return the record with its content id; repeats get -1, -2 ... appended, so that ids are unique."""
        base = record.content_id()
        name = base
        while not self._ids.add(name):
            self._repeats[base] += 1
            name = f"{base}-{self._repeats[base]}"
        return replace(record, id=name)

    def _faults_of(self, record: Record, line: str, *, is_new: bool) -> Iterator[tuple[str, str]]:
        if record.kind != self.kind:
            yield f"is a {record.kind}, the data set holds {self.kind}", ""
            return
        if not is_new:
            yield "its id occurs twice", ""
        if any(map(is_invisible, record.texts())):
            yield "has an empty sentence", ""
        if not is_unicode(line):
            yield "holds a lone surrogate, which is no character", ""
        yield from _faults_of_numbers(record)

    def _flush(self) -> None:
        self._hand_on(record_batch(self.kind, self._buffer))
        self._buffer.clear()


def record_batch(kind: RecordKind, records: Sequence[Record]) -> "pa.RecordBatch":
    """Return records of a kind as an Arrow batch with all optional columns."""
    import pyarrow as pa

    of_kind = schema(kind, with_optional=True)
    columns = [pa.array([getattr(record, field.name) for record in records], field.type) for field in of_kind]
    return pa.record_batch(columns, schema=of_kind)


def batched(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the values in lists of `size`; the last list may be shorter."""
    rest = iter(values)
    while some := list(islice(rest, size)):
        yield some


def _faults_of_numbers(record: Record) -> Iterator[tuple[str, str]]:
    if isinstance(record, ScoredPair):
        yield from _faults_of_scores("score", [record.score])
    elif isinstance(record, Pair):
        yield from _faults_of_scores("likelihood", [record.likelihood])
    elif isinstance(record, Ranking):
        yield from _faults_of_scores("grade", record.grades)
        if not record.candidates:
            yield "has no candidates", ""
        if len(record.candidates) != len(record.grades):
            sizes = f"{len(record.candidates)} candidates, {len(record.grades)} grades"
            yield "has not one grade for each candidate", f": {sizes}"
    elif isinstance(record, RetrievalText):
        if len(record.judged) != len(record.grades):
            sizes = f"{len(record.judged)} judged passages, {len(record.grades)} grades"
            yield "has not one grade for each judged passage", f": {sizes}"
        if not all(math.isfinite(grade) and grade >= 0 for grade in record.grades):
            yield "one of its grades is below 0 or not finite", f": {list(record.grades)}"
    elif isinstance(record, Triplet) and record.scores:
        if not all(map(math.isfinite, record.scores)):
            yield "one of its scores is not finite", f": {list(record.scores)}"
        if len(record.scores) != len(record.texts()) - 1:
            sizes = f"{len(record.scores)} scores, 1 positive and {len(record.negatives)} negatives"
            yield "has not one score for the positive and each negative", f": {sizes}"


def checked_table(kind: RecordKind, records: Iterable[Record]) -> "tuple[pa.Table, CheckedRecords]":
    """Return the records as a table without empty optional columns, and their CheckedRecords."""
    import pyarrow as pa

    batches: list[pa.RecordBatch] = []
    checked = CheckedRecords(kind, batches.append)
    for record in records:
        checked.add(record)
    checked.finish()
    return pa.Table.from_batches(batches, schema=checked.schema).drop_columns(checked.empty_columns), checked


def _faults_of_scores(name: str, values: Sequence[float]) -> Iterator[tuple[str, str]]:
    for value in values:
        if math.isnan(value):
            yield f"its {name} is NaN", ""
        elif not 0.0 <= value <= 1.0:
            yield f"its {name} is outside [0, 1]", f": {value}"
