"""What the descriptions of all sources share."""

import random
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.data.conversions import convert, why_impossible
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.errors import UserError
from synthbench.sources.content import Content
from synthbench.sources.parts import CONNECTS_PARTS, Part, divide
from synthbench.sources.places import Places

NUM_SENTENCES = {RecordKind.SCORED_PAIR: 2, RecordKind.PAIR: 2, RecordKind.TRIPLET: 3}


class Sample(BaseModel):
    """A random part of a source; with one seed, a smaller sample is a part of a larger one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: int = Field(ge=1, description="number of records")
    seed: int = Field(0, ge=0, lt=2**32, description="decides which records are drawn")


class SourceBase(BaseModel, ABC):
    """Where records come from, which of them, and what is made of them.

    With `part` they are divided as they are read. With `as` they are then converted as
    `synthbench.data.conversions` does by default. A sample is drawn in the end.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, serialize_by_alias=True
    )

    sample: Sample | None = Field(None, description="take a random part; null: all")
    # These two are left out of what identifies a source that has none, as it was before there were such keys.
    part: Part | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="divide the records and take one part of them; null: all",
    )
    converted_to: Literal["scored_pair", "pair", "triplet", "sentence"] | None = Field(
        None,
        alias="as",
        exclude_if=lambda value: value is None,
        description="make records of this kind of them (sentence: each distinct one once); a sample is drawn"
        " from these; null: as they are",
    )

    @model_validator(mode="after")
    def _is_convertible(self) -> Self:
        obstacle = why_impossible(self.own_kind, self.record_kind)
        if obstacle:
            raise ValueError(f"as: {obstacle}")
        return self

    @property
    def record_kind(self) -> RecordKind:
        """The kind of every record of this source."""
        return RecordKind(self.converted_to) if self.converted_to else self.own_kind

    @property
    @abstractmethod
    def own_kind(self) -> RecordKind:
        """The kind of the records as they are read."""

    @property
    def final_split(self) -> str | None:
        """Which split the records are marked as in the end."""
        return self.part.take if self.part is not None else getattr(self, "split", None)

    @property
    def expected_records(self) -> int | None:
        """About how many records there will be, if that is known without reading; at most, if converted."""
        if self.sample is not None:
            return self.sample.size
        own = self._own_records()
        if own is not None and self.part is not None:
            own = round(own * self.part.shares[self.part.take])
        if own is None or self.converted_to != "sentence":
            return own
        return own * NUM_SENTENCES.get(self.own_kind, 1)

    def _own_records(self) -> int | None:
        """Return about how many records are read, None if nobody knows before."""
        return None

    @abstractmethod
    def needs_data_folder(self, places: Places) -> bool:
        """Say whether the source is read from the data folder."""

    @abstractmethod
    def fingerprint(self, places: Places) -> dict[str, str]:
        """Return what this source reads: file name -> SHA-256 of its content, or hub id -> commit hash.

        Raises UserError naming each file or folder that is missing and how to get it.
        """

    @abstractmethod
    def _read(self, places: Places) -> Content:
        """Read all records, of `own_kind`."""

    @abstractmethod
    def _title(self) -> str:
        """Name this source in messages."""

    def load(self, places: Places) -> SyntheticDataset:
        """Read, check, convert and sample the records, in the order of the source.

        Raises UserError naming every fault by file and line (the first ten and the number of the others).
        """
        revisions = self.fingerprint(places)
        content = self.read(places)
        return SyntheticDataset.create(
            self.record_kind,
            content.records,
            config=self.model_dump(mode="json"),
            revisions=revisions,
            dropped=content.dropped,
            notes=content.notes,
        )

    def read(self, places: Places) -> Content:
        """Read, check, convert and sample as `load` does, without a manifest; raises UserError as it does."""
        content = self._converted(self._divided(self._read(places)))
        if self.sample is None:
            return content
        total = len(content.records)
        if self.sample.size > total:
            raise UserError(f"{self._title()}: a sample of {self.sample.size} from {total} records")
        chosen = list(range(total))
        random.Random(self.sample.seed).shuffle(chosen)
        records = [content.records[index] for index in sorted(chosen[: self.sample.size])]
        note = f"{self.sample.size} of {total} records, drawn with seed {self.sample.seed}"
        return Content(records, content.dropped, [*content.notes, note])

    def _divided(self, content: Content) -> Content:
        if self.part is None:
            return content
        try:
            found = divide(content.records, self.part)
        except UserError as error:
            raise UserError(f"{self._title()}: {error}") from error
        taken = [
            replace(record, split=split)
            for record, split in zip(content.records, found, strict=True)
            if split == self.part.take
        ]
        if not taken:
            raise UserError(f"{self._title()}: part: none of {len(found)} records is in {self.part.take}")
        numbers = Counter(split for split in found if split is not None)
        told = ", ".join(f"{numbers[split]} in {split}" for split in self.part.shares)
        how = f"part {self.part.take} by {self.part.by}, with seed {self.part.seed}"
        note = f"{how}, of {len(found)} records: {told}"
        left_out = {CONNECTS_PARTS: found.count(None)} if None in found else {}
        return Content(taken, {**content.dropped, **left_out}, [*content.notes, note])

    def _converted(self, content: Content) -> Content:
        if self.record_kind == self.own_kind:
            return content
        data = SyntheticDataset.create(
            self.own_kind, content.records, dropped=content.dropped, notes=content.notes
        )
        try:
            made = convert(data, self.record_kind)
        except UserError as error:
            raise UserError(f"{self._title()}: {error}") from error
        return Content(list(made), made.manifest.dropped, made.manifest.notes)
