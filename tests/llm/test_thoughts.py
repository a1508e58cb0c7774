"""A model's thoughts are separated from its answer."""

import pytest

from synthbench.llm.cache import Answer
from synthbench.llm.replies import ONLY_THOUGHTS, to_chat_answer, without_thoughts
from synthbench.llm.requests import ChatRequest

REQUEST = ChatRequest("r", ({"role": "user", "content": "Paraphrase: A man rides."},), {})


@pytest.mark.parametrize(
    "text",
    [
        "<think>The user wants a man.</think> A man is riding.",
        "<think>\nOkay, so\n1. A man?\n2. No.\n</think>\n\nA man is riding.",
        "  \n<thinking>Hm.</thinking>A man is riding.",
        "<THOUGHT>Hm.</THOUGHT>\nA man is riding.",
        "<seed:think>Hm.</seed:think>A man is riding.",
        "<THINK >Hm.</THINK >A man is riding.",
        '<think effort="high">Hm.</think>A man is riding.',
        "[THINK]Hm.[/THINK]A man is riding.",
        "◁think▷Hm.◁/think▷A man is riding.",
        "<|START_THINKING|>Hm.<|END_THINKING|>A man is riding.",
        "<|begin_of_thought|>Hm.<|end_of_thought|>\n<|begin_of_solution|>A man is riding.<|end_of_solution|>",
        "<think>Hm.</think>\n<answer>A man is riding.</answer>",
        "<|channel|>analysis<|message|>Hm.<|end|>"
        "<|start|>assistant<|channel|>final<|message|>A man is riding.<|return|>",
        "analysisWe need a paraphrase.assistantfinalA man is riding.",
        "Here is my thought process:\nHm.\n\nHere is my response:\nA man is riding.",
        "<reasoning>Hm.</reasoning> <think>Hm.</think> A man is riding.",
    ],
)
def test_thoughts_before_an_answer_are_removed(text: str) -> None:
    assert without_thoughts(text) == "A man is riding."


@pytest.mark.parametrize(
    "text",
    [
        "The prompt opened the tag, so this is thought.\n</think>\nA man is riding.",
        "<think>I close with </think> soon.\n</think>A man is riding.",
        "<think>Draft: <answer>A horse rides.</answer></think>A man is riding.",
    ],
)
def test_text_before_a_closing_tag_counts_as_thoughts(text: str) -> None:
    assert without_thoughts(text) == "A man is riding."


@pytest.mark.parametrize(
    "text",
    [
        "<think>The user wants",
        "<think>\nHm.\n<reflection>No.</reflection>\nWell",
        "analysisWe need a",
        "<think></think>",
    ],
)
def test_an_answer_cut_off_while_thinking_is_a_failure_without_text(text: str) -> None:
    answer = to_chat_answer(REQUEST, Answer(text, "", 1, 1))
    assert (answer.text, answer.failure) == (None, f"empty answer: {ONLY_THOUGHTS}")


def test_thoughts_after_an_answer_are_removed_too() -> None:
    assert without_thoughts("A man is riding.\n<think>Was that right?") == "A man is riding."


@pytest.mark.parametrize(
    "text",
    [
        "A man is riding.",
        "1. He wrote a <think> tag.\n2. [Analysis] is a chapter.",
        "Analysis shows that it rains.\n",
        "<answer>A man</answer>",
    ],
)
def test_a_text_without_thoughts_is_unchanged(text: str) -> None:
    assert without_thoughts(text) == text
    assert to_chat_answer(REQUEST, Answer(text, "", 1, 1)).text == text
