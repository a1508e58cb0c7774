"""Texts of many records in a memory-mapped file, for random access."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

MOST_CACHED = 8_192


class TextRows:
    """Rows of texts in a file: add batches of one size within a `with` block, then read rows by index.

    Only the last batch may be smaller.
    """

    def __init__(self, file: Path) -> None:
        import pyarrow as pa

        self._file = file
        self._schema = pa.schema([("texts", pa.list_(pa.large_string()))])
        self._size = 0
        self._chunks: Sequence[Any] = ()
        self._row = lru_cache(maxsize=MOST_CACHED)(self._read)

    def __enter__(self) -> Self:
        import pyarrow as pa

        self._writer = pa.ipc.new_file(str(self._file), self._schema)
        return self

    def add(self, rows: Sequence[Sequence[str]]) -> None:
        """Write the next batch of rows."""
        import pyarrow as pa

        self._size = self._size or len(rows)
        self._writer.write_batch(pa.record_batch([pa.array(rows, self._schema[0].type)], self._schema))

    def __exit__(self, *error: object) -> None:
        import pyarrow as pa

        self._writer.close()
        self._chunks = pa.ipc.open_file(pa.memory_map(str(self._file))).read_all().column(0).chunks

    def __getitem__(self, row: int) -> Sequence[str]:
        return self._row(int(row))

    def _read(self, row: int) -> Sequence[str]:
        texts: list[str] = self._chunks[row // self._size][row % self._size].as_py()
        return texts
