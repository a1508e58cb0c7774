"""Steps between generating data and training on it: each named, versioned, configurable and counted.

A new step is a subclass of `Step` with a `step` name, a `version`, its options as fields and `apply`; add it
to `PrepareStep` and experiment files know it.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, Record, RecordKind
from synthbench.errors import UserError, did_you_mean

SEVERAL_SENTENCES = frozenset(
    {RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET, RecordKind.RANKING}
)


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

    def identity(self) -> Mapping[str, Any]:
        """Return name, version and options: all that decides what the step does."""
        return self.model_dump(mode="json") | {"version": self.version}


class DropIdentical(Step):
    """Drop records in which two sentences are the same, to the letter."""

    version = 1
    kinds = SEVERAL_SENTENCES

    step: Literal["drop-identical"] = "drop-identical"

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records whose sentences all differ."""
        return [record for record in records if len(set(record.texts())) == len(record.texts())]


class DropDuplicates(Step):
    """Of records with the same sentences keep the first, whatever their scores."""

    version = 1

    step: Literal["drop-duplicates"] = "drop-duplicates"
    unordered: bool = Field(False, description="scored pairs: (a, b) and (b, a) are the same")

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the first record of each combination of sentences."""
        if self.unordered and any(record.kind != RecordKind.SCORED_PAIR for record in records):
            raise UserError(
                "drop-duplicates: 'unordered' is for scored pairs only; other kinds have an order"
            )
        first: dict[tuple[str, ...], Record] = {}
        for record in records:
            key = record.texts()
            first.setdefault(tuple(sorted(key)) if self.unordered else key, record)
        return tuple(first.values())


class Length(Step):
    """Drop records with a sentence of fewer or more words (separated by white space) than allowed."""

    version = 1

    step: Literal["length"] = "length"
    min_words: int | None = Field(None, ge=1, description="fewest words of a sentence; null: no limit")
    max_words: int | None = Field(None, ge=1, description="most words of a sentence; null: no limit")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if self.min_words is None and self.max_words is None:
            raise ValueError("give min_words, max_words or both")
        if self.min_words and self.max_words and self.min_words > self.max_words:
            raise ValueError(f"min_words {self.min_words} is more than max_words {self.max_words}")
        return self

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the records all of whose sentences are of allowed length."""
        return [record for record in records if all(map(self._is_allowed, record.texts()))]

    def _is_allowed(self, sentence: str) -> bool:
        num_words = len(sentence.split())
        return (self.min_words or 0) <= num_words and (self.max_words is None or num_words <= self.max_words)


class Sample(Step):
    """Keep a random part: `size` records or a `fraction` of them.

    A record is chosen by its id, seed and nothing else: the order of the records does not matter, and with
    one seed a smaller sample is part of every larger one.
    """

    version = 1

    step: Literal["sample"] = "sample"
    size: int | None = Field(None, ge=1, description="number of records; give this or `fraction`")
    fraction: float | None = Field(None, gt=0.0, le=1.0, description="share of the records")
    seed: int = Field(0, description="decides which records are drawn")

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.size is None) == (self.fraction is None):
            raise ValueError("give either size or fraction")
        return self

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return the chosen records in their original order; raises UserError if there are too few."""
        size = self.size if self.size is not None else _rounded(len(records) * (self.fraction or 0.0))
        if not size and records:
            raise UserError(f"sample: a fraction of {self.fraction} of {len(records)} records is none at all")
        if size > len(records):
            raise UserError(f"sample: size {size}, but there are only {len(records)} records")
        chosen = {record.id for record in sorted(records, key=_rank(self.step, self.seed))[:size]}
        return [record for record in records if record.id in chosen]


class Split(Step):
    """Turn a random part of the train records into the split "dev".

    Stratified: dev has the same shares of scores (or of labels, where there are no scores) as train, and
    exactly the nearest whole number of records. With `grouped_by`, records that share this column's value
    stay together; then dev is at most that number, and not stratified.
    """

    version = 1

    step: Literal["split"] = "split"
    dev: float = Field(gt=0.0, lt=1.0, description="share of the train records that becomes dev")
    seed: int = Field(0, description="decides which records are drawn")
    grouped_by: str | None = Field(
        None,
        description="records that share this column's value stay together: sentence1, anchor, source_id ...",
    )

    def apply(self, records: Sequence[Record]) -> Sequence[Record]:
        """Return all records; raises UserError if there is a dev split, or would be none, or no column."""
        if any(record.split == "dev" for record in records):
            raise UserError("split: the data set has a dev split already")
        train = [record for record in records if record.split == "train"]
        num_dev = _rounded(len(train) * self.dev)
        chosen = self._groups(train, num_dev) if self.grouped_by else self._stratified(train, num_dev)
        if not chosen or len(chosen) == len(train):
            raise UserError(
                f"split: a dev part of {self.dev} leaves train or dev empty ({len(train)} train records)"
            )
        return [replace(record, split="dev") if record.id in chosen else record for record in records]

    def _stratified(self, train: Sequence[Record], num_dev: int) -> set[str]:
        """Cut the records, sorted by score, into num_dev blocks and draw one of each."""
        rank = _rank(self.step, self.seed)
        ordered = sorted(
            train, key=lambda record: (getattr(record, "score", 0.0), record.label, rank(record))
        )
        ends = [len(ordered) * block // max(num_dev, 1) for block in range(num_dev + 1)]
        blocks = (ordered[start:end] for start, end in pairwise(ends))
        return {min(block, key=rank).id for block in blocks}

    def _groups(self, train: Sequence[Record], num_dev: int) -> set[str]:
        """Take whole groups in random order, as far as they fit."""
        column = str(self.grouped_by)
        known = {
            name for record in train[:1] for name in (*record.text_fields, "source_id", "subset", "label")
        }
        if train and column not in known:
            raise UserError(f"split: no column '{column}' to group by{did_you_mean(column, known)}")
        groups: dict[str, list[str]] = defaultdict(list)
        for record in train:
            groups[getattr(record, column)].append(record.id)
        chosen: set[str] = set()
        for value in sorted(groups, key=lambda value: _digest(self.step, self.seed, value)):
            if len(chosen) + len(groups[value]) <= num_dev:
                chosen.update(groups[value])
        return chosen


PrepareStep = Annotated[
    DropIdentical | DropDuplicates | Length | Sample | Split,
    Field(discriminator="step"),
]


def apply_steps(dataset: SyntheticDataset, steps: Iterable[Step]) -> SyntheticDataset:
    """Apply the steps in order; the manifest counts each one's drops under its name and notes its options.

    Raises UserError if a step is not made for this kind of record, or can't do what it is asked to.
    """
    steps = tuple(steps)
    for step in steps:
        if dataset.kind not in step.kinds:
            kinds = ", ".join(sorted(step.kinds))
            raise UserError(f"{step.step}: is for {kinds} records, the data set holds {dataset.kind}")
    if not steps:
        return dataset
    records: Sequence[Record] = tuple(dataset)
    dropped = Counter(dataset.manifest.dropped)
    notes = list(dataset.manifest.notes)
    for step in steps:
        result = step.apply(records)
        kept = {record.id for record in result}
        dropped[step.step] += sum(record.id not in kept for record in records)
        notes.append(_note(step, len(records), len(result)))
        records = result
    return dataset.with_records(records, dropped=dict(dropped), notes=notes)


def _note(step: Step, num_before: int, num_after: int) -> str:
    options = step.model_dump(mode="json", exclude={"step"})
    told = ", ".join(f"{name} {'none' if value is None else value}" for name, value in options.items())
    return f"{step.step} v{step.version} ({told or 'no options'}): {num_before} -> {num_after} records"


def _rounded(number: float) -> int:
    return int(number + 0.5)


def _digest(step: str, seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{step}\x1f{seed}\x1f{text}".encode()).digest()


def _rank(step: str, seed: int) -> Callable[[Record], bytes]:
    """Return a sort key that shuffles records by their ids: the same on every machine and Python.

    The step's name is in it, so that with one seed a sample is not made of the records a split has chosen.
    """
    return lambda record: _digest(step, seed, record.id)
