"""Texts from outside are escaped for terminals, spreadsheets and Markdown."""

import io
import sys
from collections.abc import Callable
from typing import TextIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from synthbench.base.escaping import CsvWriter, harmless, markdown_text, restored, shown
from synthbench.base.terminal import ShownStream, bars_of_libraries, control_characters_shown, rich_console

ERASE = "\x1b[2K\x1b[1A"


def test_direction_marks_are_escaped() -> None:
    assert shown("a\u202eb") == "a\\u202eb"


def test_control_characters_are_escaped_and_layout_is_unchanged() -> None:
    assert shown("a\tb\nc") == "a\tb\nc"
    assert shown(f"x{ERASE}") == "x\\u001b[2K\\u001b[1A"
    assert shown("a\rb\x07\x9bc\x7f") == "a\\u000db\\u0007\\u009bc\\u007f"
    assert shown("Zoë – 漢字 🙂") == "Zoë – 漢字 🙂"


@given(st.text())
def test_printed_text_never_moves_the_cursor(text: str) -> None:
    assert all(sign in "\t\n" or not (ord(sign) < 32 or 127 <= ord(sign) < 160) for sign in shown(text))
    assert shown(shown(text)) == shown(text)


def test_all_printing_uses_one_escaping_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    with control_characters_shown():
        print(ERASE)
        print(ERASE, file=sys.stderr)
        rich_console(sys.stdout, width=80).print(ERASE, markup=False)
        with bars_of_libraries():
            sys.stderr.write("\r50%")
    assert out.getvalue() == f"{shown(ERASE)}\n" * 2
    assert err.getvalue() == f"{shown(ERASE)}\n\r50%"
    assert sys.stdout is out


def test_rich_keeps_its_own_colours_and_escapes_colours_of_texts() -> None:
    from rich.text import Text

    out = io.StringIO()
    stream = ShownStream(out)
    console = rich_console(cast("TextIO", stream), force_terminal=True, color_system="standard", width=60)
    console.print(Text("\x1b[31mred", style="bold"))
    assert out.getvalue() == "\x1b[1m\\u001b[31mred\x1b[0m\n"


@pytest.mark.parametrize("text", ["-0.5", "+3", "-1e-05", "12", "-.5", "-3.2%"])
def test_numbers_stay_numbers(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "- a thought", "\t=1", "'=1"]
)
def test_formulas_become_text_and_are_restored_exactly(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert restored(harmless(text)) == text


def test_an_exported_csv_has_plain_numbers_and_no_formula() -> None:
    text = io.StringIO()
    CsvWriter(text).writerows([["row", "difference"], ["=HYPERLINK(1)", "-0.500000"], ["b", -0.5]])
    assert text.getvalue() == "row,difference\n'=HYPERLINK(1),-0.500000\nb,-0.5\n"


def test_texts_form_no_markdown_links() -> None:
    assert markdown_text("[a](javascript:alert(1))") == "\\[a\\](javascript:alert(1))"
    assert "\x1b" not in markdown_text("\x1b[31m")


@pytest.mark.parametrize("width", [20, 32, 56, 200])
@pytest.mark.parametrize("make", [str, Text])
def test_a_key_is_masked_even_if_a_line_break_splits_it(
    width: int, make: Callable[[str], str | Text]
) -> None:
    stream = io.StringIO()
    console = rich_console(stream, width=width)
    table = Table("what", width=width)
    line = make("runs command: vllm serve some-model --port 80 --api-key hushhush12")
    table.add_row(line)
    console.print(line, table, markup=False)
    assert "hushhush12" not in stream.getvalue()
    assert "--api-key" in stream.getvalue()
