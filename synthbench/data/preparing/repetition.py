"""Steps against sentences that repeat each other."""

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from pydantic import Field

from synthbench.data.near_identity import normalised
from synthbench.data.preparing.step import Step
from synthbench.data.records import Record, RecordKind
from synthbench.errors import UserError

SEVERAL_SENTENCES = frozenset(
    {RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET, RecordKind.RANKING}
)
BUT_FOR = "but for case, and full stops and blanks at the ends"


class DropIdentical(Step):
    """Drop records in which two sentences are the same, to the letter or (`normalised`) nearly so.

    Both numbers are told: of those that are the same to the letter, and of those that are but for case and
    full stop.
    """

    version = 1
    kinds = SEVERAL_SENTENCES

    step: Literal["drop-identical"] = "drop-identical"
    # Left out of what identifies a step without it, as it was before there was this option.
    normalised: bool = Field(
        False,
        exclude_if=lambda value: value is False,
        description="case, and full stops and blanks at the ends, make no difference",
    )

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records whose sentences all differ."""
        is_identical = _is_nearly_identical if self.normalised else _is_identical
        return [record for record in records if not is_identical(record)]

    def remark(self, before: Sequence[Record], after: Sequence[Record]) -> str:
        """Return the numbers of the same to the letter and of the nearly same."""
        num_same = sum(map(_is_identical, before))
        num_nearly = sum(map(_is_nearly_identical, before)) - num_same
        return f"{num_same} identical to the letter, {num_nearly} more {BUT_FOR}"


def _is_identical(record: Record) -> bool:
    return len(set(record.texts())) < len(record.texts())


def _is_nearly_identical(record: Record) -> bool:
    return len(set(map(normalised, record.texts()))) < len(record.texts())


class DropDuplicates(Step):
    """Of records with the same sentences keep the first, whatever their scores (unless `same_label`)."""

    version = 1

    step: Literal["drop-duplicates"] = "drop-duplicates"
    unordered: bool = Field(False, description="scored pairs: (a, b) and (b, a) are the same")
    # Left out of what identifies a step without them, as it was before there were these options.
    normalised: bool = Field(
        False,
        exclude_if=lambda value: value is False,
        description="case, and full stops and blanks at the ends, make no difference",
    )
    same_label: bool = Field(
        False,
        exclude_if=lambda value: value is False,
        description="records of another label or score are no duplicates",
    )

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the first record of each combination of sentences."""
        if self.unordered and any(record.kind != RecordKind.SCORED_PAIR for record in records):
            raise UserError(
                "drop-duplicates: 'unordered' is for scored pairs only; other kinds have an order"
            )
        first: dict[Hashable, Record] = {}
        for record in records:
            first.setdefault(self._key(record, normalised if self.normalised else str), record)
        return tuple(first.values())

    def remark(self, before: Sequence[Record], after: Sequence[Record]) -> str:
        """Return the numbers of the same to the letter and of the nearly same."""
        num_same, num_nearly = (
            len(before) - len({self._key(record, form) for record in before}) for form in (str, normalised)
        )
        return f"{num_same} duplicates to the letter, {num_nearly - num_same} more {BUT_FOR}"

    def _key(self, record: Record, form: Callable[[str], str]) -> Hashable:
        texts = [form(text) for text in record.texts()]
        label = (record.label, getattr(record, "score", None)) if self.same_label else ()
        return (*(sorted(texts) if self.unordered else texts), label)
