"""Parse numbers as people and programs write them, without Python's own spellings such as 1_0."""

import math
import re
from decimal import Decimal

from synthbench.base.patterns import linear_pattern

_NUMBER = linear_pattern(r"^-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COMMA = linear_pattern(r"^-?\d+,\d+", re.ASCII)
_WHOLE = linear_pattern(r"^-?\d+", re.ASCII)
_BLANKS = " \t\r\n"


def number_in(value: object) -> float:
    """Return the number in a cell, which is text or a number; too large numbers become infinite.

    A text must be "nan" or "-nan" (in any case), or digits with an optional minus, point and exponent. "inf",
    underscores, a leading plus and digits of other scripts are refused. Raises ValueError, such as
    "'1_0' is not a number".
    """
    if isinstance(value, str):
        return _number_of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"{value!r} is not a number")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a signalling NaN
        return math.nan


def _number_of_text(text: str) -> float:
    found = text.strip(_BLANKS)
    if _NUMBER.fullmatch(found):
        return float(found)
    if found.lower() in ("nan", "-nan"):
        return math.nan
    hint = f"; write {found.replace(',', '.')}, with a point" if _COMMA.fullmatch(found) else ""
    raise ValueError(f"{text!r} is not a number{hint}")


def whole_number_in(text: str) -> int:
    """Return the whole number that a text holds; raises ValueError unless the text is [-]digits in ASCII."""
    found = text.strip(_BLANKS)
    if not _WHOLE.fullmatch(found):
        raise ValueError(f"{text!r} is not a whole number")
    return int(found)
