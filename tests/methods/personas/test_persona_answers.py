"""Reading of both steps' answers, and the reasons for refusals."""

import json
from itertools import product

import pytest

from synthbench.api import AnswerError
from synthbench_personas.answers import configuration_in, query_in
from synthbench_personas.prompts import SHIPPED

PERSONAS = ("a cook", "a nurse on a night shift", "a judge")
TYPES, DIFFICULTIES = ("keywords", "yes_or_no"), ("school", "research")
ANSWER = {"persona": 2, "type": "keywords", "difficulty": "research"}
CHOSEN = {"persona": "a nurse on a night shift", "type": "keywords", "difficulty": "research"}


def read(answer: str) -> dict[str, str]:
    return dict(configuration_in(answer, PERSONAS, TYPES, DIFFICULTIES))


@pytest.mark.parametrize(
    "persona",
    [
        2,
        2.0,
        "2",
        "2.0",
        "2. a nurse on a night shift",
        "A nurse on a night shift.",
        "Person 2",
        "persona #2",
        "No. 2",
        "Person 2: a nurse on a night shift",
    ],
)
def test_a_persona_is_chosen_by_its_number_or_text(persona: object) -> None:
    assert read(json.dumps({**ANSWER, "persona": persona})) == CHOSEN


@pytest.mark.parametrize("name", ["yes_or_no", "Yes or no", "YES-OR-NO", " yes_or_no. "])
def test_an_option_is_read_whatever_its_case_and_joints(name: str) -> None:
    assert read(json.dumps({**ANSWER, "type": name}))["type"] == "yes_or_no"


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("keywords (search words without a sentence around them)", "keywords"),
        ("Keywords: search words", "keywords"),
        ("yes/no", "yes_or_no"),
        ("Yes / No question", "yes_or_no"),
        ("yes_or_no (a question that yes or no would answer)", "yes_or_no"),
    ],
)
def test_an_option_may_be_followed_by_its_description(said: str, name: str) -> None:
    assert read(json.dumps({**ANSWER, "type": said}))["type"] == name


def test_every_shipped_option_is_read_as_the_prompt_shows_it() -> None:
    shipped = SHIPPED.read()
    assert shipped.types and shipped.difficulties
    for kind, level in product(shipped.types.items(), shipped.difficulties.items()):
        answer = {"persona": 1, "type": "{} ({})".format(*kind), "difficulty": "{} ({})".format(*level)}
        found = configuration_in(json.dumps(answer), PERSONAS, shipped.types, shipped.difficulties)
        assert (found["type"], found["difficulty"]) == (kind[0], level[0])


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
        (json.dumps({**ANSWER, "persona": 2.5}), "persona: no text"),
        (json.dumps({**ANSWER, "persona": float("nan")}), "persona: no text"),
        (json.dumps({**ANSWER, "persona": float("inf")}), "persona: no text"),
        (json.dumps({**ANSWER, "persona": "2.5"}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "persona": "Person 9"}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "persona": "a pilot of 2 planes"}), "persona: none of the candidates"),
        (json.dumps({**ANSWER, "type": "keywords or yes/no"}), "type: not among the options"),
        (json.dumps({**ANSWER, "type": "no keywords"}), "type: not among the options"),
        (json.dumps({**ANSWER, "type": "keywordsearch"}), "type: not among the options"),
        (json.dumps({**ANSWER, "type": "yes"}), "type: not among the options"),
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
