"""Guess what a user's file holds (columns, kind, score range), and say each finding in a sentence."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from synthbench.base.errors import UserError
from synthbench.base.listing import listed
from synthbench.data.languages import language_of
from synthbench.data.reading import Faults, is_blank, lines
from synthbench.data.records import RecordKind
from synthbench.sources.columns import (
    MOST_SHOWN,
    MOSTLY,
    FileTable,
    UnguessedError,
    not_in,
    number_of,
    raise_first,
    read_table,
    shown,
)
from synthbench.sources.corpora import PASSAGES
from synthbench.sources.description import Roots
from synthbench.sources.documents import MARKDOWN, PDF, DocumentsSource, documents_in
from synthbench.sources.files import A_TEXT, cell_text
from synthbench.tables.opening import ending

Role = Literal["sentences", "passages", "gold", "dev", "test"]
OF_SENTENCES = ("sentences", "passages")
SHARES = {"train": 0.5, "dev": 0.2, "test": 0.3}
"""How gold pairs are divided: dev decides between methods, so it is not much smaller than test."""
POINTS_OF_ONE_PAIR = 100
"""With n test pairs, the minimum detectable difference is this / sqrt(n) points.

Spearman's correlation r of n pairs has the standard error (1 - r^2) sqrt(1 + r^2 / 2) / sqrt(n) (Bonett and
Wright 2000). The scores of two models on the same pairs correlate: by .80 for all-MiniLM-L6-v2 and itself
without the last layer on SICK (r .73), by .78 on Quora's pairs (average precision .84, whose standard error
is similar). A difference of 2.8 standard errors is detected at the 5 % level with 80 % power: with r = .7 and
a correlation of .8, 2.8 * .51 * 1.12 * sqrt(2 * .2) / sqrt(n) = 1.01 / sqrt(n).
"""
MOST_POINTS = 20
"""Largest minimum detectable difference of a test set, in points; smaller sets are refused."""
GOOD_POINTS = 5
SCALES = ((0, 1), (-1, 1), (0, 2), (0, 3), (0, 4), (1, 5), (0, 5), (1, 7), (1, 10), (0, 10), (0, 100))
"""The usual ranges of scores, the narrowest first."""
YES = "1 true yes y duplicate paraphrase similar same equivalent match positive pos valid"
NO = (
    "0 false no n different distinct dissimilar unrelated none negative neg invalid"
    " not_duplicate non-duplicate not_similar not_equivalent non-paraphrase not_paraphrase"
)


@dataclass(frozen=True)
class Guess:
    """What a file holds: `settings` of a source that reads it, and `findings` as sentences for people."""

    settings: Mapping[str, Any]
    findings: tuple[str, ...]
    is_binary: bool = False
    """Whether gold scores have two values only."""
    texts: Sequence[Any] = field(default=(), repr=False)
    """The cells that hold texts."""

    @cached_property
    def language(self) -> str | None:
        """The ISO 639-1 code of the texts' language; None if the language is not certain."""
        return language_of(str(text) for text in self.texts if not is_blank(text))


def shares_of_gold(others: Collection[str]) -> dict[str, float]:
    """Return part -> share of gold, summing to 1; leaves out dev and test if `others` has them."""
    left = {part: share for part, share in SHARES.items() if part == "train" or part not in others}
    return {part: round(share / sum(left.values()), 4) for part, share in left.items()}


def guess(
    file: Path,
    role: str,
    given: Mapping[str, Any] | None = None,
    *,
    others: Collection[str] = (),
    name: str = "",
) -> Guess:
    """Return the settings of a source that reads this file, and findings on its content.

    `given` are valid settings that the user wrote, such as `columns`; they are kept. `others` are the study's
    other sources. They determine the share of gold for the test part (`shares_of_gold`), unless `given` has a
    `part`. `name` is the file's name in the study, for advice only (default: its file name). The settings
    name the path as given here.

    Raises UnguessedError, naming the candidates, if a column or the scores of classes can't be guessed.
    Raises UserError for an unknown role, an unreadable file, a file without texts or scores, and pairs that
    all have one score. Also raises UserError if the test pairs are too few to detect differences, with the
    number of pairs that would do.
    """
    if role not in get_args(Role):
        raise UserError(f"{role}: no such source here; known: {', '.join(get_args(Role))}")
    name = name or file.name
    if role in OF_SENTENCES:
        return _sentences(file, role, given or {}, name)
    found, num_pairs, informative = _pairs(file, role, given or {}, name)
    is_divided = role == "gold" and "part" not in (given or {})
    share = shares_of_gold(others).get("test", 0.0) if is_divided else float(role != "gold")
    if not share:
        return found
    told = _differences_told(file, num_pairs, share, informative)
    return replace(found, findings=(*found.findings, told))


def _sentences(file: Path, role: str, given: Mapping[str, Any], name: str) -> Guess:
    if file.is_dir() and any((file / name).is_file() for name in (PASSAGES, f"{PASSAGES}.gz")):
        corpus = {"corpus": str(file), "take": "passages", **given}
        return Guess(corpus, (f"{file.name} is a corpus in BEIR's layout",))
    is_folder = file.is_dir() or not (file.suffix or file.exists())
    if role == "passages" and (is_folder or file.suffix.lower() in (*MARKDOWN, *PDF)):
        return _documents(file, given)
    settings: dict[str, Any] = {"file": str(file), "kind": RecordKind.SENTENCE.value}
    if ending(file) == ".txt":
        faults = Faults()
        texts: Sequence[Any] = [line for _, line in lines(file, faults)]
        raise_first(faults)
        how = "one in each line"
    else:
        table = read_table(file, role, name)
        named = dict(given.get("columns", {}))
        column: Any = named.get("sentence")
        others = ""
        if column is None:
            column = named["sentence"] = table.text_column()
            others = not_in(table.text_columns, [column])
        settings["columns"] = named
        texts = table.texts(column)
        how = f"in {shown(column)}{others}"
    found = [text for text in texts if not is_blank(text)]
    if not found:
        raise UserError(f"{file}: holds no texts")
    findings = [f"{len(found):,} {role}, {how}", *_blank(len(texts) - len(found), "rows"), *_repeated(found)]
    if len(found) < len(texts):
        settings["skip_blank"] = True
    return Guess({**settings, **given, **_columns(settings)}, tuple(findings), texts=texts)


def _documents(path: Path, given: Mapping[str, Any]) -> Guess:
    source = DocumentsSource.model_validate({"documents": str(path), **given}, strict=False)
    texts = [record.texts()[0] for record in source.read(Roots()).records]
    kinds = Counter(file.suffix.lower() for file in documents_in(path).values())
    numbers = ", ".join(f"{number:,} {ending}" for ending, number in sorted(kinds.items()))
    found = f"{len(texts):,} passages of at most {source.size:,} characters, from {numbers}"
    return Guess({"documents": str(path), **given}, (found, *_repeated(texts)), texts=texts)


def _pairs(file: Path, role: str, given: Mapping[str, Any], name: str) -> tuple[Guess, int, float]:
    """Return the guess for a file of pairs, the number of pairs read, and the share that is informative."""
    if ending(file) == ".txt":
        raise UserError(f"{file}: {A_TEXT}, but {role} has pairs and scores; a table ends in .tsv or .csv")
    table = read_table(file, role, name)
    named = dict(given.get("columns", {}))
    score: Any = named.get("score")
    if len({"sentence1", "sentence2"} & {*named}) == 1:
        raise UserError(f"{file}: columns: name both sentence1 and sentence2, or neither")
    other_texts = other_scores = ""
    if "sentence1" not in named:
        named["sentence1"], named["sentence2"] = two = table.two_texts(score)
        other_texts = not_in(table.text_columns, [*two, *([] if score is None else [score])])
    names = (named["sentence1"], named["sentence2"])
    if score is None:
        score = named["score"] = table.score_column(names)
        other_scores = not_in([column for each in table.score_columns(names) for column in each], [score])
    pairs = list(zip(*map(table.texts, names), strict=True))
    scale = _scale(table, score, given)
    settings: dict[str, Any] = {
        "file": str(file),
        "kind": RecordKind.SCORED_PAIR.value,
        "columns": {name: named[name] for name in ("sentence1", "sentence2", "score")} | named,
        **scale.settings,
    }
    whole = [pair for pair in pairs if not any(map(is_blank, pair))]
    if len(whole) < len(pairs):
        settings["skip_blank"] = True
    texts_in = f"{shown(names[0])} and {shown(names[1])}{other_texts}"
    score_in = f"{shown(score)}{other_scores}"
    findings = [
        f"{len(pairs):,} pairs, texts in {texts_in}, score in {score_in}, {scale.found}",
        *([f"{scale.blank:,} pairs have no score: left out"] if scale.blank else []),
        *_blank(len(pairs) - len(whole), "pairs"),
        *_repeated([tuple(sorted(map(str, pair))) for pair in whole]),
    ]
    texts = [text for pair in whole for text in pair]
    found = Guess({**settings, **given, **_columns(settings)}, tuple(findings), scale.is_binary, texts)
    return found, _num_read(table, role, found.settings), scale.informative


def _num_read(table: FileTable, role: str, settings: Mapping[str, Any]) -> int:
    """Return how many pairs a source with these settings reads.

    The source drops pairs with a blank text or score, and pairs that `where`, `subsets` or `scores` exclude.
    `sample` limits the number; for gold it is ignored, since gold's test part is not sampled.
    """
    columns = settings["columns"]
    needed = (table.cells(columns[name]) for name in ("sentence1", "sentence2", "score"))
    is_read = [not any(map(is_blank, cells)) for cells in zip(*needed, strict=True)]
    chosen = [(columns["score"], settings.get("scores")), (columns.get("subset"), settings.get("subsets"))]
    for column, values in [*chosen, *(settings.get("where") or {}).items()]:
        if values is not None and column in table.columns:
            accepted = {*map(str, [values] if isinstance(values, str | int) else values)}
            for row, cell in enumerate(table.columns[column]):
                is_read[row] &= not accepted.isdisjoint((str(cell), cell_text(cell)))
    sample = None if role == "gold" else settings.get("sample")
    return min(sum(is_read), sample["size"]) if sample else sum(is_read)


def _columns(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"columns": settings["columns"]} if "columns" in settings else {}


def _blank(number: int, what: str) -> list[str]:
    return [f"{number:,} {what} have a text that is empty or invisible: left out"] if number else []


def _repeated(rows: Sequence[Any]) -> list[str]:
    number = len(rows) - len({*rows})
    return [f"{number:,} repeat an earlier one ({number / len(rows):.0%})"] if number else []


@dataclass(frozen=True)
class _Scale:
    settings: Mapping[str, Any]
    found: str
    blank: int
    informative: float = 1.0
    """The share of pairs that help to detect differences; for binary gold, twice the rarer score's share."""
    is_binary: bool = False


def _scale(table: FileTable, column: Any, given: Mapping[str, Any]) -> _Scale:  # noqa: ANN401 - a column
    """Return how cells become scores in [0, 1].

    Raises UserError without any score, for decimal commas, or if all scores are equal; UnguessedError, a
    UserError, for classes without known scores.
    """
    cells = [cell for cell in table.cells(column) if not is_blank(cell)]
    blank = len(table.cells(column)) - len(cells)
    if not cells:
        raise UserError(f"{table.path}: no pair has a score in {shown(column)}")
    numbers = [number for cell in cells if (number := number_of(cell)) is not None]
    if given.get("scores") or len(numbers) < MOSTLY * len(cells):
        classes = Counter(map(str, cells))
        scores = given.get("scores") or _scores_of_classes(table, column, classes)
        kinds = Counter[str]()
        for name, score in scores.items():
            kinds[f"{score:g}"] += classes[str(name)]
        kinds = +kinds
        settings = {} if given.get("scores") else {"scores": scores}
    else:
        _check_points(table, column, cells)
        kinds = Counter(f"{number:g}" for number in numbers)
        low, high = given.get("score_range") or _range(numbers)
        settings = {} if given.get("score_range") else {"score_range": [float(low), float(high)]}
    if len(kinds) < 2:
        only = next(iter(kinds), "none")
        raise UserError(
            f"{table.path}: all {len(cells):,} pairs have the score {only} ({shown(column)}); gold needs"
            " similar and different pairs"
        )
    if len(kinds) == 2:
        found = "binary: " + " and ".join(f"{number:,} of {name}" for name, number in sorted(kinds.items()))
        return _Scale(settings, found, blank, 2 * min(kinds.values()) / kinds.total(), is_binary=True)
    found = f"{len(kinds)} classes" if "scores" in {**settings, **given} else f"{low:g} to {high:g}"
    return _Scale(settings, f"graded: {found}", blank)


def _check_points(table: FileTable, column: Any, cells: Sequence[Any]) -> None:  # noqa: ANN401 - a column
    """Raise UserError if a number has a decimal comma."""
    for cell in cells:
        if isinstance(cell, str) and "," in cell and number_of(cell) is not None:
            right = cell.replace(",", ".")
            raise UserError(f"{table.path}: {shown(column)} has decimal commas; write {cell} as {right}")


def _range(numbers: Sequence[float]) -> tuple[float, float]:
    """Return the narrowest usual range that holds all numbers, else (min, max).

    Two distinct numbers always give (min, max).
    """
    low, high = min(numbers), max(numbers)
    containing = [scale for scale in SCALES if scale[0] <= low and high <= scale[1]]
    if len({*numbers}) == 2 or not containing:
        return low, high
    return min(containing, key=lambda scale: scale[1] - scale[0])


def _scores_of_classes(table: FileTable, column: Any, classes: Mapping[str, int]) -> dict[str, float]:  # noqa: ANN401
    """Return 1 for a class such as "yes", 0 for "no"; a single class gets 0 if it means "no", else 1.

    Raises UnguessedError for other classes.
    """
    yes, no = ([name for name in classes if _as_word(name) in words.split()] for words in (YES, NO))
    if len(classes) == 1:
        return dict.fromkeys(classes, 0.0 if no else 1.0)
    if len(classes) == 2 and len(yes) == len(no) == 1:
        return {yes[0]: 1.0, no[0]: 0.0}
    names = sorted(classes)[:MOST_SHOWN]
    section = table.section("scores", f"{{{', '.join(f'{name}: ...' for name in names)}}}")
    raise UnguessedError(
        f"{table.path}: {shown(column)} has the classes {listed(sorted(classes), MOST_SHOWN)}; score each"
        f" from 0 to 1 in the study: {section}"
    )


def _as_word(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


def _differences_told(file: Path, num_pairs: int, share: float, informative: float) -> str:
    """Return a sentence on the minimum detectable difference, if `share` of the pairs are test pairs.

    Raises UserError if that difference is above `MOST_POINTS`.
    """
    points = POINTS_OF_ONE_PAIR / math.sqrt(max(1, num_pairs * share * informative))
    of_test = f"the {num_pairs * share:,.0f} in the test part" if share < 1 else "they"
    few, good = (_needed_pairs(each, share * informative) for each in (MOST_POINTS, GOOD_POINTS))
    if points > MOST_POINTS:
        raise UserError(
            f"{file}: {num_pairs:,} pairs are too few to tell anything: {of_test} show differences above"
            f" {points:.0f} points only; {few:,} pairs would show {MOST_POINTS} points, {good:,} show"
            f" {GOOD_POINTS}"
        )
    more = f"; {good:,} pairs would show {GOOD_POINTS}" if points > GOOD_POINTS else ""
    return f"{of_test} show differences above {points:.1f} points{more}"


def _needed_pairs(points: float, share: float) -> int:
    """Return how many pairs detect a difference of `points`, if `share` of the pairs are in the test part."""
    return math.ceil(round((POINTS_OF_ONE_PAIR / points) ** 2 / share, 6))
