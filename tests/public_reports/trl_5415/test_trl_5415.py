"""huggingface/trl #5415: completions that repeat a block and are cut off within it never ended to be parsed.

Here JSON that is cut off within its blocks has a reason, whatever its length, and what was whole is read.
"""

import pytest

from synthbench.api import AnswerError
from synthbench_brainstorm.answers import tasks_in

BLOCK = '{"name": "tool", "arguments": {"numbers": [13]}} '


def test_truncated_repeated_blocks_are_unusable_with_a_reason() -> None:
    with pytest.raises(AnswerError):
        tasks_in(BLOCK * 2_000 + '{"name": "tool", "arguments": {"numbers":')


@pytest.mark.parametrize("unit", ['["[", ', "[", "{", '{"a": ', '["', "[[1], "])
def test_unclosed_brackets_are_unusable_with_a_reason(unit: str) -> None:
    with pytest.raises(AnswerError):
        tasks_in(unit * (50_000 // len(unit)) + "x")


def test_a_list_after_a_text_with_brackets_is_found() -> None:
    assert tasks_in('As asked in [1] and {2}, [see there]:\n["first", "second"] and [so on') == [
        "first",
        "second",
    ]
