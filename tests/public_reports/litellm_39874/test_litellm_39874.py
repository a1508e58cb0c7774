"""BerriAI/litellm #39874: a judge's reply with a fence that never closes kept the reader busy for a minute.

Here patterns that read answers are linear by structure (tests/base/test_patterns.py). Such replies are read,
whatever their length, and say what short ones say.
"""

import pytest

from synthbench.llm.judging import UNCLEAR, Question

LENGTH = 60_000


@pytest.mark.parametrize("explanation", [False, True])
@pytest.mark.parametrize(
    "unit", ["score ", "score of a ", "``` ", " ", "\n", "9", "answer: ", "1.\n", "the score is "]
)
def test_a_judges_endless_reply_is_unclear(unit: str, explanation: bool) -> None:
    question = Question(prompt="{a}", grades=(0, 5), explanation=explanation)
    verdict = question.read("```json\n" + unit * (LENGTH // len(unit)) + "x")
    assert (verdict.value, verdict.reason) == (None, UNCLEAR)


def test_a_grade_at_the_end_counts() -> None:
    question = Question(prompt="{a}", grades=(0, 5), explanation=True)
    assert question.read("score " * (LENGTH // 6) + "\nScore: 4").value == 0.8
