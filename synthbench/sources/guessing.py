"""What a file of the user's holds: its columns, kind and score range, each said in a sentence."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, get_args

from synthbench.base.errors import UserError
from synthbench.base.patterns import linear_pattern
from synthbench.data.reading import Faults, Row, is_blank, json_lines, open_table, read_lines
from synthbench.data.records import RecordKind
from synthbench.sources.corpora import PASSAGES
from synthbench.sources.files import A_TEXT
from synthbench.sources.models import SUFFIXES
from synthbench.tables.numbers import number_in
from synthbench.tables.opening import ending

Role = Literal["sentences", "passages", "gold", "dev", "test"]
OF_SENTENCES = ("sentences", "passages")
Column = str | int
"""A column's name, or its number in a file without header."""

TEXT_NAMES = ("sentence", "text", "passage", "content", "body", "document", "question", "query", "title")
SCORE_NAMES = (
    "score",
    "similarity",
    "relatedness",
    "gold",
    "rating",
    "grade",
    "label",
    "duplicate",
    "quality",
)
KNOWN_PAIRS = (
    ("premise", "hypothesis"),
    ("query", "passage"),
    ("query", "document"),
    ("question", "answer"),
    ("anchor", "positive"),
    ("source", "target"),
    ("text", "paraphrase"),
)
SHARES = {"train": 0.5, "dev": 0.2, "test": 0.3}
"""How gold pairs are divided: dev decides between methods, so it is not much smaller than test."""
SCALES = ((0, 1), (-1, 1), (0, 2), (0, 3), (0, 4), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
"""The usual ranges of scores, the narrowest first."""
YES = "1 true yes y duplicate paraphrase similar same equivalent match positive pos valid"
NO = (
    "0 false no n different distinct dissimilar unrelated none negative neg invalid"
    " not_duplicate non-duplicate not_similar not_equivalent non-paraphrase not_paraphrase"
)
MOST_CLASSES = 12
MOST_OF_A_NAME = 40
MOST_OF_A_SCORE = 100
MOST_SHOWN = 6
_ID = linear_pattern(r"(^|[^a-z])(id|ids|idx|index|number|year|no|pid|qid\d?)($|[^a-z])")
_MARK = linear_pattern(r"(left|right|first|second|[12ab])")


@dataclass(frozen=True)
class Guess:
    """What a file holds: `settings` is the section of a source, `findings` are sentences for people."""

    settings: Mapping[str, Any]
    findings: tuple[str, ...]
    is_binary: bool = False
    """Whether gold scores have two values only."""


@dataclass(frozen=True)
class _Table:
    """A file's rows as columns of cells."""

    path: Path
    columns: Mapping[Column, Sequence[Any]]

    def refuse(self, what: str, candidates: Sequence[Column], keys: str) -> UserError:
        """Return the error for a column that can't be guessed, with what to write."""
        shown = ", ".join(map(_shown, list(candidates)[:MOST_SHOWN]))
        more = f" and {len(candidates) - MOST_SHOWN} more" if len(candidates) > MOST_SHOWN else ""
        return UserError(f"{self.path}: {what} {shown}{more}; name {keys}")


def guess(file: Path, role: str, given: Mapping[str, Any] | None = None) -> Guess:
    """Return the settings of a source that reads this file, and what was found in it.

    `given` are settings that the user wrote, such as `columns`; they are kept. `settings.file` is the path as
    given here: a caller that knows a shorter name puts it in its place.

    Raises one UserError if the file can't be read, or if a column, the scores of classes or the kind of a row
    can't be guessed, naming the candidates.
    """
    if role not in get_args(Role):
        raise UserError(f"{role}: no such source here; known: {', '.join(get_args(Role))}")
    given = given or {}
    if role in OF_SENTENCES:
        return _sentences(file, role, given)
    return _pairs(file, given)


def _sentences(file: Path, role: str, given: Mapping[str, Any]) -> Guess:
    if file.is_dir() and any((file / name).is_file() for name in (PASSAGES, f"{PASSAGES}.gz")):
        corpus = {"corpus": str(file), "take": "passages", **given}
        return Guess(corpus, (f"{file.name} is a corpus in BEIR's layout",))
    settings: dict[str, Any] = {"file": str(file), "kind": RecordKind.SENTENCE.value}
    if ending(file) == ".txt":
        texts: Sequence[Any] = read_lines(file)
        how = "a sentence a line"
    else:
        table = _table(file)
        column = given.get("columns", {}).get("sentence")
        if column is None:
            column = _text_column(table)
        settings["columns"] = {"sentence": column}
        texts = _cells(table, column)
        how = f"the texts are in {_shown(column)}"
    blank = sum(map(is_blank, texts))
    findings = [f"{len(texts) - blank:,} {role}: {how}"]
    if blank:
        settings["skip_blank"] = True
        findings.append(f"{blank:,} rows without a text are left out")
    return Guess({**settings, **given}, tuple(findings))


def _pairs(file: Path, given: Mapping[str, Any]) -> Guess:
    if ending(file) == ".txt":
        raise UserError(
            f"{file}: {A_TEXT}, but gold has pairs and scores; a table's name ends in .tsv or .csv"
        )
    table = _table(file)
    named = dict(given.get("columns", {}))
    score = named.get("score")
    if not {"sentence1", "sentence2"} <= {*named}:
        named["sentence1"], named["sentence2"] = _two_texts(table, except_for=score)
    texts = (named["sentence1"], named["sentence2"])
    if score is None:
        score = _score_column(table, texts)
    named["score"] = score
    columns = {name: named[name] for name in ("sentence1", "sentence2", "score")} | named
    scale = _scale(table, score, given)
    blank = sum(any(map(is_blank, row)) for row in zip(*(_cells(table, name) for name in texts), strict=True))
    settings: dict[str, Any] = {
        "file": str(file),
        "kind": RecordKind.SCORED_PAIR.value,
        "columns": columns,
        **scale.settings,
    }
    number = len(_cells(table, score))
    shown = f"{_shown(texts[0])} and {_shown(texts[1])}"
    findings = [f"{number:,} pairs: the texts are in {shown}, the score in {_shown(score)}", *scale.findings]
    if blank:
        settings["skip_blank"] = True
        findings.append(f"{blank:,} pairs without a text are left out")
    return Guess({**settings, **given}, tuple(findings), scale.is_binary)


def _table(file: Path) -> _Table:
    """Return the file's columns; raises UserError if it is no table or has no rows."""
    if ending(file) not in SUFFIXES:
        raise UserError(f"{file}: the name must end in {', '.join(SUFFIXES)}; save a spreadsheet as .csv")
    faults = Faults()
    if ending(file) in (".csv", ".tsv"):
        columns = _delimited(file, faults)
    else:
        columns = _named(file, _parquet(file) if ending(file) == ".parquet" else json_lines(file, faults))
    faults.raise_if_any()
    if not columns or not len(next(iter(columns.values()))):
        raise UserError(f"{file}: holds no rows")
    return _Table(file, columns)


def _delimited(file: Path, faults: Faults) -> dict[Column, Sequence[Any]]:
    first, cells = open_table(file, faults)
    rows = [row for _, row in cells]
    for mark, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(first) == 1 and ending(file) == ".csv" and first[0].count(mark):
            ends = " or let its name end in .tsv" if mark == "\t" else ""
            raise UserError(f"{file}:1: {name} are between its columns; save it with commas{ends}")
    if not first:
        return {}
    names: Sequence[Column] = first if _is_header(first, rows) else range(len(first))
    if names is not first:
        rows = [first, *rows]
    doubled = [name for name, number in Counter(names).items() if number > 1]
    if doubled:
        raise UserError(
            f"{file}:1: {Counter(names)[doubled[0]]} columns are named '{doubled[0]}'; rename one"
        )
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}


def _is_header(first: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether a first line names the columns: it has no numbers, and names or short cells alone."""
    if any(_is_number(cell) or is_blank(cell) for cell in first) or len({*first}) < len(first):
        return False
    if any(_is_named(cell, (*TEXT_NAMES, *SCORE_NAMES)) and len(cell.split()) <= 2 for cell in first):
        return True
    if any(_is_number(cell) for row in rows[:1] for cell in row):
        return True
    return all(len(cell) <= MOST_OF_A_NAME and not cell.strip().endswith((".", "?", "!")) for cell in first)


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        yield from enumerate(pq.read_table(file).to_pylist(), start=1)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{file}: not a readable Parquet file: {reason}") from error


def _named(file: Path, rows: Iterator[Row]) -> dict[Column, Sequence[Any]]:
    found = [row for _, row in rows]
    return {name: [row.get(name) for row in found] for name in found[0]} if found else {}


def _cells(table: _Table, column: Column) -> Sequence[Any]:
    if column not in table.columns:
        raise table.refuse(f"no column {_shown(column)}, only", list(table.columns), "one of them")
    return table.columns[column]


def _text_column(table: _Table) -> Column:
    """Return the column of the texts: the only one, the only one with a usual name, or the longest."""
    texts = _text_columns(table)
    named = [column for name in TEXT_NAMES for column in texts if _bare(column) == name]
    found = texts if len(texts) == 1 else named[:1]
    if found:
        return found[0]
    if not texts:
        raise table.refuse("no column holds texts:", list(table.columns), "it in `columns: {sentence: ...}`")
    raise table.refuse("which column holds the texts?", texts, "it in `columns: {sentence: ...}`")


def _two_texts(table: _Table, except_for: Column | None) -> tuple[Column, Column]:
    """Return the two columns of a pair's texts: the only two, or the only two with names that match."""
    texts = [column for column in _text_columns(table) if column != except_for]
    if len(texts) == 2:
        return texts[0], texts[1]
    usual = [pair for pair in KNOWN_PAIRS if {*pair} <= {_bare(column) for column in texts}]
    matching = [pair for pair in combinations(texts, 2) if _match(*pair)]
    if not matching and len(usual) == 1:
        by_name = {_bare(column): column for column in texts}
        matching = [(by_name[usual[0][0]], by_name[usual[0][1]])]
    if len(matching) == 1:
        return matching[0]
    keys = "two in `columns: {sentence1: ..., sentence2: ...}`"
    if len(texts) < 2:
        raise table.refuse("needs two columns of texts, has", list(table.columns), keys)
    raise table.refuse("which two columns hold the texts?", texts, keys)


def _match(first: Column, second: Column) -> bool:
    """Return whether two names differ by a mark alone, as question1 and question2 do, or left and right."""
    names = str(first).lower(), str(second).lower()
    if not isinstance(first, str) or names[0] == names[1]:
        return False
    return bool(_MARK.sub("", names[0]) == _MARK.sub("", names[1]))


def _text_columns(table: _Table) -> list[Column]:
    """Return the columns whose cells are texts: neither numbers nor ids, nor a few classes."""
    return [column for column, cells in table.columns.items() if _holds_texts(cells)]


def _holds_texts(cells: Sequence[Any]) -> bool:
    given = [cell for cell in cells if not is_blank(cell)]
    if not given or not all(isinstance(cell, str) for cell in given):
        return False
    several_words = sum(len(cell.split()) > 1 or not cell.isascii() for cell in given)
    few = len({*given}) <= min(MOST_CLASSES, len(given) // 2)
    return several_words > len(given) / 2 and not few


def _score_column(table: _Table, texts: Sequence[Column]) -> Column:
    """Return the column of the scores: by its name and content, numbers before classes."""
    others = [column for column in table.columns if column not in texts]
    numbers = [column for column in others if _holds_scores(column, table.columns[column])]
    classes = [column for column in others if _holds_classes(table.columns[column])]
    for columns in (numbers, classes):
        named = [column for column in columns if _is_named(column, SCORE_NAMES)]
        exact = [column for name in SCORE_NAMES for column in named if _bare(column) == name]
        found = columns if len(columns) == 1 else exact[:1] or named
        if len(found) == 1:
            return found[0]
    keys = "it in `columns: {score: ...}`"
    if not numbers and not classes:
        raise table.refuse("no column holds scores or classes of pairs:", list(table.columns), keys)
    raise table.refuse("which column holds the scores?", [*numbers, *classes], keys)


def _holds_scores(column: Column, cells: Sequence[Any]) -> bool:
    """Return whether most cells are numbers on a usual scale, and the column's name is no id's."""
    found = [number for cell in cells if (number := _number(cell)) is not None]
    given = sum(not is_blank(cell) for cell in cells)
    if not found or len(found) < 0.9 * given or _ID.search(_words(column)):
        return False
    return max(map(abs, found)) <= MOST_OF_A_SCORE


def _holds_classes(cells: Sequence[Any]) -> bool:
    given = [cell for cell in cells if not is_blank(cell)]
    if not all(isinstance(cell, str | bool) for cell in given):
        return False
    return 0 < len({*given}) <= min(MOST_CLASSES, max(1, len(given) // 2))


@dataclass(frozen=True)
class _Scale:
    settings: Mapping[str, Any]
    is_binary: bool
    findings: list[str] = field(default_factory=list)


def _scale(table: _Table, column: Column, given: Mapping[str, Any]) -> _Scale:
    """Return how a column's cells become scores in [0, 1]; raises UserError for classes of unknown scores."""
    cells = [cell for cell in _cells(table, column) if not is_blank(cell)]
    blank = len(_cells(table, column)) - len(cells)
    notes = [f"{blank:,} pairs without a score are left out"] if blank else []
    numbers = [number for cell in cells if (number := _number(cell)) is not None]
    classes = Counter(map(str, cells))
    if given.get("scores"):
        return _Scale({}, len({*given["scores"].values()}) == 2, notes)
    if len(numbers) < 0.9 * len(cells):
        scores = _scores_of_classes(table, column, classes)
        kinds = "binary: " + ", ".join(f"{classes[name]:,} of {name}" for name in scores)
        return _Scale({"scores": scores}, True, [kinds, *notes])
    low, high = min(numbers), max(numbers)
    distinct = {*numbers}
    if len(distinct) == 1:
        raise _one_class(table, column, f"{low:g}")
    if len(distinct) == 2:
        kinds = f"binary: {numbers.count(high):,} of {high:g}, {numbers.count(low):,} of {low:g}"
        return _Scale({"score_range": [low, high]}, True, [kinds, *notes])
    containing = [scale for scale in SCALES if scale[0] <= low and high <= scale[1]]
    bottom, top = min(containing, key=_width) if containing else (low, high)
    found = "" if (bottom, top) == (low, high) else f" (found: {low:g} to {high:g})"
    return _Scale(
        {"score_range": [float(bottom), float(top)]}, False, [f"graded: {bottom:g} to {top:g}{found}", *notes]
    )


def _width(scale: tuple[int, int]) -> int:
    return scale[1] - scale[0]


def _scores_of_classes(table: _Table, column: Column, classes: Mapping[str, int]) -> dict[str, float]:
    """Return 1 and 0 for two classes such as yes and no; raises UserError for others."""
    if len(classes) == 1:
        raise _one_class(table, column, next(iter(classes)))
    yes, no = ([name for name in classes if _as_word(name) in words.split()] for words in (YES, NO))
    if len(classes) == 2 and len(yes) == len(no) == 1:
        return {yes[0]: 1.0, no[0]: 0.0}
    names = sorted(classes)[:MOST_SHOWN]
    example = ", ".join(f"{name}: ..." for name in names)
    raise UserError(
        f"{table.path}: {_shown(column)} has the classes {', '.join(names)}; which score has each? Write"
        f" `scores: {{{example}}}` with numbers from 0 to 1"
    )


def _as_word(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _one_class(table: _Table, column: Column, name: str) -> UserError:
    number = len(table.columns[column])
    return UserError(
        f"{table.path}: all {number:,} pairs have the score {name} ({_shown(column)}); gold needs similar and"
        " different pairs"
    )


def _is_number(cell: object) -> bool:
    return _number(cell) is not None


def _number(cell: object) -> float | None:
    """Return a cell's number, also if it has a decimal comma, which the reader refuses with advice."""
    try:
        return number_in(cell.replace(",", ".") if isinstance(cell, str) else cell)
    except ValueError:
        return None


def _words(column: Column) -> str:
    return str(column).lower().replace("_", " ")


def _bare(column: Column) -> str:
    return "".join(filter(str.isalpha, str(column).lower()))


def _is_named(column: Column, names: Sequence[str]) -> bool:
    """Return whether a column has one of these names, or a name with one of them, such as is_duplicate."""
    return any(name in _bare(column) for name in names)


def _shown(column: Column) -> str:
    return f"column {column}" if isinstance(column, int) else f"'{column}'"
