"""Doubtful content of files, such as a header read as data, mixed types, or contradictory scores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.records import Ranking, Record, ScoredPair

LITTLE = 0.5


def check_is_no_header(path: Path, first: Sequence[str], column_indices: Mapping[str, int]) -> None:
    """Raise UserError if the first line looks like a header: a field's column holds the field's own name."""
    found = [name for name, index in column_indices.items() if first[index].strip().lower() == name]
    if found:
        raise UserError(
            f"{path}:1: '{first[column_indices[found[0]]]}' is a column's name, no {found[0]}; the file has a"
            " header, so name its columns instead of numbering them"
        )


class KindsOfCells:
    """Checks that each id, subset or label column has one type, since 1 and "1" become the same text."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[str, int]] = {}

    def check(self, line: int, cells: Mapping[str, object]) -> None:
        """Raise ValueError if a cell has an unsupported type or another type than its column began with.

        Empty cells are ignored.
        """
        for name, value in cells.items():
            if value is None or value == "":
                continue
            kinds = {"text": str, "true or false": bool, "whole number": int, "number": float}
            kind = next((kind for kind, of in kinds.items() if isinstance(value, of)), None)
            if kind is None:
                raise ValueError(f"{name} is {value!r}, neither a text nor a number")
            first, first_line = self._first.setdefault(name, (kind, line))
            if first != kind:
                raise ValueError(f"{name} is a {kind}, {value!r}, in line {first_line} a {first}")


def unused_range(records: Iterable[Any], score_range: tuple[float, float]) -> Iterator[str]:
    """Yield a note if the records' scores differ, but span less than half of the permitted range.

    The records' scores are in [0, 1]; `score_range` is the range in the file. Needs at least one record.
    """
    scores = [record.score for record in records]
    low, high = score_range
    used = max(scores) - min(scores)
    if used < LITTLE and len({*scores}) > 1:
        least, most = (f"{low + score * (high - low):.6g}" for score in (min(scores), max(scores)))
        yield f"scores use {least} to {most}, {used:.0%} of the score range {low:g} to {high:g}"


def contradictions(records: Iterable[Record]) -> Iterator[str]:
    """Yield notes on equal pairs with different scores, and on queries with two grades for one candidate."""
    scores: dict[tuple[str, ...], float] = {}
    num_pairs = num_queries = 0
    for record in records:
        if isinstance(record, ScoredPair):
            num_pairs += scores.setdefault(record.texts(), record.score) != record.score
        elif isinstance(record, Ranking):
            judged = {*zip(record.candidates, record.grades, strict=True)}
            num_queries += len(judged) > len({*record.candidates})
    if num_pairs:
        yield f"{num_pairs:,} pairs are there before, with another score"
    if num_queries:
        yield f"{num_queries:,} queries have a candidate with two grades"


def carriage_returns(records: Iterable[Record]) -> Iterator[str]:
    """Yield a note if texts contain carriage returns, often left over from faulty line-end conversion."""
    number = sum(any("\r" in text for text in record.texts()) for record in records)
    if number:
        yield f"{number:,} records hold a carriage return in a text"
