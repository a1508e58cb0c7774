"""What the descriptions of all sources share."""

import random
from abc import ABC, abstractmethod

from pydantic import BaseModel, ConfigDict, Field

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.errors import UserError
from synthbench.sources.content import Content
from synthbench.sources.places import Places


class Sample(BaseModel):
    """A random part of a source; with one seed, a smaller sample is a part of a larger one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: int = Field(ge=1, description="number of records")
    seed: int = Field(0, ge=0, lt=2**32, description="decides which records are drawn")


class SourceBase(BaseModel, ABC):
    """Where records come from, and which of them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    sample: Sample | None = Field(None, description="take a random part; null: all")

    @property
    @abstractmethod
    def record_kind(self) -> RecordKind:
        """The kind of every record of this source."""

    @abstractmethod
    def fingerprint(self, places: Places) -> dict[str, str]:
        """Return what this source reads: file name -> SHA-256 of its content, or hub id -> commit hash.

        Raises UserError naming each file or folder that is missing and how to get it.
        """

    @abstractmethod
    def _read(self, places: Places) -> Content:
        """Read all records."""

    @abstractmethod
    def _title(self) -> str:
        """Name this source in messages."""

    def load(self, places: Places) -> SyntheticDataset:
        """Read, check and sample the records, in the order of the source.

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
        """Read, check and sample as `load` does, without making a data set; raises UserError as it does."""
        content = self._read(places)
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
