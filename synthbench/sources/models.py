"""Sources in experiment files: a named task, a file, a corpus, documents, or a set of the generated world."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, ClassVar, Self, get_args

from pydantic import Field, field_validator, model_validator

from synthbench.base.errors import UserError, did_you_mean
from synthbench.base.frozen import added_field
from synthbench.base.user_files import why_no_file
from synthbench.data.reading import TABLES, Content, Faults, hashes
from synthbench.data.records import RecordKind
from synthbench.hub.repositories import COMMIT, HubFiles, HubRepository
from synthbench.plugins.importers import ImportOptions
from synthbench.plugins.loading import installed
from synthbench.sources import files, folders, hub, reranking
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.description import IN_DATA_FOLDER, Origin, Roots, SourceBase
from synthbench.sources.documents import DocumentsSource
from synthbench.sources.formats import code_of_format, importer
from synthbench.sources.tasks import OTHER_NAMES, TASKS, Split, Task, TaskName
from synthbench.tables.opening import GZIP, ending
from synthbench.worlds import NAME, world
from synthbench.worlds.settings import WorldSet

FIRST_ROWS = 10
"""Rows in which a file's columns are checked after its download."""
SUFFIXES = (".tsv", ".csv", ".jsonl", ".parquet", ".txt")


_READERS = {
    "reranking": reranking.read_task,
    "question pairs": folders.read_question_pairs,
    **dict.fromkeys(("semeval", "benchmark", "sick"), folders.read_similarity),
}


class TaskSource(SourceBase):
    """A standard task, from a folder or the Hugging Face hub.

    SICK-R has SemEval's splits (4,927 test pairs), SICK-R-all is one test set of all 9,927 pairs. Likewise
    MRPC has 1,725 test pairs and MRPC-all 5,801.
    """

    key: ClassVar[str] = "task"
    task: TaskName = Field(description="the standard task's name")
    split: Split = Field("test", description="the task's split; not every task has all three")
    origin: Origin | None = Field(None, description="folder or hub. Default: the experiment's origin")
    expected_size: int | None = Field(
        None,
        ge=0,
        description="required number of pairs, queries or sentences; null: the published number, 0: any",
    )

    @field_validator("task", mode="before")
    @classmethod
    def _has_its_own_name(cls, given: object) -> object:
        name = OTHER_NAMES.get(given.lower(), given) if isinstance(given, str) else given
        if name != given:
            raise ValueError(f"no task is called '{given}'; did you mean '{name}'?")
        return given

    @model_validator(mode="after")
    def _has_split(self) -> Self:
        known = self._task().parts
        if self.split not in known:
            raise ValueError(f"{self.task} has no split '{self.split}', only {', '.join(known)}")
        if self.origin == "hub" and not self._task().hub_id:
            raise ValueError(f"origin: {hub.unknown(self._task())}")
        return self

    @property
    def own_kind(self) -> RecordKind:
        """Scored pairs; for a reranking task, rankings; for most transfer tasks, sentences."""
        return self._task().kind

    @property
    def is_whole_test(self) -> bool:
        """Whether the source reads the whole published test split of its task."""
        is_all = self.subsets is None and not self.drawn and self.expected_size is None
        return is_all and self.split == "test"

    def needs_data_folder(self, roots: Roots) -> bool:
        """Return whether the task is read from the data folder."""
        return not self.is_on_hub(roots)

    def hub_files(self, roots: Roots) -> tuple[HubFiles, ...]:
        """Return the task's files if it is read from the hub, else ().

        Without an origin, a task is read from the hub if there is no data folder and the hub has the task.
        """
        task = self._task()
        usual = "folder" if roots.data is not None or not task.hub_id else "hub"
        is_on_hub = (self.origin or roots.origin or usual) == "hub"
        return (hub.files_of(task, self.split),) if is_on_hub else ()

    def fingerprint(self, roots: Roots) -> dict[str, str]:
        """Return folder/name -> SHA-256 for each file; for a task on the hub, data set -> commit."""
        task = self._task()
        if self.is_on_hub(roots):
            hub.check_available(task, self.split)
            return {task.hub_id: task.hub_revision}
        parts = folders.task_files(task, self.split, roots.data)
        return hashes({f"{task.folder}/{path.name}": path for paths in parts.values() for path in paths})

    def check_first_rows(self, roots: Roots) -> None:
        """Raise UserError if the task's files on the hub lack a column; downloads them if needed."""
        task = self._task()
        hub.check_columns(task, self.split, hub.resolve(task, self.split))

    def _read(self, roots: Roots) -> Content:
        task = self._task()
        if self.is_on_hub(roots):
            return hub.read_task(task, self.split, hub.resolve(task, self.split), self.expected_size)
        parts = folders.task_files(task, self.split, roots.data)
        read_task = _READERS.get(task.layout, folders.read_transfer)
        return read_task(task, self.split, parts, self.expected_size)

    def _own_records(self, roots: Roots) -> int | None:
        return self.expected_size or self._task().size(self.split) or None

    def _title(self) -> str:
        return f"{self.task} {self.split}"

    def _task(self) -> Task:
        return TASKS[self.task]


_Value = Annotated[str, Field(min_length=1)] | int


class FileSource(SourceBase):
    """A file: TSV (no quoting), CSV, JSON lines, Parquet, or text with a sentence on each line.

    It is local, or part of a Hugging Face hub data set. All formats but Parquet may be gzipped, as in
    pairs.tsv.gz.
    """

    key: ClassVar[str] = "file"
    file: str = Field(
        min_length=1,
        description="path relative to the experiment file; `data:PATH`: in the data folder (--data); with "
        "`hub`, the path in the data set, where * matches any characters; one file must match",
    )
    hub: str | None = added_field(
        None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="the Hugging Face data set that holds the file (org/name). Default: a local file",
    )
    revision: str | None = added_field(
        None,
        pattern=f"^{COMMIT.pattern}$",
        description="with `hub`: full commit hash. Default: the commit in the local cache, else the newest",
    )
    format: str | None = added_field(
        None,
        description="name of an importer (`synthbench list importers`) for a special format. Default: by "
        "the file's ending",
    )
    kind: RecordKind | None = Field(
        None,
        description="the record kind of a row. Default for .txt: sentence; with `format`: the importer's",
    )
    columns: Mapping[str, Annotated[int, Field(ge=0)] | str] = Field(
        default_factory=dict,
        description="field -> column name (default: the field's name), or column number from 0 in a file "
        "without header; in rankings, if `candidate` or `grade` is named, a row is one candidate",
    )
    score_range: tuple[float, float] = Field(
        (0.0, 1.0), description="lowest and highest score in the file, mapped linearly to [0, 1]"
    )
    scores: Mapping[str, Annotated[float, Field(ge=0, le=1)]] | None = added_field(
        None,
        min_length=1,
        description="class -> score in [0, 1], if the score's column holds classes; the class becomes the "
        "record's label, and rows of other classes are dropped; null: the column holds "
        "numbers",
    )
    skip_blank: bool = added_field(
        False,
        description="true: drop and count rows with a blank text; false: refuse such rows",
    )
    where: Mapping[str, _Value | Annotated[tuple[_Value, ...], Field(min_length=1)]] | None = added_field(
        None,
        min_length=1,
        description="column -> the value, or list of values, of the rows to read, such as `llm: gpt-4o`; "
        "other rows are dropped and counted; null: all rows",
    )
    split: Split = Field("train", description="the split that records are marked with")

    @field_validator("format")
    @classmethod
    def _is_installed(cls, name: str | None) -> str | None:
        if name is not None and name not in (known := installed("importers")):
            raise ValueError(f"unknown importer '{name}'{did_you_mean(name, known)}")
        return name

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        suffix = ending(self.file)
        if suffix not in SUFFIXES:
            raise ValueError(f"{self.file}: the name must end in {', '.join(SUFFIXES)}, or in one and {GZIP}")
        if suffix == ".parquet" and Path(self.file).suffix == GZIP:
            raise ValueError(f"{self.file}: Parquet is compressed within; unpack the file")
        if self.format is not None:
            self._check_format(suffix)
        elif self.kind is None and suffix != ".txt":
            raise ValueError(f"kind is missing: what is a row of {self.file}?")
        if self.kind == RecordKind.RETRIEVAL:
            raise ValueError("a corpus has files of its own: `corpus: FOLDER` reads BEIR's layout")
        if self.kind == RecordKind.FAILURE or (suffix == ".txt" and self.own_kind != RecordKind.SENTENCE):
            why = f": {files.A_TEXT}; {TABLES}" if suffix == ".txt" else ""
            raise ValueError(f"{self.file} can't hold {self.kind} records{why}")
        if self.score_range[0] >= self.score_range[1]:
            raise ValueError("score_range must be [lowest, highest]")
        if self.revision is not None and self.hub is None:
            raise ValueError("revision: only a data set on the hub (`hub:`) has one")
        self._check_scores()
        self._check_columns(suffix)
        return self

    def _check_format(self, suffix: str) -> None:
        try:
            reader = importer(str(self.format))
            reader.check(self.file, suffix, self.kind)
        except UserError as error:
            raise ValueError(str(error)) from None
        for name in ("columns", "score_range", "scores", "skip_blank", "where"):
            if name in self.model_fields_set and not (reader.takes_scores and name == "scores"):
                raise ValueError(f"{name}: {reader.title} knows its own; leave it out")

    def _check_scores(self) -> None:
        if self.scores is None:
            return
        if self.own_kind != RecordKind.SCORED_PAIR:
            raise ValueError(f"scores: {self.own_kind} records have no score")
        if "score_range" in self.model_fields_set:
            raise ValueError("scores, of classes, and score_range, of numbers, exclude each other")
        if "label" in self.columns:
            raise ValueError("columns.label: leave it out; with `scores` the class is the label")

    def _check_columns(self, suffix: str) -> None:
        known = files.known_fields(self.own_kind)
        if self._is_of_candidates:
            known = (*files.CANDIDATE_FIELDS, *files.OPTIONAL_FIELDS)
        for name, column in self.columns.items():
            if name not in known:
                raise ValueError(f"{self.own_kind} records have no field '{name}'{did_you_mean(name, known)}")
            if isinstance(column, int) and suffix not in files.BY_NUMBER:
                raise ValueError(f"columns.{name}: columns of a {suffix} file have names, no numbers")
        if suffix == ".txt" and (self.columns or self.where):
            raise ValueError("a .txt file has no columns")
        if self.where and not self._has_header() and suffix in files.BY_NUMBER:
            raise ValueError("where: needs a header that names the columns; `columns` gives numbers here")

    @property
    def own_kind(self) -> RecordKind:
        """The kind of `as` if the importer converts to it, else `kind`; default: the format's usual kind."""
        if self.format is None:
            return self.kind or RecordKind.SENTENCE
        # An importer may produce other kinds of records; only the importer knows them.
        made = self.record_kind if self._importer_converts else self.kind
        return made or importer(self.format).kinds[0]

    @property
    def version(self) -> int:
        """Version of the reader: the importer's, if one is named."""
        return super().version if self.format is None else importer(self.format).version

    @property
    def _importer_converts(self) -> bool:
        return self.format is not None and self.converted_to in importer(self.format).makes

    @property
    def has_scores(self) -> bool:
        """Whether a teacher's scores of triplets are read; a row may have an empty list of them."""
        if self.format is not None:
            return importer(self.format).gives_scores
        return "scores" in self.columns

    def needs_data_folder(self, roots: Roots) -> bool:
        """Return whether the file's path starts from the data folder."""
        return self.hub is None and super().needs_data_folder(roots)

    def hub_files(self, roots: Roots) -> tuple[HubFiles, ...]:
        """Return the file if it belongs to a data set on the hub, else ()."""
        return () if self.hub is None else (HubFiles(self._repository(), ((self.file,),)),)

    def _repository(self) -> HubRepository:
        return HubRepository("dataset", str(self.hub), self.revision)

    def fingerprint(self, roots: Roots) -> dict[str, str]:
        """Return the file's hash, or hub data set and commit, and the importer's code; downloads no file."""
        code = {} if self.format is None else code_of_format(self.format)
        if self.hub is not None:
            return {self.hub: self._repository().commit(), **code}
        return {**hashes({self.file: self._path(roots)}), **code}

    def _read(self, roots: Roots) -> Content:
        if self.format is not None:
            options = ImportOptions(self.split, self.scores, self._importer_converts)
            return importer(self.format).read(self._path(roots), self.own_kind, options)
        read_file = files.read_candidates if self._is_of_candidates else files.read_file
        return read_file(self._path(roots), self._columns())

    def _columns(self) -> files.FileColumns:
        required = files.CANDIDATE_FIELDS if self._is_of_candidates else files.required_fields(self.own_kind)
        names = {name: name for name in required} | dict(self.columns)
        return files.FileColumns(
            self.own_kind,
            names,
            self.score_range,
            self.split,
            self.scores,
            self.skip_blank,
            {column: _texts(value) for column, value in (self.where or {}).items()},
        )

    def check_first_rows(self, roots: Roots) -> None:
        """Raise UserError if the first rows don't fit the format or lack a column; skips importers' files."""
        if self.format is None:
            problems = Faults()
            for _ in islice(files.rows(self._path(roots), self._columns(), problems), FIRST_ROWS):
                problems.raise_if_any()
            problems.raise_if_any()

    @property
    def _is_of_candidates(self) -> bool:
        """Whether a row is one candidate of a ranking, not a whole ranking."""
        return self.own_kind == RecordKind.RANKING and not {"candidate", "grade"}.isdisjoint(self.columns)

    def _own_records(self, roots: Roots) -> int | None:
        if self.where:
            return None
        if self.hub is not None:
            return hub.PUBLISHED_ROWS.get((self.hub, self.file))
        return files.num_rows(self._path(roots), has_header=self._has_header())

    def _has_header(self) -> bool:
        by_name = len(self.columns) < len(files.required_fields(self.own_kind))
        named = by_name or any(isinstance(column, str) for column in self.columns.values())
        return named and ending(self.file) in files.BY_NUMBER

    def _path(self, roots: Roots) -> Path:
        if self.hub is not None:
            (found,) = self.hub_files(roots)
            paths = found.resolve()
            if len(paths) > 1:
                several = (
                    f"{len(paths)} files match {self.file}: {', '.join(path.name for path in paths[:3])}"
                )
                raise UserError(f"{found.repository}: {several} ...; `file` must name one")
            return paths[0]
        path, start = self.path(roots), "file names are relative to the experiment file"
        if self.needs_data_folder(roots):
            start = f"{IN_DATA_FOLDER} is the data folder"
        wrong = why_no_file(path)
        if wrong:
            raise UserError(f"{path}: {wrong} ({start})")
        return path

    def _title(self) -> str:
        return self.file if self.hub is None else f"{self.hub}/{self.file}"


def _texts(value: str | int | tuple[str | int, ...]) -> frozenset[str]:
    """Return the value or values of `where` as cell texts."""
    return frozenset(map(str, value if isinstance(value, tuple) else (value,)))


class WorldSource(WorldSet, SourceBase):  # noqa: D101 - the set's own text is its documentation
    __doc__ = WorldSet.__doc__
    key: ClassVar[str] = NAME

    @model_validator(mode="after")
    def _sample_is_no_larger(self) -> Self:
        if self.own_kind == RecordKind.RETRIEVAL and (self.sample or self.part or self.subsets):
            raise ValueError("a retrieval task is whole; leave out sample, part and subsets")
        if self.sample is not None and not self.converted_to and self.sample.size > self.size:
            raise ValueError(f"sample.size {self.sample.size} is more than the {self.size} records")
        return self

    @property
    def final_split(self) -> str | None:
        """The split that records are marked with: train if the set may be used for training."""
        return "train" if self.is_training_text else super().final_split

    def fingerprint(self, roots: Roots) -> dict[str, str]:
        """Return the world's version, since no file is read."""
        return {NAME: str(world().version)}

    def _read(self, roots: Roots) -> Content:
        return Content(self.listed_records())

    def _own_records(self, roots: Roots) -> int | None:
        return self.size

    def _title(self) -> str:
        return f"{NAME} {getattr(self, NAME)} {self.split}"


Source = TaskSource | FileSource | CorpusSource | DocumentsSource | WorldSource
SOURCE_TYPES: Mapping[str, type[Source]] = {each.key: each for each in get_args(Source)}
