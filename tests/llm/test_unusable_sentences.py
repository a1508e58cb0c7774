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
def test_empty_refused_and_known_sentences_are_unusable(written: str, reason: str) -> None:
    assert why_unusable(written, ("A man sleeps.", "A dog runs.")) == reason


def test_without_known_sentences_no_sentence_is_identical() -> None:
    assert why_unusable("A man sleeps.", ()) == ""
