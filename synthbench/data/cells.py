"""Values of files' cells, checked: a table's cells are all text, JSON's have types."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from synthbench.data.dataset import is_unicode

_TEXTS = '["text", "text"]'
_EXAMPLES = {"candidates": _TEXTS, "further_queries": _TEXTS, "grades": "[1, 0]"}
_ITEM_NAMES = {
    "candidates": "candidate {}",
    "further_queries": "further query {}",
    "grades": "grade (candidate {})",
}


def cell_value(name: str, value: object, *, is_sentence: bool) -> Any:  # noqa: ANN401 - the column's type
    """Return what a cell of the column `name` holds; raises ValueError saying what is wrong with it."""
    if name == "score":
        return _score(value, name)
    if name == "seed":
        return _seed(value)
    if name in ("candidates", "further_queries"):
        return [_text(text, one, is_sentence=is_sentence) for one, text in numbered(value, name)]
    if name == "grades":
        return [_score(grade, one) for one, grade in numbered(value, name)]
    return _text(value, name, is_sentence=is_sentence)


def numbered(value: object, name: str) -> Iterator[tuple[str, object]]:
    """Yield the name ("candidate 2") and value of each item of a cell that holds a list, or JSON text of one.

    Raises ValueError if there is no list, or nothing in one that may not be empty.
    """
    items = value
    if isinstance(value, str):
        try:
            items = json.loads(value)
        except (ValueError, RecursionError):
            items = None
    if not isinstance(items, list):
        raise ValueError(f"{name} is not a list like {_EXAMPLES[name]}: {value!r}")
    if not items and name != "further_queries":
        raise ValueError(f"{name} is empty")
    for number, item in enumerate(items, start=1):
        yield _ITEM_NAMES[name].format(number), item


def unmatched_grades(cells: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong where candidates and grades are not of one number."""
    sizes = {name: len(cells[name]) for name in ("candidates", "grades") if name in cells}
    if len(set(sizes.values())) > 1:
        yield f"{sizes['candidates']} candidates, but {sizes['grades']} grades"


def _text(value: object, name: str, *, is_sentence: bool) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text: {value!r}")
    if not is_unicode(value):
        raise ValueError(f"{name} has half a character (a lone surrogate)")
    if is_sentence and not value.strip():
        raise ValueError(f"{name} is empty")
    return value


def _score(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{name} is not a number: {value!r}")
    try:
        score = float(value)
    except ValueError:
        raise ValueError(f"{name} is not a number: {value!r}") from None
    except OverflowError:
        score = float("inf")
    if score != score:
        raise ValueError(f"{name} is NaN")
    if not 0.0 <= score <= 1.0:
        raise ValueError(
            f"{name} {value} is outside [0, 1]; others are read with --score-range LOW,HIGH, or score_range"
            " in an experiment"
        )
    return score


def _seed(value: object) -> int:
    try:
        seed = int(value) if isinstance(value, str) else value
    except ValueError:
        seed = None
    if isinstance(seed, bool) or not isinstance(seed, int) or abs(seed) >= 2**63:
        raise ValueError(f"seed is not a whole number of 64 bits: {value!r}")
    return seed
