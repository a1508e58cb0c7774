"""Reading of both steps' answers, and the reasons for refusals."""

import json

import pytest

from synthbench.api import AnswerError
from synthbench_personas.answers import configuration_in, query_in

PERSONAS = ("a cook", "a nurse on a night shift", "a judge")
TYPES, DIFFICULTIES = ("keywords", "yes_or_no"), ("school", "research")
ANSWER = {"persona": 2, "type": "keywords", "difficulty": "research"}
CHOSEN = {"persona": "a nurse on a night shift", "type": "keywords", "difficulty": "research"}


def read(answer: str) -> dict[str, str]:
    return dict(configuration_in(answer, PERSONAS, TYPES, DIFFICULTIES))


@pytest.mark.parametrize(
    "persona",
    [2, "2", "2. a nurse on a night shift", "A nurse on a night shift."],
    ids=["number", "its text", "number and text", "text"],
)
def test_a_persona_is_chosen_by_its_number_or_text(persona: object) -> None:
    assert read(json.dumps({**ANSWER, "persona": persona})) == CHOSEN


@pytest.mark.parametrize("name", ["yes_or_no", "Yes or no", "YES-OR-NO", " yes_or_no. "])
def test_an_option_is_read_whatever_its_case_and_joints(name: str) -> None:
    assert read(json.dumps({**ANSWER, "type": name}))["type"] == "yes_or_no"


def test_remarks_around_the_object_do_not_matter() -> None:
    assert read(f'Sure! {{"persona": 1}} is near, but:\n```json\n{json.dumps(ANSWER)}\n```\nDone.') == CHOSEN


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        ("the nurse", "no JSON"),
        ("As an AI language model, I cannot generate this content.", "refusal"),
        (json.dumps(ANSWER)[:-9], "JSON that ends too early"),
        ("[1, 2]", "no JSON object"),
        (json.dumps({**ANSWER, "persona": 0}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "persona": 4}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "persona": "No. 2"}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "persona": True}), "persona: no text"),
        (json.dumps({**ANSWER, "persona": "a pilot"}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "type": "essay"}), "type: not among the options"),
        (json.dumps({**ANSWER, "type": ["keywords"]}), "type: no text"),
        (json.dumps({"persona": 1, "type": "keywords"}), "difficulty: missing"),
        (json.dumps({**ANSWER, "difficulty": " "}), "difficulty: empty"),
    ],
)
def test_an_unusable_configuration_has_a_reason(answer: str, reason: str) -> None:
    with pytest.raises(AnswerError) as raised:
        read(answer)
    assert str(raised.value) == reason


def test_a_query_is_read_on_one_line() -> None:
    assert query_in('{"query": "how do I\\n cool rice?"}', "Rice cools.") == "how do I cool rice?"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("how do I cool rice?", "no JSON"),
        ('{"question": "how?"}', "query: missing"),
        ('{"query": "?"}', "query: empty"),
        ('{"query": "As an AI language model, I cannot generate this content."}', "query: refusal"),
        ('{"query": "rice  COOLS"}', "query: equal to the passage"),
    ],
)
def test_an_unusable_query_has_a_reason(answer: str, reason: str) -> None:
    with pytest.raises(AnswerError) as raised:
        query_in(answer, "Rice cools.")
    assert str(raised.value) == reason
