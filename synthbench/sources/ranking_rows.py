"""Rankings from a table with a row for each candidate, as WikiQA and TREC-QA are released."""

from dataclasses import dataclass, field
from pathlib import Path

from synthbench.data.records import Ranking
from synthbench.errors import UserError
from synthbench.sources.content import Content
from synthbench.sources.files import BLANK_TEXT, Columns, rows
from synthbench.sources.problems import Problems, is_blank, score_of, sentence_of

FIELDS = ("query", "candidate", "grade")
OPTIONAL_FIELDS = ("id", "subset", "label")


@dataclass
class _Query:
    text: str
    given: dict[str, str]
    candidates: list[str] = field(default_factory=list)
    grades: list[float] = field(default_factory=list)


def read_file(path: Path, columns: Columns) -> Content:
    """Read a file's rankings: rows of one query, or of one id if a column holds it, wherever they stand.

    A query's id, if no column holds it, is file name and line of its first row.

    Raises UserError naming, all together and by file and line, missing columns, bad grades, empty texts, and
    ids that stand for two queries.
    """
    content, problems = Content(), Problems()
    queries: dict[str, _Query] = {}
    for line, row in rows(path, columns, problems):
        if columns.skip_blank and any(is_blank(row[name]) for name in ("query", "candidate")):
            content.drop(BLANK_TEXT)
            continue
        try:
            text, candidate = (sentence_of(row[name], name) for name in ("query", "candidate"))
            grade = score_of(row["grade"], columns.score_range, "grade")
        except ValueError as error:
            problems.add(f"{path}:{line}: {error}")
            continue
        given = {name: str(row[name]) for name in OPTIONAL_FIELDS if name in columns.names}
        query = queries.setdefault(given.get("id", text), _Query(text, given))
        if query.text != text:
            problems.add(f"{path}:{line}: id '{given['id']}' stands for the query '{query.text}' already")
        query.given.setdefault("id", f"{path.name}/{line:04d}")
        query.candidates.append(candidate)
        query.grades.append(grade)
    problems.raise_if_any()
    if not queries:
        raise UserError(f"{path}: holds no queries with candidates")
    for query in queries.values():
        ranking = Ranking(
            query=query.text,
            candidates=tuple(query.candidates),
            grades=tuple(query.grades),
            split=columns.split,
            id=query.given["id"],
            subset=query.given.get("subset", ""),
            label=query.given.get("label", ""),
        )
        content.records.append(ranking)
    return content
