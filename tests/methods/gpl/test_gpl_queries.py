"""Queries for passages: their number, requests, parsing of answers, and pairs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from contract.stand_ins import Context, sentences

from synthbench.api import LLM, ChatAnswer, ChatRequest, Failure, Pair, Unit
from synthbench_gpl import GPLQueries
from synthbench_gpl.answers import IS_PASSAGE, NO_QUERY, REFUSED, TOO_LONG, fault_of, query_in

PASSAGE = "The Danube rises in the Black Forest."


@pytest.mark.parametrize(
    ("passages", "number"), [(5183, 49), (83_333, 4), (83_334, 3), (10_000_000, 3), (1, 250_000)]
)
def test_a_small_corpus_gets_250_000_queries_and_a_large_one_three_per_passage(
    passages: int, number: int
) -> None:
    assert GPLQueries().number(passages) == number
    assert GPLQueries(queries_per_passage=7).number(passages) == 7


@pytest.mark.parametrize(
    ("answer", "query"),
    [
        ("where does the Danube rise?", "where does the Danube rise?"),
        ('"Where does it rise?"', "Where does it rise?"),
        ("Sure! Here is a question that the passage answers:\n\nWhere does it rise?", "Where does it rise?"),
        ("Question: Where does it rise?\n\nLet me know if you need more!", "Where does it rise?"),
        ("**Search query:** danube source", "danube source"),
        ("1. danube source", "danube source"),
        ("Based on the passage, a good search query would be:\nHow long?", "How long?"),
        ('A possible search query is:\n\n"how long?"', "how long?"),
        ("**Here’s one:**\nHow long?", "How long?"),
        ("Sure!\n\nHow long?", "How long?"),
        ("Here's a search query: How long?", "How long?"),
        ("Here’s a question that the passage answers: **How long?**", "How long?"),
        ("Sure! Here is a query: How long?", "How long?"),
        ("**Here is a search query:** ¿cuánto dura?", "¿cuánto dura?"),
        ("Based on the passage, a good search query would be: how long?", "how long?"),
        ("how long?\n\nExplanation:\nThe passage says so.", "how long?"),
        ("Here is a river: where?", "Here is a river: where?"),
        ("SQL query: what is a join?", "SQL query: what is a join?"),
        ("is the question of Kashmir open: why?", "is the question of Kashmir open: why?"),
        ("sure deodorant: is it safe?", "sure deodorant: is it safe?"),
        ("meaning of 3:16", "meaning of 3:16"),
        ("how to write a query in SQL:", "how to write a query in SQL:"),
        ("Hier ist eine Suchanfrage:\n\nWie lange hält Honig?", "Wie lange hält Honig?"),
        ("Hier ist eine mögliche Suchanfrage: Wie lange?", "Wie lange?"),
        ("Natürlich!\nWie lange?", "Wie lange?"),
        ("Suchanfrage: Wie lange?", "Wie lange?"),
        ("**Suchanfrage:** Wie lange?", "Wie lange?"),
        ("Eine passende Frage wäre: „Wie lange?“", "Wie lange?"),
        ("以下是搜索问题：\n蜂蜜能保存多久？", "蜂蜜能保存多久？"),
        ("好的，以下是一个搜索问题：蜂蜜能保存多久？", "蜂蜜能保存多久？"),
        ("好的！\n蜂蜜能保存多久？", "蜂蜜能保存多久？"),
        ("问题：蜂蜜能保存多久？", "蜂蜜能保存多久？"),
        ("**搜索问题：**蜂蜜能保存多久？", "蜂蜜能保存多久？"),
        ("Gern gelesen: welche Romane?", "Gern gelesen: welche Romane?"),
        ("Frage an Ärzte: wie lange?", "Frage an Ärzte: wie lange?"),
        ("怎么解决登录问题？", "怎么解决登录问题？"),
        ("好的问题：怎么做？", "好的问题：怎么做？"),
        ("\n \n", ""),
        ("Sure!", ""),
    ],
)
def test_the_query_is_extracted_from_an_answer(answer: str, query: str) -> None:
    assert query_in(answer) == query


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("where does it rise?", ""),
        ("can I ask a question about passage 3?", ""),
        ("", NO_QUERY),
        ("?!", NO_QUERY),
        ("\u3164\u115f", NO_QUERY),
        ("I'm sorry, but I can't write a query.", REFUSED),
        ("Ich kann zu diesem Text leider keine Suchanfrage schreiben.", REFUSED),
        ("抱歉，我无法根据这个段落写出问题。", REFUSED),
        ("kann ich den Text kopieren?", ""),
        ("我无法登录是什么问题？", ""),
        ("word " * 65, TOO_LONG),
        ("the danube rises in the black forest", IS_PASSAGE),
    ],
)
def test_answers_without_a_query_get_a_reason(query: str, fault: str) -> None:
    assert fault_of(query, PASSAGE) == fault


class Chat:
    """Answers the requests of a passage with the given texts, the last one first."""

    def __init__(self, *texts: str | None) -> None:
        self.texts = texts
        self.asked: list[ChatRequest] = []

    def answers(self, requests: Iterator[ChatRequest]) -> Iterator[ChatAnswer]:
        self.asked = list(requests)
        for number, request in reversed(list(enumerate(self.asked))):
            text = self.texts[number % len(self.texts)]
            yield ChatAnswer(request, text, "" if text else "timed out")


def generated(chat: Chat, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Unit]:
    monkeypatch.setattr(Context, "llm", LLM("llm", "a-model", chat))
    method = GPLQueries.model_validate_json(json.dumps(options))
    return list(method.generate({"passages": sentences(PASSAGE, "Rain falls.")}, Context({})))


def test_a_prompt_is_one_instruction_or_exemplars_as_chat_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    alone, few = Chat("Where?"), Chat("Where?")
    generated(alone, monkeypatch, queries_per_passage=1)
    generated(few, monkeypatch, queries_per_passage=1, prompt="few-shot")
    system, user = alone.asked[0].messages
    assert (system["role"], user) == ("system", {"role": "user", "content": f"Passage: {PASSAGE}"})
    shown = few.asked[0].messages
    assert [one["role"] for one in shown] == ["system", *["user", "assistant"] * 3, "user"]
    assert (shown[0], shown[-1]) == (system, user)


def test_prompts_of_another_method_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped, others = Chat("Where?"), Chat("Where?")
    of_two = {"queries_of_two": "Ask for {passage} and {second}."}
    units = generated(shipped, monkeypatch, queries_per_passage=1)
    same = generated(others, monkeypatch, queries_per_passage=1, prompt="instruction", prompts=of_two)
    assert (others.asked, same) == (shipped.asked, units)
    methods = [GPLQueries.model_validate_json(json.dumps(each)) for each in ({}, {"prompts": of_two})]
    assert [method.asks({"passages": 9}) for method in methods] == [methods[0].asks({"passages": 9})] * 2
    assert [(method.version_in_use(), method.table_notes()) for method in methods] == [(2, ()), (3, ())]


def test_a_pair_is_a_query_and_its_passage_and_repeated_queries_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chat = Chat("Where?", "where?", "Why?")
    units = generated(chat, monkeypatch, queries_per_passage=3)
    assert [unit.position for unit in units] == [1, 0]
    of_first = units[1].records
    assert [(one.anchor, one.positive, one.split) for one in of_first if isinstance(one, Pair)] == [
        ("Where?", PASSAGE, "train"),
        ("Why?", PASSAGE, "train"),
    ]
    assert units[1].dropped == {"repeated query": 1}
    assert {one.source_id for one in of_first} == {units[1].key}
    # Equal messages with different sample indices; another seed asks for other answers.
    assert len({request.sample for request in chat.asked[:3]}) == 3
    other = Chat("Where?")
    generated(other, monkeypatch, queries_per_passage=3, seed=1)
    assert not {one.sample for one in other.asked} & {one.sample for one in chat.asked}


def test_failed_answers_are_failures_with_their_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    units = generated(Chat(None, "", "Where?"), monkeypatch, queries_per_passage=3)
    first, second, third = units[1].records
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert isinstance(third, Pair)
    assert (first.reason, second.reason) == ("timed out", NO_QUERY)


def test_the_number_of_requests_follows_from_the_corpus_alone() -> None:
    asks = GPLQueries(queries_per_passage=3).asks({"passages": 100})
    assert asks is not None
    assert asks.num_requests == 300
    assert GPLQueries().asks({}) is None
    assert GPLQueries(queries_per_passage=3).expected({"passages": 100}).num_records == 300
