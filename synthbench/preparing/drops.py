"""Steps that drop records for what their sentences are like."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.data.checking import RECORDS_AT_ONCE, batched
from synthbench.data.contamination import Check, TestIndex
from synthbench.data.likeness import NEAR, normalised
from synthbench.data.records import Record, RecordKind
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.plugins.contracts import Records, Step, StepContext


class Length(Step):
    """Drop records with a sentence of fewer or more words (separated by white space) than allowed."""

    version = 1

    min_words: int | None = Field(None, ge=1, description="fewest words of a sentence; null: no limit")
    max_words: int | None = Field(None, ge=1, description="most words of a sentence; null: no limit")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.min_words is None and self.max_words is None:
            raise ValueError("give min_words, max_words or both")
        if self.min_words and self.max_words and self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records all of whose sentences are of allowed length."""
        return (record for record in records if all(map(self._is_allowed, record.texts())))

    def _is_allowed(self, sentence: str) -> bool:
        num_words = len(sentence.split())
        return (self.min_words or 0) <= num_words and (self.max_words is None or num_words <= self.max_words)


class DropRefusals(Step):
    """Drop records with a sentence in which a chat model declines its task ("I cannot paraphrase ...")."""

    version = 2

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records of which no sentence looks like a refusal."""
        return (record for record in records if not any(map(looks_like_a_refusal, record.texts())))


SEVERAL_SENTENCES = frozenset(
    {RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET, RecordKind.RANKING}
)
BUT_FOR = "but for case, and full stops and blanks at the ends"


class DropIdentical(Step):
    """Drop records in which two sentences are the same, to the letter or (`normalised`) nearly so.

    Both numbers are reported: of those that are the same to the letter, and of those that differ only in
    case and full stop.
    """

    version = 1
    kinds = SEVERAL_SENTENCES

    # Left out of what identifies a step without it, as it was before there was this option.
    normalised: bool = Field(
        False,
        exclude_if=lambda value: value is False,
        description="case, and full stops and blanks at the ends, make no difference",
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records whose sentences all differ."""
        is_identical = _is_nearly_identical if self.normalised else _is_identical
        return (record for record in records if not is_identical(record.texts()))

    def remark(self, before: Records, after: Records) -> str:
        """Return the numbers of the same to the letter and of the nearly same."""
        num_same = sum(map(_is_identical, before.text_rows()))
        num_nearly = sum(map(_is_nearly_identical, before.text_rows())) - num_same
        return f"{num_same} identical to the letter, {num_nearly} more {BUT_FOR}"


def _is_identical(texts: Sequence[str]) -> bool:
    return len(set(texts)) < len(texts)


def _is_nearly_identical(texts: Sequence[str]) -> bool:
    return len(set(map(normalised, texts))) < len(texts)


class DropDuplicates(Step):
    """Of records with the same sentences keep the first, whatever their scores (unless `same_label`)."""

    version = 1

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

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the first record of each combination of sentences."""
        if self.unordered and len(records) and records.kind != RecordKind.SCORED_PAIR:
            raise UserError(
                "drop-duplicates: 'unordered' is for scored pairs only; other kinds have an order"
            )
        known: set[bytes] = set()
        for record in records:
            key = self._key(record, normalised if self.normalised else str)
            if key not in known:
                known.add(key)
                yield record

    def remark(self, before: Records, after: Records) -> str:
        """Return the numbers of the same to the letter and of the nearly same."""
        num_same, num_nearly = (
            len(before) - len({self._key(record, form) for record in before}) for form in (str, normalised)
        )
        return f"{num_same} duplicates to the letter, {num_nearly - num_same} more {BUT_FOR}"

    def _key(self, record: Record, form: Callable[[str], str]) -> bytes:
        """Return a hash that no other record has but its duplicates."""
        texts = [form(text) for text in record.texts()]
        label = (record.label, getattr(record, "score", None)) if self.same_label else ()
        key = repr((*(sorted(texts) if self.unordered else texts), label))
        return hashlib.blake2b(key.encode(), digest_size=16).digest()


PAIR = "pair"


class DropOverlap(Step):
    """Drop records that have a sentence, or a pair, in common with other sources, such as the test sets.

    Trained with it and without, a row shows what the overlap is worth (docs/data_quality.md).
    """

    version = 2

    sources: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="sources that the data may have nothing in common with; of `if_found` tasks those whose"
        " data are there"
    )
    by: Literal["exact", "normalised", "13-gram", "near-duplicate", "pair"] = Field(
        "normalised",
        description="how a sentence is recognised, as in `data contamination`; pair: the first sentence with"
        " another one of the record, normalised, in either order",
    )

    def others(self) -> tuple[str, ...]:
        """Return the sources that it compares with."""
        return self.sources

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records that have nothing in common with the sources."""
        if self.by == PAIR:
            index = TestIndex(_rows(self.sources, context), checks=())
            return (record for record in records if not index.has_pair(record.texts()))
        return self._without_found(records, context)

    def _without_found(self, records: Records, context: StepContext) -> Iterator[Record]:
        index = TestIndex(_rows(self.sources, context), checks=(Check(self.by),))
        for some, found in _searched(index, records, context):
            known = found[self.by]
            yield from (record for record in some if known.isdisjoint(record.texts()))


class DropContaminated(Step):
    """Drop records with a sentence of named test sets, by every rule of `data contamination`.

    The rules, from the strictest on: equal but for white space at the ends; equal without case, punctuation
    and white space; a common 13-gram of words; nearly the same by 5-grams of characters. A record is counted
    under the first that finds one of its sentences.
    """

    version = 1

    sources: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="the test sets; of `if_found` tasks those whose data are there"
    )
    near: float = Field(
        NEAR, ge=0.5, le=1.0, description="Jaccard similarity of 5-grams that makes sentences nearly the same"
    )

    def others(self) -> tuple[str, ...]:
        """Return the test sets."""
        return self.sources

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records without a sentence of the test sets."""
        index = TestIndex(_rows(self.sources, context), near=self.near)
        for some, found in _searched(index, records, context):
            kept = some
            for check, known in found.items():
                left = [record for record in kept if known.isdisjoint(record.texts())]
                context.count_dropped(check, len(kept) - len(left))
                kept = left
            yield from kept


def _rows(sources: Sequence[str], context: StepContext) -> dict[str, Iterator[tuple[str, ...]]]:
    """Return the sentences of each source whose data are there."""
    found = {name: context.source(name) for name in sources}
    return {name: data.text_rows() for name, data in found.items() if data is not None}


def _searched(
    index: TestIndex, records: Records, context: StepContext
) -> Iterator[tuple[Sequence[Record], Mapping[str, AbstractSet[str]]]]:
    """Yield some records at a time, and which of their sentences each of the index's checks finds."""
    with context.progress.task("searching sentences", len(records)) as task:
        for some in batched(records, RECORDS_AT_ONCE):
            texts = tuple(dict.fromkeys(text for record in some for text in record.texts()))
            yield (
                some,
                {
                    check.value: set(compress(texts, finder.has(texts)))
                    for check, finder in index.finders.items()
                },
            )
            task.advance(len(some))
