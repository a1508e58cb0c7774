"""Base class of the sources in experiment files: which records are read, and how they are selected."""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.frozen import Constant, WithConstants, added_field
from synthbench.base.grouping import grouped
from synthbench.base.user_files import RootedName, path_of
from synthbench.data.conversions import convert, thresholds, why_impossible
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.reading import Content
from synthbench.data.records import Record, RecordKind
from synthbench.hub.repositories import HubFiles
from synthbench.sources.parts import CONNECTS_PARTS, SourcePart, classes, divide

IN_DATA_FOLDER = "data:"
Origin = Literal["folder", "hub"]
NUM_SENTENCES = {RecordKind.SCORED_PAIR: 2, RecordKind.PAIR: 2, RecordKind.TRIPLET: 3}


@dataclass(frozen=True)
class Roots:
    """The folders in which sources are looked up.

    `data` holds the standard data sets (SentEval's). Relative file names start from `base`, the experiment
    file's folder. `origin` is where standard tasks come from (folder or hub) if their source does not say.
    None: the hub if `data` is not set and the hub has the task, else the folder.
    """

    data: Path | None = None
    origin: Origin | None = None
    base: Path = field(default_factory=Path)

    def find(self, name: str) -> Path:
        """Return the path of a named file or folder; raises UserError for `data:` without a data folder."""
        if not name.startswith(IN_DATA_FOLDER):
            return path_of(RootedName(name, self.base))
        inner = name.removeprefix(IN_DATA_FOLDER)
        if self.data is None:
            raise UserError(
                f"{name}: no data folder is set: point --data or SYNTHBENCH_DATA at a folder that holds"
                f" {inner}"
            )
        return self.data / inner


class SourceSample(BaseModel):
    """A random sample of a source; with the same seed, a larger sample contains a smaller one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: int = Field(ge=1, description="number of records")
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the sample")
    balanced: bool = added_field(
        False,
        description="draw equally many of each label, or of each of at most ten scores",
    )

    def choose(self, records: Sequence[Record]) -> list[int]:
        """Return the indices of the drawn records, in ascending order.

        Raises UserError if there are too few records, or with `balanced` too few of a class.
        """
        if self.size > len(records):
            raise UserError(f"sample.size {self.size} is more than the {len(records)} records")
        shuffled = list(range(len(records)))
        random.Random(self.seed).shuffle(shuffled)
        if not self.balanced:
            return sorted(shuffled[: self.size])
        of_class = grouped(zip(classes([records[index] for index in shuffled]), shuffled, strict=True))
        share, rest = divmod(self.size, len(of_class))
        wanted = {name: share + (number < rest) for number, name in enumerate(sorted(of_class))}
        lacking = (
            f"{len(of_class[name])} of class '{name}', {number} wanted"
            for name, number in wanted.items()
            if len(of_class[name]) < number
        )
        if fault := next(lacking, None):
            raise UserError(f"a balanced sample of {self.size}: {fault}")
        return sorted(index for name, number in wanted.items() for index in of_class[name][:number])


class SourceBase(BaseModel, WithConstants, ABC):
    """Which records are read, and how they are selected and converted.

    In order: the records of `subsets`, if any are named; one `part` of them; conversion by `as`, with the
    defaults of `synthbench.data.conversions`; then a sample.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, serialize_by_alias=True
    )

    key: ClassVar[str]
    """The field that names what is read, such as `file`; a section that has it is a source of this kind."""
    sample: SourceSample | None = Field(None, description="draw a random sample. Default: all records")
    subsets: Annotated[tuple[str, ...], Field(min_length=1)] | None = added_field(
        None,
        description="only these subsets, such as topics. Default: all",
    )
    part: SourcePart | None = added_field(
        None,
        description="take one part of the records. Default: all",
    )
    converted_to: Literal["scored_pair", "pair", "triplet", "sentence"] | None = added_field(
        None,
        alias="as",
        description="convert the records to this kind, before sampling; sentence: each distinct sentence"
        " once",
    )
    repeats: bool = added_field(
        False,
        description="with `as: sentence`: keep repeated sentences",
    )

    @model_validator(mode="after")
    def _is_convertible(self) -> Self:
        obstacle = why_impossible(self.own_kind, self.record_kind)
        if obstacle:
            raise ValueError(f"as: {obstacle}")
        if self.repeats and (self.converted_to != "sentence" or self.own_kind == RecordKind.SENTENCE):
            raise ValueError("repeats needs records that `as: sentence` makes into sentences")
        return self

    @property
    def record_kind(self) -> RecordKind:
        """The kind of every record of this source."""
        return RecordKind(self.converted_to) if self.converted_to else self.own_kind

    def constants(self) -> Mapping[str, Constant]:
        """Return the score thresholds if scored pairs or rankings become pairs or triplets; otherwise {}."""
        names = {RecordKind.PAIR: ("high",), RecordKind.TRIPLET: ("high", "low")}
        is_scored = self.own_kind in (RecordKind.SCORED_PAIR, RecordKind.RANKING)
        return thresholds(*names.get(self.record_kind, ())) if is_scored else {}

    @property
    @abstractmethod
    def own_kind(self) -> RecordKind:
        """The kind of the records as read, before conversion."""

    @property
    def version(self) -> int:
        """Version of the reader; it increases whenever a change makes the same files give other records."""
        return 1

    @property
    def final_split(self) -> str | None:
        """The split of all loaded records, None if the source itself sets no split."""
        return self.part.take if self.part is not None else getattr(self, "split", None)

    @property
    def drawn(self) -> str:
        """A description of the random division and sample, "" if there is neither."""
        parts = [f"divided by chance (by {self.part.by})"] if self.part is not None else []
        parts += [f"a random sample of {self.sample.size}"] if self.sample is not None else []
        return ", ".join(parts)

    def expected_records(self, roots: Roots) -> int | None:
        """Return about how many records are loaded; None if unknown before reading.

        After a conversion, the number is an upper bound; for rankings it may be too low.
        """
        if self.sample is not None:
            return self.sample.size
        own = None if self.subsets is not None else self._own_records(roots)
        if own is not None and self.part is not None:
            own = round(own * self.part.shares[self.part.take])
        if own is None or self.converted_to != "sentence":
            return own
        return own * NUM_SENTENCES.get(self.own_kind, 1)

    def _own_records(self, roots: Roots) -> int | None:
        """Return about how many records are read, or None if that is unknown before reading."""
        return None

    @property
    def component(self) -> str:
        """The name of this kind of source in stage identities."""
        return f"{self.key.title()}Source"

    def needs_data_folder(self, roots: Roots) -> bool:
        """Return whether the source is read from the data folder."""
        return str(getattr(self, self.key)).startswith(IN_DATA_FOLDER)

    def path(self, roots: Roots) -> Path:
        """Return the expected path of a local source; raises UserError if no data folder is known."""
        return roots.find(getattr(self, self.key))

    def hub_files(self, roots: Roots) -> tuple[HubFiles, ...]:
        """Return the files on the hub that the source reads; () if it reads none."""
        return ()

    def is_on_hub(self, roots: Roots) -> bool:
        """Return whether the source is read from the hub."""
        return bool(self.hub_files(roots))

    def check_first_rows(self, roots: Roots) -> None:
        """Raise UserError if the first rows lack a column or value that the source reads."""

    @abstractmethod
    def fingerprint(self, roots: Roots) -> dict[str, str]:
        """Return name -> SHA-256 of each file, or for a data set on the hub, its id -> commit hash.

        Raises UserError naming each missing file or folder and how to get it.
        """

    @abstractmethod
    def _read(self, roots: Roots) -> Content:
        """Read all records, before any selection or conversion; their kind is `own_kind`."""

    def _title(self) -> str:
        """Return this source's name for messages."""
        return str(getattr(self, self.key))

    @property
    def has_scores(self) -> bool:
        """Whether this source's triplets have a teacher's scores."""
        return False

    def load(self, roots: Roots) -> SyntheticDataset:
        """Return the selected, converted and sampled records, in source order, with their manifest.

        Raises UserError naming each fault by file and line (the first ten, and the number of further faults).
        """
        revisions = self.fingerprint(roots)
        content = self.read(roots)
        return SyntheticDataset.create(
            self.record_kind,
            content.records,
            config=self.model_dump(mode="json"),
            revisions=revisions,
            dropped=content.dropped,
            notes=content.notes,
        )

    def read(self, roots: Roots) -> Content:
        """Return the records as `load` does, but without a manifest; raises UserError as `load` does."""
        content = self._read(roots)
        try:
            return self._sampled(self._converted(self._divided(self._of_subsets(content))))
        except UserError as error:
            raise UserError(*(f"{self._title()}: {line}" for line in error.messages)) from error

    def _sampled(self, content: Content) -> Content:
        if self.sample is None:
            return content
        chosen = self.sample.choose(content.records)
        how = ", as many of each class" if self.sample.balanced else ""
        note = (
            f"{self.sample.size} of {len(content.records)} records, drawn with seed {self.sample.seed}{how}"
        )
        records = [content.records[index] for index in chosen]
        return Content(records, content.dropped, [*content.notes, note])

    def _of_subsets(self, content: Content) -> Content:
        if self.subsets is None:
            return content
        found = {record.subset for record in content.records}
        unknown = [
            f"subsets: no record is of '{name}'{did_you_mean(name, found)}"
            for name in self.subsets
            if name not in found
        ]
        if unknown:
            raise UserError(*unknown)
        records = [record for record in content.records if record.subset in self.subsets]
        note = f"{len(records)} of {len(content.records)} records: of the subsets {', '.join(self.subsets)}"
        return Content(records, content.dropped, [*content.notes, note])

    def _divided(self, content: Content) -> Content:
        if self.part is None:
            return content
        found = divide(content.records, self.part)
        taken = [
            replace(record, split=split)
            for record, split in zip(content.records, found, strict=True)
            if split == self.part.take
        ]
        if not taken:
            raise UserError(f"part: none of {len(found)} records is in {self.part.take}")
        numbers = Counter(split for split in found if split is not None)
        sizes = ", ".join(f"{numbers[split]} in {split}" for split in self.part.shares)
        how = f"part {self.part.take} by {self.part.by}, with seed {self.part.seed}"
        note = f"{how}, of {len(found)} records: {sizes}"
        left_out = {CONNECTS_PARTS: found.count(None)} if None in found else {}
        return Content(taken, {**content.dropped, **left_out}, [*content.notes, note])

    def _converted(self, content: Content) -> Content:
        if self.record_kind == self.own_kind:
            return content
        data = SyntheticDataset.create(
            self.own_kind, content.records, dropped=content.dropped, notes=content.notes
        )
        made = convert(data, self.record_kind, repeats=self.repeats)
        return Content(list(made), made.manifest.dropped, made.manifest.notes)
