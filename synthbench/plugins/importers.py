"""Contract of importers, which read the file formats that a source names by `format: NAME`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.reading import Content
from synthbench.data.records import RecordKind
from synthbench.plugins.contracts import Component


@dataclass(frozen=True)
class ImportOptions:
    """A source's options for its file: the records' split, and class -> score if labels are classes.

    With `converts`, records of all kinds are converted to the wanted one; otherwise other kinds are left out.
    """

    split: str = "train"
    scores: Mapping[str, float] | None = None
    converts: bool = False


class Importer(Component, ABC):
    """Reads, and may write, a file format: `format: NAME` of a source, `--format NAME` of `data import`."""

    title: ClassVar[str]
    """The format's name in messages, such as "DINO's format"."""
    suffix: ClassVar[str]
    """The format's file name suffix, such as .jsonl."""
    kinds: ClassVar[tuple[RecordKind, ...]]
    """The record kinds that the format can hold, the usual one first."""
    makes: ClassVar[tuple[RecordKind, ...]] = ()
    """The kinds to which a source's `as:` can convert records of all kinds (`ImportOptions.converts`)."""
    takes_scores: ClassVar[bool] = False
    """Whether labels may be classes, which `ImportOptions.scores` maps to scores."""
    gives_scores: ClassVar[bool] = False
    """Whether the format's triplets have a teacher's scores."""
    columns: ClassVar[tuple[str, ...]] = ()
    """Columns that identify the format."""

    @abstractmethod
    def read(self, file: Path, kind: RecordKind | None, options: ImportOptions) -> Content:
        """Return the records of one kind, in the file's order, and the number of dropped lines by reason.

        Without `kind`, the kind is the file's. Raises UserError naming each faulty line, and for a file
        without records.
        """

    def write(self, dataset: SyntheticDataset, file: Path) -> None:
        """Write a data set in this format; raises UserError for a read-only format or unsuitable records."""
        raise UserError(f"{self.title} can be read, not written")

    def check(self, file: str | Path, suffix: str, kind: RecordKind | None) -> None:
        """Raise UserError if a file with this suffix can't have this format, or can't hold this kind."""
        if suffix != self.suffix:
            raise UserError(f"{file}: a file in {self.title} is a {self.suffix} file")
        if kind not in (None, *self.kinds):
            held = " or ".join(self.kinds)
            raise UserError(f"a file in {self.title} holds {held} records, no {kind} records")
