"""Reranking sets as JSON lines, each with one or several queries, relevant and irrelevant texts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.reading import Content, Faults, FirstLines, json_lines, sentence_of
from synthbench.data.records import Ranking, RecordKind
from synthbench.plugins.importers import Importer, ImportOptions
from synthbench.sources.doubts import KindsOfCells, contradictions
from synthbench.sources.folders import check_sizes
from synthbench.sources.tasks import Split, Task

FIELDS = ("query", "positive", "negative")
NO_CANDIDATES = "no candidates"


class RerankingFile(Importer):
    """JSON lines in the layout of MTEB's reranking sets: queries with their relevant and irrelevant texts."""

    version = 1
    title = "reranking format"
    suffix = ".jsonl"
    kinds = (RecordKind.RANKING,)

    def read(self, file: Path, kind: RecordKind | None, options: ImportOptions) -> Content:
        """Read a file's rankings; raises UserError as `read_file` does."""
        return read_file(file, options.split)


def read_task(
    task: Task, split: Split, files: Mapping[str, tuple[Path, ...]], expected: int | None
) -> Content:
    """Read a reranking task's split from its file.

    `expected` is the required number of queries; None: the published number, 0: any. Raises UserError as
    `read_file` does, and for another number of queries.
    """
    ((path,),) = files.values()
    content = read_file(path, split)
    check_sizes(task, split, files, dict.fromkeys(files, num_queries(content)), expected)
    return content


def read_file(path: Path, split: str) -> Content:
    """Read a file of lines {"id", "query", "positive", "negative", "order"}, as `add_ranking` takes them.

    A line without an id gets the file name and line number as id. Raises one UserError for all faults, with
    file and line, duplicate ids included; also if no query has candidates.
    """
    content, problems = Content(), Faults()
    seen, kinds = FirstLines(), KindsOfCells()
    for line, row in json_lines(path, problems):
        given = row.get("id")
        record_id = f"{path.name}/{line:04d}" if given is None or given == "" else str(given)
        try:
            seen.check(record_id, line)
            kinds.check(line, {"id": given})
            add_ranking(row, {"id": record_id, "split": split}, content)
        except ValueError as error:
            problems.at(path, line, error)
    problems.raise_if_any()
    if not content.records:
        raise UserError(f"{path}: holds no queries with candidates")
    content.notes.extend(contradictions(content.records))
    return content


def num_queries(content: Content) -> int:
    """Return the number of records, including the queries dropped for lack of candidates."""
    return len(content.records) + content.dropped.get(NO_CANDIDATES, 0)


def add_ranking(row: Mapping[str, Any], shared: Mapping[str, Any], content: Content) -> None:
    """Add a row's ranking to `content`; a query without any candidate is dropped and counted.

    `query` is a text or a list of texts, `positive` and `negative` are lists of texts. The optional list
    `order`, 1 for a positive and 0 for a negative, restores the original order (default: positives first).
    `shared` are further fields of the record. Raises ValueError with the fault.
    """
    for name in FIELDS:
        if name not in row:
            raise ValueError(f"no field '{name}'")
    given = row["query"] if isinstance(row["query"], list) else [row["query"]]
    if not given:
        raise ValueError("query is empty")
    # A title that was read twice is only one query.
    query, *further = dict.fromkeys(sentence_of(text, "query") for text in given)
    groups = {1: _texts(row, "positive"), 0: _texts(row, "negative")}
    order = _order(row, groups)
    if not order:
        content.drop(NO_CANDIDATES)
        return
    left = {grade: iter(texts) for grade, texts in groups.items()}
    content.records.append(
        Ranking(
            query=query,
            further_queries=tuple(further),
            candidates=tuple(next(left[grade]) for grade in order),
            grades=tuple(map(float, order)),
            **shared,
        )
    )


def _texts(row: Mapping[str, Any], name: str) -> Sequence[str]:
    texts = row[name]
    if not isinstance(texts, list):
        raise ValueError(f"{name} is not a list of texts: {texts!r}")
    return [sentence_of(text, f"{name} {number}") for number, text in enumerate(texts, start=1)]


def _order(row: Mapping[str, Any], groups: Mapping[int, Sequence[str]]) -> Sequence[int]:
    ordered = [grade for grade, texts in groups.items() for _ in texts]
    order: Sequence[int] | None = row.get("order")
    if order is None:
        return ordered
    is_binary = isinstance(order, list) and all(each in (0, 1) for each in order)
    if not is_binary or sorted(order, reverse=True) != ordered:
        raise ValueError("order has not a 1 for each positive and a 0 for each negative")
    return order
