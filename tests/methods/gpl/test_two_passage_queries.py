"""Queries over two passages: which passages, what is asked, and both as positives."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from contract.stand_ins import Context, sentences
from wording import refused

from synthbench.api import LLM, ChatAnswer, ChatRequest, Failure, Pair, Unit
from synthbench_gpl import TwoPassageQueries
from synthbench_gpl.answers import IS_PASSAGE, REPEATED
from synthbench_gpl.two_passages import ALONE

LEVER = "The red lever starts the pump."
OIL = "The pump needs oil each year."
CATS = "Grey cats sleep."


class Chat:
    """Answers each passage's requests with the given texts in turn."""

    def __init__(self, *texts: str | None) -> None:
        self.texts = texts
        self.asked: list[ChatRequest] = []

    def answers(self, requests: Iterator[ChatRequest]) -> Iterator[ChatAnswer]:
        for number, request in enumerate(requests):
            self.asked.append(request)
            text = self.texts[number % len(self.texts)]
            yield ChatAnswer(request, text, "" if text else "timed out")


def generated(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, *, of: Sequence[str] = (LEVER, OIL, CATS), **options: Any
) -> dict[str, Unit]:
    monkeypatch.setattr(Context, "llm", LLM("llm", "a-model", chat))
    method = TwoPassageQueries.model_validate_json(json.dumps(options))
    units = method.generate({"passages": sentences(*of)}, Context({}))
    return {unit.key: unit for unit in units}


def test_a_query_shows_two_near_passages_and_both_are_positives(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat("When is oil needed by what the lever starts?")
    units = generated(chat, monkeypatch)
    texts = [str(request.messages[-1]["content"]) for request in chat.asked]
    assert [(LEVER in text, OIL in text, CATS in text) for text in texts] == [(True, True, False)] * 2
    assert texts[0].index(LEVER) < texts[0].index(OIL)
    assert texts[1].index(OIL) < texts[1].index(LEVER)
    pairs = [record for record in units["s0"].records if isinstance(record, Pair)]
    assert [(pair.anchor, pair.positive, pair.source_id) for pair in pairs] == [
        ("When is oil needed by what the lever starts?", LEVER, "s0"),
        ("When is oil needed by what the lever starts?", OIL, "s1"),
    ]
    assert (units["s2"].records, units["s2"].dropped) == ((), {ALONE: 1})


def test_repeated_and_faulty_queries_are_counted_and_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    units = generated(Chat("What needs oil?", "what needs OIL?"), monkeypatch, queries_per_passage=2)
    assert (len(units["s0"].records), units["s0"].dropped) == (2, {REPEATED: 1})
    faulty = generated(Chat(OIL, None), monkeypatch, queries_per_passage=2)["s0"].records
    assert [record.reason for record in faulty if isinstance(record, Failure)] == [IS_PASSAGE, "timed out"]


def test_a_passage_is_never_paired_with_its_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = Chat("When is oil needed by what the lever starts?")
    units = generated(chat, monkeypatch, of=(LEVER, LEVER, OIL))
    texts = [str(request.messages[-1]["content"]) for request in chat.asked]
    assert [(text.count(LEVER), text.count(OIL)) for text in texts] == [(1, 1)] * 3
    pairs = [record for key in ("s1", "s2") for record in units[key].records if isinstance(record, Pair)]
    assert [pair.source_id for pair in pairs] == ["s1", "s2", "s2", "s0"]


def test_records_name_an_own_prompt_only_if_it_is_this_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"queries": "Ask for {passage}.", "queries_of_two": "Ask for {passage} and {second}."}
    found = {}
    for name, prompt in own.items():
        units = generated(Chat("When is oil needed?"), monkeypatch, prompts={name: prompt})
        found[name] = units["s0"].records[0].instruction
    assert found == {"queries": "both passages", "queries_of_two": "own prompt"}


def test_amounts_and_single_passages() -> None:
    method = TwoPassageQueries(queries_per_passage=3)
    assert method.expected({"passages": 10}).num_records == 60
    amount = method.asks({"passages": 10})
    assert amount is not None
    assert amount.num_requests == 30
    with refused("passages", "1"):
        method.check_data({"passages": sentences(LEVER, LEVER)})
