"""Steps that draw records at random: by their ids and a seed, whatever their order."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from synthbench.data.draws import digest, rank_of, rounded
from synthbench.data.records import Record
from synthbench.errors import UserError
from synthbench.plugins import Step, StepContext

SAMPLE, KEEP_PER_GROUP, SPLIT = "sample", "keep-per-group", "split"
"""Each draws by its own name, so that with one seed a sample is not made of what a split has chosen."""


class Sample(Step):
    """Keep a random part: `size` records or a `fraction` of them.

    A record is chosen by its id, seed and nothing else: the order of the records does not matter, and with
    one seed a smaller sample is part of every larger one.
    """

    version = 1

    size: int | None = Field(None, ge=1, description="number of records; give this or `fraction`")
    fraction: float | None = Field(None, gt=0.0, le=1.0, description="share of the records")
    seed: int = Field(0, description="decides which records are drawn")

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.size is None) == (self.fraction is None):
            raise ValueError("give either size or fraction")
        return self

    def expected(self, num_records: int) -> int:
        """Return how many records are chosen."""
        return self.size if self.size is not None else rounded(num_records * (self.fraction or 0.0))

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        """Return the chosen records in their original order; raises UserError if there are too few."""
        size = self.size if self.size is not None else rounded(len(records) * (self.fraction or 0.0))
        if not size and records:
            raise UserError(f"sample: a fraction of {self.fraction} of {len(records)} records is none at all")
        if size > len(records):
            raise UserError(f"sample: size {size}, but there are only {len(records)} records")
        chosen = {record.id for record in sorted(records, key=rank_of(SAMPLE, self.seed))[:size]}
        return [record for record in records if record.id in chosen]


class KeepPerGroup(Step):
    """Of the records that share the values of some columns keep at most so many, drawn at random."""

    version = 1

    columns: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="records that share these columns' values are one group: sentence1, label, source_id ..."
    )
    most: int = Field(ge=1, description="records that are kept of a group")
    seed: int = Field(0, description="decides which records are drawn")

    def columns_used(self) -> tuple[str, ...]:
        """Return the columns that make a group."""
        return self.columns

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        """Return the chosen records in their original order."""
        groups: dict[Hashable, list[Record]] = defaultdict(list)
        for record in records:
            groups[tuple(getattr(record, name) for name in self.columns)].append(record)
        rank = rank_of(KEEP_PER_GROUP, self.seed)
        chosen = {record.id for group in groups.values() for record in sorted(group, key=rank)[: self.most]}
        return [record for record in records if record.id in chosen]


class Split(Step):
    """Turn a random part of the train records into the split "dev".

    Stratified: dev has the same shares of scores (or of labels, where there are no scores) as train, and
    exactly the nearest whole number of records. With `grouped_by`, records that share this column's value
    stay together; then dev is at most that number, and not stratified.
    """

    version = 1

    dev: float = Field(gt=0.0, lt=1.0, description="share of the train records that becomes dev")
    seed: int = Field(0, description="decides which records are drawn")
    grouped_by: str | None = Field(
        None,
        description="records that share this column's value stay together: sentence1, anchor, source_id ...",
    )

    def columns_used(self) -> tuple[str, ...]:
        """Return the column that makes a group, if one is named."""
        return (self.grouped_by,) if self.grouped_by else ()

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        """Return all records; raises UserError if there is a dev split, or would be none."""
        if any(record.split == "dev" for record in records):
            raise UserError("split: the data set has a dev split already")
        train = [record for record in records if record.split == "train"]
        num_dev = rounded(len(train) * self.dev)
        chosen = self._groups(train, num_dev) if self.grouped_by else self._stratified(train, num_dev)
        if not chosen or len(chosen) == len(train):
            raise UserError(
                f"split: a dev part of {self.dev} leaves train or dev empty ({len(train)} train records)"
            )
        return [replace(record, split="dev") if record.id in chosen else record for record in records]

    def remark(self, before: Sequence[Record], after: Sequence[Record]) -> str:
        """Return the size of dev and how it was drawn."""
        how = (
            f"grouped by {self.grouped_by}, not stratified" if self.grouped_by else "stratified, not grouped"
        )
        return f"{sum(record.split == 'dev' for record in after)} of them dev, {how}"

    def _stratified(self, train: Sequence[Record], num_dev: int) -> set[str]:
        """Cut the records, sorted by score, into num_dev blocks and draw one of each."""
        rank = rank_of(SPLIT, self.seed)
        ordered = sorted(
            train, key=lambda record: (getattr(record, "score", 0.0), record.label, rank(record))
        )
        ends = [len(ordered) * block // max(num_dev, 1) for block in range(num_dev + 1)]
        blocks = (ordered[start:end] for start, end in pairwise(ends))
        return {min(block, key=rank).id for block in blocks}

    def _groups(self, train: Sequence[Record], num_dev: int) -> set[str]:
        """Take whole groups in random order, as far as they fit."""
        groups: dict[str, list[str]] = defaultdict(list)
        for record in train:
            groups[getattr(record, str(self.grouped_by))].append(record.id)
        chosen: set[str] = set()
        for value in sorted(groups, key=lambda value: digest(SPLIT, self.seed, value)):
            if len(chosen) + len(groups[value]) <= num_dev:
                chosen.update(groups[value])
        return chosen
