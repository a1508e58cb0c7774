"""Corpora in BEIR's layout: passages and queries as JSON lines, and tables of relevance judgements.

Thakur et al. 2021 (arXiv 2104.08663): corpus.jsonl and queries.jsonl have `_id` and `text`, passages may have
a `title`; qrels/SPLIT.tsv has a header and the columns query, passage and grade. Each file may end in .gz.
The hub has passages and queries as Parquet files in the folders corpus and queries, with the same columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.data.reading import (
    Content,
    Faults,
    FirstLines,
    hashes,
    is_blank,
    json_lines,
    lines,
    sentence_of,
)
from synthbench.data.records import RecordKind, RetrievalText, Sentence
from synthbench.hub.repositories import COMMIT, HubFiles, HubRepository
from synthbench.sources.description import Roots, SourceBase
from synthbench.sources.files import num_rows, parquet_rows
from synthbench.sources.tasks import Split
from synthbench.tables.numbers import number_in

ON_HUB = "hub:"
PASSAGES, QUERIES, _JUDGED = "corpus.jsonl", "queries.jsonl", "qrels/"
NO_TEXT, NOT_JUDGED = "passage without text", "query without judgements"
SAID_AGAIN = "judgement that was given before"
QRELS_COLUMNS = 3
GRADE_HEADERS = ("score", "grade", "label", "relevance", "relevancy", "rel", "judgement", "judgment")


class CorpusSource(SourceBase):
    """A corpus in BEIR's layout: corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv, each plain or as .gz.

    Passages and queries may also be Parquet files in the folders corpus and queries, as on the hub.

    Gives a retrieval task, or the passages or judged queries alone as sentences. A passage's title, if any,
    is put before its text.
    """

    key: ClassVar[str] = "corpus"
    corpus: str = Field(
        min_length=1,
        description="the folder, relative to the experiment file; `data:PATH`: in the data folder "
        "(--data); `hub:ORG/NAME`: a data set on the Hugging Face hub",
    )
    revision: str | None = added_field(
        None,
        pattern=f"^{COMMIT.pattern}$",
        description="full commit hash on the hub. Default: the commit in the local cache, else the newest",
    )
    judgements: str | None = added_field(
        None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="the hub data set with the judgements as SPLIT.tsv, such as BeIR/scifact-qrels. "
        "Default: the corpus's own qrels/SPLIT.tsv",
    )
    judgements_revision: str | None = added_field(
        None,
        pattern=f"^{COMMIT.pattern}$",
        description="full commit hash of `judgements`. Default: the commit in the local cache, else the "
        "newest",
    )
    take: Literal["task", "passages", "queries"] = Field(
        "task",
        description="task: passages, queries and judgements; passages: these alone; queries: judged queries "
        "alone",
    )
    split: Split = Field("test", description="the split whose judgements are read: qrels/SPLIT.tsv")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.take == "task":
            for name in ("sample", "part", "subsets"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name}: a retrieval task is whole; `take: passages` can be sampled")
        if self.revision is not None and not self.corpus.startswith(ON_HUB):
            raise ValueError("revision: only a data set on the hub (`corpus: hub:ORG/NAME`) has one")
        if self.judgements is not None and not self.corpus.startswith(ON_HUB):
            raise ValueError("judgements: only a data set on the hub (`corpus: hub:ORG/NAME`) has them apart")
        if self.judgements_revision is not None and self.judgements is None:
            raise ValueError("judgements_revision: needs `judgements`, the data set that has this commit")
        return self

    @property
    def own_kind(self) -> RecordKind:
        """Retrieval for the whole task, sentences for passages or queries alone."""
        return RecordKind.RETRIEVAL if self.take == "task" else RecordKind.SENTENCE

    @property
    def version(self) -> int:
        """2 for a retrieval task, else 1; version 1 of the task kept the last of repeated judgements."""
        return 2 if self.take == "task" else 1

    @property
    def final_split(self) -> str | None:
        """The split recorded with each record: train for passages alone, else `split`."""
        return "train" if self.take == "passages" else self.split

    def hub_files(self, roots: Roots) -> tuple[HubFiles, ...]:
        """Return the files of a corpus on the hub and of its judgements; () for a local corpus."""
        if not self.corpus.startswith(ON_HUB):
            return ()
        corpus = HubRepository("dataset", self.corpus.removeprefix(ON_HUB), self.revision)
        if self.judgements is None or self.take == "passages":
            return (HubFiles(corpus, tuple(map(_forms, self._names))),)
        apart = HubRepository("dataset", self.judgements, self.judgements_revision)
        names = [name for name in self._names if not name.startswith(_JUDGED)]
        return (
            HubFiles(corpus, tuple(map(_forms, names))),
            HubFiles(apart, (_forms(f"{self.split}.tsv"),)),
        )

    def fingerprint(self, roots: Roots) -> dict[str, str]:
        """Return the hash of each file read, or the hub's data set and commit; downloads nothing."""
        if on_hub := self.hub_files(roots):
            return {each.repository.name: each.repository.commit() for each in on_hub}
        files = self._files(roots)
        return hashes({f"{name}{part}": path for name in files for part, path in _numbered(files[name])})

    @property
    def _names(self) -> tuple[str, ...]:
        if self.take == "passages":
            return (PASSAGES,)
        judgements = f"{_JUDGED}{self.split}.tsv"
        return (QUERIES, judgements) if self.take == "queries" else (PASSAGES, QUERIES, judgements)

    def _files(self, roots: Roots) -> dict[str, list[Path]]:
        """Return the files to read, by their names in BEIR's layout."""
        if on_hub := self.hub_files(roots):
            found = (path for each in on_hub for path in each.resolve_groups())
            return dict(zip(self._names, found, strict=True))
        folder = self.path(roots)
        given = {name: _first_form(folder, name) for name in self._names}
        absent = [name for name, paths in given.items() if not paths]
        if absent:
            raise UserError(
                f"{folder}: lacks {', '.join(absent)}; a corpus in BEIR's layout has {PASSAGES}, {QUERIES}"
                f" and qrels/{self.split}.tsv"
            )
        return given

    def check_first_rows(self, roots: Roots) -> None:
        """Raise UserError if the first passage or query, or any judgement, has another format."""
        for name, paths in self._files(roots).items():
            problems = Faults()
            if name.startswith(_JUDGED):
                _judgements(paths, Content(), problems)
            else:
                next(_texts(paths, problems, Content()), None)
            problems.raise_if_any()

    def _read(self, roots: Roots) -> Content:
        files = self._files(roots)
        content, problems = Content(), Faults()
        passages = dict(_texts(files[PASSAGES], problems, content)) if PASSAGES in files else {}
        if self.take == "passages":
            content.records.extend(
                Sentence(id=f"passage/{name}", split="train", sentence=text)
                for name, text in passages.items()
            )
        else:
            self._add_judged(files, passages, content, problems)
        problems.raise_if_any()
        if not content.records:
            raise UserError(f"{self._title()}: holds no {self.take}")
        return content

    def _add_judged(
        self,
        files: Mapping[str, Sequence[Path]],
        passages: Mapping[str, str],
        content: Content,
        problems: Faults,
    ) -> None:
        judgements = _judgements(files[f"{_JUDGED}{self.split}.tsv"], content, problems)
        texts = dict(_texts(files[QUERIES], problems, None))
        for name in judgements:
            if name not in texts:
                problems.add(
                    f"{files[QUERIES][0]}: lacks the query '{name}', which qrels/{self.split}.tsv judges"
                )
        judged = {name: text for name, text in texts.items() if name in judgements}
        if self.take == "queries":
            content.records.extend(
                Sentence(id=f"query/{name}", split=self.split, sentence=text) for name, text in judged.items()
            )
            return
        content.records.extend(
            RetrievalText(id=f"passage/{name}", split=self.split, text=text)
            for name, text in passages.items()
        )
        num_absent = 0
        for name, text in judged.items():
            graded = judgements[name]
            num_absent += len(graded.keys() - passages.keys())
            content.records.append(
                RetrievalText(
                    id=f"query/{name}",
                    split=self.split,
                    text=text,
                    judged=tuple(f"passage/{passage}" for passage in graded),
                    grades=tuple(graded.values()),
                )
            )
        if num_absent:
            content.notes.append(f"{num_absent} judged passages are not in the corpus: no model finds them")
        if len(texts) > len(judged):
            content.dropped[NOT_JUDGED] = len(texts) - len(judged)

    def _own_records(self, roots: Roots) -> int | None:
        if self.take != "passages" or self.hub_files(roots):
            return None
        found = [num_rows(path, has_header=False) for path in _first_form(self.path(roots), PASSAGES)]
        return sum(filter(None, found)) or None

    def _title(self) -> str:
        return f"{self.corpus} {self.take}"


def _forms(name: str) -> tuple[str, ...]:
    """Return glob patterns for a file of BEIR's layout: plain, .gz, or Parquet files in a folder."""
    plain = (name, f"{name}.gz")
    return (*plain, f"{name.removesuffix('.jsonl')}/*.parquet") if name.endswith(".jsonl") else plain


def _first_form(folder: Path, name: str) -> list[Path]:
    return next((found for form in _forms(name) if (found := sorted(folder.glob(form)))), [])


def _numbered(paths: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Yield each file with a suffix for its key in a fingerprint: "" for the first, then " 1", " 2", ..."""
    yield from ((f" {number}" if number else "", path) for number, path in enumerate(paths))


def _rows(paths: Sequence[Path], problems: Faults) -> Iterator[tuple[Path, int, Mapping[str, Any]]]:
    for path in paths:
        rows = parquet_rows(path) if path.suffix == ".parquet" else json_lines(path, problems)
        yield from ((path, number, row) for number, row in rows)


def _texts(paths: Sequence[Path], problems: Faults, content: Content | None) -> Iterator[tuple[str, str]]:
    """Yield each line's id and text; a line without text is dropped, or a fault if `content` is None."""
    seen = FirstLines()
    for path, number, row in _rows(paths, problems):
        try:
            name, text = _id_and_text(row)
            seen.check(name, number, "_id")
            if not text and content is None:
                raise ValueError("text is empty")
        except ValueError as error:
            problems.at(path, number, error)
            continue
        if text:
            yield name, text
        elif content is not None:
            content.drop(NO_TEXT)


def _id_and_text(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a line's id, and its title and text joined; raises ValueError saying what is wrong."""
    if "_id" not in row or "text" not in row:
        raise ValueError("not an object with `_id` and `text`")
    name = row["_id"]
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise ValueError(f"_id is neither a text nor a whole number: {name!r}")
    return str(name), " ".join(filter(None, (_part(row, key) for key in ("title", "text"))))


def _part(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return "" if is_blank(value) else sentence_of(value, key).strip()


def _judgements(paths: Sequence[Path], content: Content, problems: Faults) -> dict[str, dict[str, float]]:
    """Return each query's passages with their grades; a negative grade, as for spam, becomes 0, with a note.

    A repeated judgement with the same grade is dropped and counted; one with another grade is a fault.
    """
    found: dict[str, dict[str, float]] = {}
    first: dict[tuple[str, str], int] = {}
    (path,) = paths
    num_negative = 0
    for number, line in lines(path, problems):
        cells = line.split("\t")
        if not line.strip():
            continue
        if not found and number == 1 and cells[-1].strip().lower() in GRADE_HEADERS:
            continue
        try:
            query, passage, grade = _judgement(cells)
        except ValueError as error:
            problems.at(path, number, error)
            continue
        graded = found.setdefault(query, {})
        if first.setdefault((query, passage), number) == number:
            graded[passage] = max(0.0, grade)
            num_negative += grade < 0
        elif graded[passage] == max(0.0, grade):
            content.drop(SAID_AGAIN)
        else:
            at = f"line {first[query, passage]} {graded[passage]:g}"
            what = f"judges query '{query}' and passage '{passage}' {grade:g}, {at}; which one holds?"
            problems.at(path, number, what)
    if num_negative:
        content.notes.append(f"{num_negative:,} judgements are below 0, and count as 0")
    return found


def _judgement(cells: list[str]) -> tuple[str, str, float]:
    wanted = "needs query, passage and a whole number, with tabs between them"
    if len(cells) != QRELS_COLUMNS or not all(cells[:2]):
        raise ValueError(wanted)
    try:
        grade = number_in(cells[2])
    except ValueError:
        raise ValueError(wanted) from None
    if not grade.is_integer():
        raise ValueError(wanted)
    return cells[0], cells[1], grade
