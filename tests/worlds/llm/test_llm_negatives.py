"""The sandbox's LLM writes passages that do not answer a query, shown a passage that does or not."""

import pytest

from synthbench.llm.answered import passage_in
from synthbench.preparing.writing import WriteNegatives
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.understanding import AskedTask, understand
from synthbench.worlds.sandbox.parsing import sentences_told
from synthbench.worlds.sandbox.relevance import relevance_of

PASSAGE = "Two cooks are peeling potatoes in the kitchen. A baker is heating a sauce."
QUERIES = ("who is peeling potatoes in the kitchen?", "what are two cooks peeling in the kitchen?")
UNSEEN = {"negative": "Write a passage on the topic that does not answer the query.\nQuery: {query}"}


def answers(
    query: str, passage: str = PASSAGE, *, sample: int = 0, unseen: bool = False, **given: float
) -> Answers:
    step = WriteNegatives.model_validate({"prompts": UNSEEN} if unseen else {})
    (request,) = step._requests([(query, passage)])
    body = {"messages": list(request.messages), "seed": sample}
    return Answers(LLMSettings(**given), body)


def said(query: str, passage: str = PASSAGE, **given: float) -> str:
    return answers(query, passage, **given).choice(0)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("habits", [0.0, 1.0])
def test_a_written_passage_resembles_the_answer_and_does_not_answer(query: str, habits: float) -> None:
    written = {said(query, sample=sample, habits=habits) for sample in range(15)}
    assert len(written) > 3
    for text in written:
        assert relevance_of(text, query) == 0
        assert [known.event.domain for known in sentences_told(text)] == ["cooking", "cooking"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_writer_that_errs_tells_what_the_passage_tells(query: str) -> None:
    text = said(query, noise=1.0)
    assert relevance_of(text, query) == 1
    assert {known.event for known in sentences_told(text)} == {
        known.event for known in sentences_told(PASSAGE)
    }


@pytest.mark.parametrize("query", QUERIES)
def test_a_writer_that_sees_the_query_alone_answers_only_when_it_errs(query: str) -> None:
    written = [said(query, sample=sample, unseen=True, habits=0.0) for sample in range(5)]
    assert [relevance_of(text, query) for text in written] == [0] * 5
    assert relevance_of(said(query, unseen=True, noise=1.0), query) == 1


def test_texts_outside_the_grammar_are_denied() -> None:
    assert "not" in said("why do volcanoes rest?", "Volcanoes are calm for long.")
    assert "not" in said("why are volcanoes calm?", unseen=True)


def test_habits_are_the_prompts_whatever_the_query() -> None:
    keys = {answers(query)._habits.key for query in QUERIES}
    assert len(keys) == 1
    assert keys != {answers(QUERIES[0], unseen=True)._habits.key}


def test_judging_relevance_is_still_understood_as_a_judgement() -> None:
    text = f"Does the passage not answer the query? yes or no\nQuery: {QUERIES[0]}\nPassage: {PASSAGE}"
    assert understand([("user", text)]).task is AskedTask.JUDGEMENT


def test_refusals_and_wrapped_answers_are_read_as_such() -> None:
    assert "cannot" in said(QUERIES[0], refusals=1.0) or "can't" in said(QUERIES[0], refusals=1.0)
    wrapped = {said(QUERIES[0], sample=sample, malformed=1.0) for sample in range(12)}
    assert any("\n" in text for text in wrapped)
    for text in wrapped:
        assert relevance_of(passage_in(text), QUERIES[0]) == 0
        assert len(sentences_told(passage_in(text))) == 2
