"""run-llama/llama_index #22334: an LLM's answer that only begins like what is parsed kept the parser busy.

Here such answers give their sentences, whatever their length.
"""

import pytest

from synthbench.llm.answered import sentence_in, sentences_in
from synthbench.llm.replies import without_thoughts

LENGTH = 50_000


@pytest.mark.parametrize(
    "unit",
    [
        "1. ",
        "1\n",
        "a:\n",
        "'",
        "**",
        "- ",
        "1. a\nb\n",
        "sentence: ",
        "(a. ",
        "I cannot write ",
        "the ",
        " ",
    ],
)
def test_an_answer_with_many_repeated_openings_is_read(unit: str) -> None:
    answer = unit * (LENGTH // len(unit)) + "end"
    assert "end" in " ".join(sentences_in(answer))
    assert isinstance(sentence_in(answer), str)


def test_thoughts_with_many_openings_end_at_the_last_closing_tag() -> None:
    assert without_thoughts("<think>\n" * (LENGTH // 8) + "</think>so") == "so"
