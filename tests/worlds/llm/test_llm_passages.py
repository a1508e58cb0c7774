"""The sandbox's LLM reads requests for JSON about a passage: choices among options, and queries."""

import json
from pathlib import Path

import pytest

from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.parsing import read_sentence, sentences_told
from synthbench_personas.answers import configuration_in, query_in
from synthbench_personas.prompts import SHIPPED, PersonaPrompts

REASONIR = Path(__file__).parents[3] / "experiments/papers/personas/prompts/reasonir.yaml"
PROMPTS = {"shipped": SHIPPED.read(), "reasonir": SHIPPED.under(PersonaPrompts.of_file(str(REASONIR)))}
PASSAGE = "Two cooks are peeling potatoes in the kitchen. A baker is heating a sauce."
PEOPLE = ("a judge who writes a ruling", "a cook in a small restaurant", "a tutor in mathematics")


def said(prompts: PersonaPrompts, passage: str, *, step: int, sample: int, **settings: float) -> str:
    chosen = {"persona": PEOPLE[0], "type": next(iter(prompts.types or {})), "difficulty": "research"}
    chat = (
        prompts.configuration_chat(passage, PEOPLE, sample)
        if step == 1
        else prompts.query_chat(passage, chosen, sample)
    )
    return Answers(LLMSettings(**settings), {"messages": list(chat.messages), "seed": sample}).choice(0)


@pytest.mark.parametrize("name", PROMPTS)
@pytest.mark.parametrize("passage", [PASSAGE, "Volcanoes rest: for long."], ids=["read", "unread"])
def test_shipped_prompts_get_answers_that_the_method_reads(name: str, passage: str) -> None:
    prompts = PROMPTS[name]
    types, difficulties = prompts.types or {}, prompts.difficulties or {}
    found = [
        configuration_in(said(prompts, passage, step=1, sample=sample), PEOPLE, types, difficulties)
        for sample in range(40)
    ]
    assert {each["type"] for each in found} == set(types)
    assert {each["difficulty"] for each in found} == set(difficulties)
    queries = [query_in(said(prompts, passage, step=2, sample=sample), passage) for sample in range(20)]
    assert all(queries)


def test_a_person_of_the_passages_domain_is_chosen_if_there_is_one() -> None:
    prompts = PROMPTS["shipped"]
    chosen = {json.loads(said(prompts, PASSAGE, step=1, sample=sample))["persona"] for sample in range(20)}
    assert chosen == {2}
    chosen = {json.loads(said(prompts, "Unread.", step=1, sample=sample))["persona"] for sample in range(20)}
    assert chosen == {1, 2, 3}


def test_search_words_are_a_headline_of_an_event_of_the_passage() -> None:
    events = {known.event for known in sentences_told(PASSAGE)}
    assert len(events) == 2
    for sample in range(20):
        query = query_in(said(PROMPTS["shipped"], PASSAGE, step=2, sample=sample), PASSAGE)
        told = read_sentence(query.split(". ")[-1])
        assert told is not None and told.event in events


def test_a_long_query_tells_more_before_its_question() -> None:
    queries = [
        query_in(said(PROMPTS["reasonir"], PASSAGE, step=2, sample=sample), PASSAGE) for sample in range(20)
    ]
    assert all(query.endswith("?") and query.count(". ") >= 3 for query in queries)


def test_refused_empty_and_malformed_answers_are_answers_too() -> None:
    prompts = PROMPTS["shipped"]
    assert said(prompts, PASSAGE, step=1, sample=0, empty=1.0) == ""
    assert "{" not in said(prompts, PASSAGE, step=2, sample=0, refusals=1.0)
    for sample in range(9):
        plain = said(prompts, PASSAGE, step=2, sample=sample)
        assert said(prompts, PASSAGE, step=2, sample=sample, malformed=1.0) != plain
