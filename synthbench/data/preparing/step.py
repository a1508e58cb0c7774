"""What all prepare steps share."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, Record, RecordKind
from synthbench.errors import did_you_mean

SHARED_COLUMNS = ("split", "subset", "label", "source_id", "method", "generator", "instruction")


class Step(BaseModel, ABC):
    """One step; raise `version` whenever the same options give another outcome."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    version: ClassVar[int]
    kinds: ClassVar[frozenset[RecordKind]] = frozenset(RECORD_TYPES) - {RecordKind.FAILURE}

    step: str

    @abstractmethod
    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records that go on, in order; those whose id is missing count as dropped.

        A record that a step adds needs an id that no other has.
        """

    def expected(self, num_records: int) -> int:
        """Return about how many of so many records go on; as many, if only the records can tell."""
        return num_records

    def others(self) -> tuple[str, ...]:
        """Return the names of further sources that the step reads."""
        return ()

    def with_others(self, others: Mapping[str, SyntheticDataset]) -> Self:
        """Return the step ready to be applied; `others` are the sources that it reads, if they exist."""
        return self

    def columns_used(self) -> tuple[str, ...]:
        """Return the columns that the options name."""
        return ()

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the step can't be applied to records of this kind, "" if it can."""
        if kind not in self.kinds:
            return f"is for {', '.join(sorted(self.kinds))} records, not for {kind} records"
        text_fields = RECORD_TYPES[kind].text_fields
        score = ("score",) if kind == RecordKind.SCORED_PAIR else ()
        known = (*(name for name in text_fields if name != "candidates"), *score, *SHARED_COLUMNS)
        for name in self.columns_used():
            if name not in known:
                return f"{kind} records have no column '{name}' to group by{did_you_mean(name, known)}"
        return ""

    def remark(self, before: Sequence[Record], after: Sequence[Record]) -> str:
        """Return what people should know of the outcome beyond the number of records, "" if nothing."""
        return ""

    def identity(self) -> Mapping[str, Any]:
        """Return name, version and options: all that decides what the step does."""
        return self.model_dump(mode="json") | {"version": self.version}


def digest(*parts: str | int) -> bytes:
    """Return a hash of the parts: the same on every machine and Python."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()


def rank_of(step: str, seed: int) -> Callable[[Record], bytes]:
    """Return a sort key that shuffles records by their ids.

    The step's name is in it, so that with one seed a sample is not made of the records a split has chosen.
    """
    return lambda record: digest(step, seed, record.id)


def rounded(number: float) -> int:
    """Return the nearest whole number of a number that is not negative, halves upwards."""
    return int(number + 0.5)
