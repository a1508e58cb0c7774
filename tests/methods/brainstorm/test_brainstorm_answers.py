"""Parsing of an LLM's JSON answer, and the reasons for refusals."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench.api import AnswerError
from synthbench_brainstorm.answers import tasks_in, texts_in
from synthbench_brainstorm.prompts import Keys

KEYS = Keys(anchor="q", positive="p", negative="n")
RECORD = {"q": "a query", "p": "a text that serves", "n": "another text"}
TEXTS = ["a query", "a text that serves", "another text"]
PLAIN = json.dumps(RECORD)


@pytest.mark.parametrize(
    "answer",
    [
        PLAIN,
        f"```json\n{json.dumps(RECORD, indent=2)}\n```",
        f"Here is one [of many]:\n{PLAIN}\nI hope {{this}} helps!",
        json.dumps({**RECORD, "why": "it serves", "score": 5}),
        json.dumps({"draft": "none"}) + PLAIN,
        PLAIN.replace("a text", "a\n text"),
        "<think>{not yet}</think>" + PLAIN,
        f"[{PLAIN}]",
        f'{{"example": {PLAIN}}}',
        f'{{"task": "a task", "example": {PLAIN}}}',
        json.dumps({**RECORD, "about": {"q": "another", "n": "no"}}),
    ],
    ids=[
        "plain",
        "fenced",
        "with remarks",
        "more keys",
        "two objects",
        "line break",
        "thoughts",
        "in a list",
        "in an object",
        "in an object with a text",
        "with an object in it",
    ],
)
def test_a_record_is_parsed_whatever_text_surrounds_it(answer: str) -> None:
    assert texts_in(answer, KEYS) == TEXTS


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        (" \n```", "empty"),
        ("Which task?", "no JSON"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        (PLAIN[:-20], "JSON that ends too early"),
        (str(RECORD), "no JSON"),
        (PLAIN[:-1] + ",}", "no JSON"),
        ('["a", "b", "c"]', "no JSON object"),
        (f"[{PLAIN}, {PLAIN}]", "no JSON object"),
        (f"[[{PLAIN}]]", "no JSON object"),
        (f'{{"1": {PLAIN}, "2": {PLAIN}}}', "q: missing"),
        (json.dumps({"q": "a", "p": "b"}), "n: missing"),
        (json.dumps({**RECORD, "p": ["a text"]}), "p: no text"),
        (json.dumps({**RECORD, "p": None}), "p: no text"),
        (json.dumps({**RECORD, "q": " - "}), "q: empty"),
        (json.dumps({**RECORD, "q": "\u3164"}), "q: empty"),
        (json.dumps({**RECORD, "n": "A query!"}), "n: equal to q"),
        (json.dumps({**RECORD, "n": "A text  that serves."}), "n: equal to p"),
        (json.dumps({**RECORD, "p": "I'm sorry, but I can't help with that."}), "p: refusal"),
    ],
)
def test_an_unusable_record_has_a_reason(answer: str, reason: str) -> None:
    with pytest.raises(AnswerError) as raised:
        texts_in(answer, KEYS)
    assert str(raised.value) == reason


@pytest.mark.parametrize(
    "answer",
    [
        '{"tasks": ["one", "two"]}',
        '["one", "two"]',
        'Sure:\n["one",\n "  two"]',
        '{"n": 2, "found": ["one", "two", " "]}',
        '{"tasks": [{"task": "one"}, {"task": "two"}]}',
        '[{"task": "one"}, "two"]',
    ],
)
def test_tasks_are_parsed_from_a_list_or_from_an_objects_list(answer: str) -> None:
    assert tasks_in(answer) == ["one", "two"]


@pytest.mark.parametrize(
    "answer",
    [
        '{"tasks": "one; two"}',
        '{"tasks": []}',
        "[1, 2]",
        '{"tasks": ["one", 2]}',
        '{"tasks": [{"task": "one", "why": "it is new"}]}',
        '{"tasks": [{"task": ["one"]}, {}]}',
    ],
)
def test_other_answers_are_no_list_of_tasks(answer: str) -> None:
    with pytest.raises(AnswerError) as raised:
        tasks_in(answer)
    assert str(raised.value) == "no list of tasks"


@given(st.text(alphabet=st.sampled_from('[]{}":,\\ nqp1a`\n'), max_size=60))
def test_any_answer_is_parsed_or_gets_a_reason(answer: str) -> None:
    for read in (lambda: texts_in(answer, KEYS), lambda: tasks_in(answer)):
        try:
            assert read()
        except AnswerError as error:
            assert str(error)
