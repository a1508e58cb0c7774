"""Steps that drop records by properties of their sentences."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.data.checking import RECORDS_AT_ONCE, batched
from synthbench.data.contamination import Check, TestIndex
from synthbench.data.likeness import NEAR, normalised
from synthbench.data.records import Record, RecordKind
from synthbench.data.refusals import looks_like_a_refusal
from synthbench.plugins.contracts import Records, Step, StepContext
from synthbench.words import Words, check_words, split_words, words_setting


class Length(Step):
    """Drop records with a sentence of fewer or more words (separated by white space) than allowed."""

    version = 1

    words: Words | None = words_setting()
    min_words: int | None = Field(
        None, ge=1, description="minimum number of words in a sentence; null: no limit"
    )
    max_words: int | None = Field(
        None, ge=1, description="maximum number of words in a sentence; null: no limit"
    )

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.min_words is None and self.max_words is None:
            raise ValueError("give min_words, max_words or both")
        if self.min_words and self.max_words and self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records whose sentences all have an allowed length."""
        _check_words(records, self.words, "length")
        return (record for record in records if all(map(self._is_allowed, record.texts())))

    def _is_allowed(self, sentence: str) -> bool:
        num_words = len(split_words(sentence, self.words))
        return (self.min_words or 0) <= num_words and (self.max_words is None or num_words <= self.max_words)


def _check_words(records: Records, words: str | None, what: str) -> None:
    """Raise UserError if `words` is None but most texts are in a script without spaces between words."""
    if words is None:
        check_words((text for row in records.text_rows() for text in row), what)


class DropRefusals(Step):
    """Drop records with a sentence in which a chat model declines its task ("I cannot paraphrase ...")."""

    version = 3

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records without a sentence that looks like a refusal."""
        return (record for record in records if not any(map(looks_like_a_refusal, record.texts())))


SEVERAL_SENTENCES = frozenset(
    {RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET, RecordKind.RANKING}
)
BUT_FOR = "but for case, and full stops and blanks at the ends"


class DropIdentical(Step):
    """Drop records with two equal sentences.

    `normalised` ignores case, white space at both ends and full stops at the end. The step always reports how
    many records have exactly equal sentences, and how many more have sentences equal after normalisation.
    """

    version = 1
    kinds = SEVERAL_SENTENCES

    normalised: bool = added_field(
        False,
        description="ignore case, white space at both ends and full stops at the end",
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records whose sentences all differ."""
        is_identical = _is_nearly_identical if self.normalised else _is_identical
        return (record for record in records if not is_identical(record.texts()))

    def remark(self, before: Records, after: Records) -> str:
        """Return how many records have exactly equal sentences, and how many more after normalisation."""
        num_same = sum(map(_is_identical, before.text_rows()))
        num_nearly = sum(map(_is_nearly_identical, before.text_rows())) - num_same
        return f"{num_same} identical to the letter, {num_nearly} more {BUT_FOR}"


def _is_identical(texts: Sequence[str]) -> bool:
    return len(set(texts)) < len(texts)


def _is_nearly_identical(texts: Sequence[str]) -> bool:
    return len(set(map(normalised, texts))) < len(texts)


class DropDuplicates(Step):
    """Keep the first of all records with the same sentences in the same columns.

    Labels, scores and grades may differ, unless `same_label` is set.
    """

    version = 1

    unordered: bool = Field(False, description="scored pairs: treat (a, b) and (b, a) as the same")
    normalised: bool = added_field(
        False,
        description="ignore case, white space at both ends and full stops at the end",
    )
    same_label: bool = added_field(
        False,
        description="true: records with different labels, scores or grades are no duplicates",
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
        """Return how many records are exact duplicates, and how many more after normalisation."""
        num_same, num_nearly = (
            len(before) - len({self._key(record, form) for record in before}) for form in (str, normalised)
        )
        return f"{num_same} duplicates to the letter, {num_nearly - num_same} more {BUT_FOR}"

    def _key(self, record: Record, form: Callable[[str], str]) -> bytes:
        """Return a hash that is equal for duplicates and different for all other records."""
        texts = [form(text) for text in record.texts()]
        columns = () if self.unordered else record.text_names()
        labels = ("label", "score", "scores", "grades") if self.same_label else ()
        values = [getattr(record, name, None) for name in labels]
        key = repr((columns, sorted(texts) if self.unordered else texts, values))
        return hashlib.blake2b(key.encode(), digest_size=16).digest()


class DropOverlap(Step):
    """Drop records that share a sentence or pair with other sources, such as test sets.

    To measure the effect of the overlap, train with and without this step (docs/data_quality.md).
    """

    version = 2

    sources: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="sources to compare with; an `if_found` task is skipped if its data are missing"
    )
    by: Literal["exact", "normalised", "13-gram", "near-duplicate", "pair"] = Field(
        "normalised",
        description="the rule that finds shared sentences, as in `data contamination`; pair: drop a record "
        "if its first sentence and another of its sentences are a pair in a source, after normalisation and "
        "in either order",
    )
    words: Words | None = words_setting()

    @model_validator(mode="after")
    def _words_have_a_use(self) -> Self:
        if self.words is not None and self.by != "13-gram":
            raise ValueError(f"by: {self.by} splits no words; leave `words` out")
        return self

    def others(self) -> tuple[str, ...]:
        """Return the sources to compare with."""
        return self.sources

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records that share nothing with the sources."""
        if self.by == "pair":
            index = TestIndex(_rows(self.sources, context), checks=())
            return (record for record in records if not index.has_pair(record.texts()))
        return self._without_found(records, context)

    def _without_found(self, records: Records, context: StepContext) -> Iterator[Record]:
        if self.by == "13-gram":
            _check_words(records, self.words, f"drop-overlap by {self.by}")
        index = TestIndex(_rows(self.sources, context), checks=(Check(self.by),), words=self.words)
        for some, found in _searched(index, records, context):
            known = found[self.by]
            yield from (record for record in some if known.isdisjoint(record.texts()))


class DropContaminated(Step):
    """Drop records with a sentence of the named test sets, by all rules of `data contamination` but cosines.

    The rules, strictest first: equal up to white space at the ends; equal without case, punctuation and white
    space; a common 13-gram of words; similar character 5-grams. A dropped record is counted once, under the
    first rule that finds one of its sentences.
    """

    version = 1

    sources: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="the test sets; an `if_found` task is skipped if its data are missing"
    )
    near: float = Field(
        NEAR, ge=0.5, le=1.0, description="minimum Jaccard similarity of near-duplicates' character 5-grams"
    )
    words: Words | None = words_setting()

    def others(self) -> tuple[str, ...]:
        """Return the test sets."""
        return self.sources

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records without a sentence of the test sets."""
        _check_words(records, self.words, "drop-contaminated")
        index = TestIndex(_rows(self.sources, context), near=self.near, words=self.words)
        for some, found in _searched(index, records, context):
            kept = some
            for check, known in found.items():
                left = [record for record in kept if known.isdisjoint(record.texts())]
                context.count_dropped(check, len(kept) - len(left))
                kept = left
            yield from kept


def _rows(sources: Sequence[str], context: StepContext) -> dict[str, Iterator[tuple[str, ...]]]:
    """Return source -> the texts of its records, for each source whose data are available."""
    found = {name: context.source(name) for name in sources}
    return {name: data.text_rows() for name, data in found.items() if data is not None}


def _searched(
    index: TestIndex, records: Records, context: StepContext
) -> Iterator[tuple[Sequence[Record], Mapping[str, AbstractSet[str]]]]:
    """Yield batches of records, each with check -> the sentences that this check finds in the index."""
    with context.progress.task("searching sentences", len(records)) as task:
        for some in batched(records, RECORDS_AT_ONCE):
            texts = tuple(dict.fromkeys(text for record in some for text in record.texts()))
            found = {check.value: {*compress(texts, find(texts))} for check, find in index.finders.items()}
            yield some, found
            task.advance(len(some))
