"""Numbers from outside, and invisible texts."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.tables.characters import is_invisible
from synthbench.tables.numbers import number_in, whole_number_in


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_printed_by_python_is_read_back_unchanged(number: float) -> None:
    assert number_in(repr(number)) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("5", 5.0), (" 0.5\t", 0.5), (".5", 0.5), ("5.", 5.0), ("-1e-3", -0.001), ("1E+2", 100.0), ("007", 7.0)],
)
def test_plain_numbers_are_read(text: str, number: float) -> None:
    assert number_in(text) == number


NO_NUMBERS = [
    "1_0",
    "+1",
    "１",
    "٣",
    "0x10",
    "inf",
    "Infinity",
    "-inf",
    "1e",
    "",
    " ",
    "1 0",
    "1,000.5",
    "1\u00a0",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_python_only_number_formats_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        number_in(text)


def test_a_decimal_comma_is_refused_with_advice() -> None:
    with pytest.raises(ValueError, match=r"'0,5' is not a number; write 0\.5, with a point"):
        number_in("0,5")


def test_numbers_of_json_and_parquet_are_read_and_booleans_refused() -> None:
    assert number_in(3) == 3.0
    assert number_in(Decimal("0.25")) == 0.25
    assert number_in(10**400) == math.inf
    assert number_in(-(10**400)) == -math.inf
    assert math.isnan(number_in(Decimal("sNaN")))
    assert math.isnan(number_in("NaN"))
    for value in (True, None, [], {"a": 1}):
        with pytest.raises(ValueError, match="is not a number"):
            number_in(value)


@pytest.mark.parametrize("text", ["1_0", "1.0", "+1", "１", "", "1e3"])
def test_whole_numbers_consist_only_of_digits(text: str) -> None:
    assert whole_number_in(" -12 ") == -12
    with pytest.raises(ValueError, match="is not a whole number"):
        whole_number_in(text)


@pytest.mark.parametrize(
    "text",
    ["", " \t", "\u200b", "\ufeff", "\u00ad\u200d", "\u2060 \u3000", "\u3164", "\u2800", "\u202e", "\x07"],
)
def test_invisible_texts_are_blank(text: str) -> None:
    assert is_invisible(text)


@pytest.mark.parametrize("text", ["a", "\u200ba", "。", "😀", "ก", "हि", "-"])
def test_visible_texts_are_not_blank(text: str) -> None:
    assert not is_invisible(text)
