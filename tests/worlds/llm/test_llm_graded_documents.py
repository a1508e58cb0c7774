"""The sandbox's LLM writes documents of several levels of relevance, whose true relevance is known."""

import json
from collections import Counter
from typing import Any

import pytest

from synthbench.data.records import Sentence
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.relevance import relevance_of
from synthbench.worlds.sandbox.sampling import split_of
from synthbench.worlds.sandbox.source import SetOptions
from synthbench_sycl.answers import documents_in
from synthbench_sycl.prompts import SHIPPED, GradedPrompts


def questions(size: int, **options: Any) -> list[str]:
    found = SetOptions.model_validate({"sandbox": "questions", "split": "train", "size": size, **options})
    return [record.sentence for record in found.listed_records() if isinstance(record, Sentence)]


QUESTIONS = questions(30)


def said(query: str, sample: int = 0, prompts: GradedPrompts | None = None, **settings: float) -> str:
    chat = (prompts or SHIPPED.read()).chat(query, sample)
    return Answers(LLMSettings(**settings), {"messages": list(chat.messages), "seed": sample}).choice(0)


def documents(query: str, **settings: float) -> tuple[str, ...]:
    return documents_in(said(query, **settings), ("3", "2", "1", "0"), query)


def test_questions_are_different_and_the_first_are_the_same_for_every_size() -> None:
    assert len(set(QUESTIONS)) == 30
    assert questions(5) == QUESTIONS[:5]
    assert all(question.endswith("?") for question in QUESTIONS)
    assert set(questions(20, split="test")).isdisjoint(QUESTIONS)


def test_documents_have_the_relevance_of_their_levels() -> None:
    for question in QUESTIONS:
        assert [relevance_of(text, question) for text in documents(question)] == [1.0, 0.5, 0.0, 0.0]


def test_all_that_is_told_is_of_the_train_split() -> None:
    for question in QUESTIONS[:10]:
        for text in documents(question):
            told = [read_sentence(each) for each in text.removesuffix(".").split(". ")]
            assert all(known is not None and split_of(known.event) == "train" for known in told)


def test_the_least_relevant_document_is_of_another_domain() -> None:
    for question in QUESTIONS[:10]:
        *_, near, far = (text.split(". ")[0].removesuffix(".") for text in documents(question))
        known = [read_sentence(text) for text in (near, far)]
        assert known[0] is not None and known[1] is not None
        assert known[0].event.domain != known[1].event.domain


@pytest.mark.parametrize("query", ["how long is honey good", "A man plays a red guitar on the stage."])
def test_other_queries_get_documents_that_differ_too(query: str) -> None:
    assert len(set(documents(query))) == 4


def test_a_wrong_document_is_of_another_level() -> None:
    found: Counter[float | None] = Counter(
        relevance_of(documents(question, noise=1.0)[0], question) for question in QUESTIONS
    )
    assert set(found) == {0.0, 0.5, 1.0}


def test_two_levels_are_the_answer_and_another_domain() -> None:
    prompts = SHIPPED.under(GradedPrompts(levels=("answers", "does not")))
    for question in QUESTIONS[:10]:
        best, worst = documents_in(said(question, prompts=prompts), ("1", "0"), question)
        assert (relevance_of(best, question), relevance_of(worst, question)) == (1.0, 0.0)


def test_refused_empty_and_malformed_answers_are_answers_too() -> None:
    assert said(QUESTIONS[0], empty=1.0) == ""
    assert "{" not in said(QUESTIONS[0], refusals=1.0)
    for sample in range(6):
        assert said(QUESTIONS[0], sample, malformed=1.0) != said(QUESTIONS[0], sample)
    json.loads(said(QUESTIONS[0]))
