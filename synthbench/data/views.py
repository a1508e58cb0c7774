"""Records as plug-ins use them: the view of a data set that a step reads, the unit that a method yields."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from synthbench.data.records import Record, RecordKind


@dataclass(frozen=True)
class Unit:
    """The records of one work item of a method; a resumed stage skips items whose units are in the journal.

    `key` names the item; `position` orders items in the data set, whatever order they finish in. `dropped`
    counts dropped records by reason for the manifest.
    """

    key: str
    position: int
    records: tuple[Record, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


class Records(Protocol):
    """The records of a data set, in memory or streamed; every iteration starts at the first record."""

    @property
    def kind(self) -> RecordKind:
        """The kind of every record."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def column(self, name: str) -> list[Any]:
        """Return one column's values."""

    def rows_of(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the values of these columns, record by record; faster than whole records."""

    def text_rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the sentences of each record."""
