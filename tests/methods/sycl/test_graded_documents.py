"""Graded documents: what is asked, how answers are read, and which records come of them."""

import json
from typing import Any

import pytest
from contract.stand_ins import TEXTS, Context, in_levels, sentences
from pydantic import ValidationError

from synthbench.api import (
    AnswerError,
    ChatRequest,
    Failure,
    Method,
    Ranking,
    Record,
    Sentence,
    SyntheticDataset,
)
from synthbench.data.records import RecordKind
from synthbench.plugins.loading import component
from synthbench_sycl.answers import documents_in

QUERIES = sentences(*TEXTS[:3])
KEYS = ("3", "2", "1", "0")
ANSWER = {"3": "Best.", "2": "Good.", "1": "Near.", "0": "Far."}


def configured(**settings: Any) -> Method:
    method: Method = component("methods", "graded-documents").model_validate_json(json.dumps(settings))
    return method


def records(method: Method, reply: Any = in_levels, queries: SyntheticDataset = QUERIES) -> list[Record]:
    units = method.generate({"queries": queries}, Context({}, reply))
    return [record for unit in units for record in unit.records]


def asked(method: Method) -> dict[str, str]:
    """Return the user's turn by request key."""
    said: dict[str, str] = {}

    def reply(request: ChatRequest) -> str:
        said[request.key] = request.messages[-1]["content"]
        return in_levels(request)

    records(method, reply)
    return said


def test_a_record_is_a_query_with_a_document_of_each_level_in_one_answer() -> None:
    made = records(configured(), lambda _: json.dumps(dict(reversed(ANSWER.items()))))
    assert len(made) == 3
    for row, one in enumerate(made):
        assert isinstance(one, Ranking)
        assert (one.query, one.source_id, one.id) == (TEXTS[row], f"s{row}", f"s{row}|0")
        assert one.candidates == ("Best.", "Good.", "Near.", "Far.")
        assert one.grades == (1.0, 2 / 3, 1 / 3, 0.0)
        length, reader = one.instruction.split("; ")
        assert length.endswith("sentences") and reader


def test_the_prompt_lists_the_levels_from_the_highest_to_the_lowest() -> None:
    said = asked(configured(lists_per_query=8))
    assert len(said) == 24
    for key, text in said.items():
        levels = next(line for line in text.splitlines() if line.startswith("Levels"))
        places = [levels.index(f'"{level}" (') for level in KEYS]
        assert places == sorted(places)
        assert f"Query: {TEXTS[int(key[1])]}" in text
    assert len({text.split("Length of each document: ")[1].split("\n")[0] for text in said.values()}) == 3


def test_levels_of_ones_own_are_evenly_spaced_grades() -> None:
    method = configured(prompts={"levels": ["helps", "is near", "is far"]})
    (one, *_) = records(method)
    assert isinstance(one, Ranking)
    assert one.grades == (1.0, 0.5, 0.0)
    assert '"2" (helps); "1" (is near); "0" (is far)' in asked(method)["s0|0"]
    assert method.table_notes() == (
        "Prompts for graded documents: reconstructed prompts, in our own words; but the experiment's own for"
        " `levels`.",
    )
    with pytest.raises(ValidationError, match="at least 2 items"):
        configured(prompts={"levels": ["helps"]})


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({**ANSWER, "1": " "}, "1: empty"),
        ({key: ANSWER[key] for key in ("3", "2", "0")}, "1: missing"),
        ({**ANSWER, "2": ["Good."]}, "2: no text"),
        ({**ANSWER, "0": "near"}, "0: equal to 1"),
        ({**ANSWER, "3": "What is asked?"}, "3: equal to the query"),
        ({**ANSWER, "3": "As an AI language model, I cannot generate this content."}, "3: refusal"),
        ("A list: 1. Best.", "no JSON"),
        ('{"3": "Best.", "2": "Go', "JSON that ends too early"),
    ],
)
def test_an_answer_without_a_document_of_each_level_fails_with_a_reason(answer: Any, reason: str) -> None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    with pytest.raises(AnswerError) as error:
        documents_in(text, KEYS, "what is asked")
    assert str(error.value) == reason
    made = records(configured(), lambda _: text.replace("What is asked?", TEXTS[0]), sentences(TEXTS[0]))
    assert [each.reason for each in made if isinstance(each, Failure)] == [reason]


def test_remarks_around_the_object_do_not_matter() -> None:
    assert documents_in(f"Sure!\n```json\n{json.dumps(ANSWER)}\n```", KEYS, "q") == tuple(ANSWER.values())
    assert documents_in(json.dumps({"documents": ANSWER}), KEYS, "q") == tuple(ANSWER.values())


def test_an_answer_that_never_came_is_a_failure_and_labels_are_kept() -> None:
    labelled = SyntheticDataset.create(
        RecordKind.SENTENCE, [Sentence(id="a", sentence="what", label="health")]
    )
    (one,) = records(configured(), lambda _: None, labelled)
    assert isinstance(one, Failure)
    assert (one.reason, one.label, one.source_id) == ("content filter", "health", "a")


def test_the_estimate_counts_requests_and_the_length_of_documents() -> None:
    amount = configured(lists_per_query=2).asks({"queries": 30})
    assert amount is not None
    assert (amount.num_requests, configured().expected({"queries": 30}).num_records) == (60, 30)
    one = configured(lists_per_query=2, prompts={"documents": "{levels} {query}"}).asks({"queries": 30})
    assert one is not None
    assert one.prompt_tokens < amount.prompt_tokens / 2
    # Four documents of four sentences, of 18 words with 1.4 tokens each, and the JSON around them.
    assert one.completion_tokens == 60 * round(4 * (4 * 18 * 1.4 + 6))
    assert configured().asks({}) is None
