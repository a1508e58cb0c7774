"""Why a sentence that an LLM wrote is dropped: the same reasons for every method that asks for one."""

import pytest

from synthbench.api import why_unusable


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("", "empty"),
        (" -- !", "empty"),
        ("\u3164 \u200b", "empty"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("  a Man SLEEPS!”", "identical"),
        ("A man sleeps soundly.", ""),
        ("A man's asleep.", ""),
    ],
)
def test_a_written_sentence_is_new_and_says_something(written: str, reason: str) -> None:
    assert why_unusable(written, ("A man sleeps.", "A dog runs.")) == reason


def test_nothing_is_identical_where_nothing_is_known() -> None:
    assert why_unusable("A man sleeps.", ()) == ""
