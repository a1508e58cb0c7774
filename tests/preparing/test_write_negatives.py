"""`write-negatives`: an LLM writes passages that do not answer a query."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from applying import Sources, apply_steps
from pydantic import ValidationError

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, Record, RecordKind, Triplet
from synthbench.llm.answered import passage_in
from synthbench.llm.client import LLM
from synthbench.llm.requests import ChatAnswer, ChatRequest
from synthbench.preparing.mining import DrawNegatives, MineNegatives
from synthbench.preparing.writing import WriteNegatives

PAIRS = [
    Pair(id="a", anchor="how old is the oak?", positive="The oak is 300 years old.", source_id="p"),
    Pair(id="b", anchor="where is the elm?", positive="The elm is in the old park."),
]
Reply = Callable[[ChatRequest], str | None]


@pytest.fixture
def asks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Reply], list[ChatRequest]]:
    """Sets the LLM's answers, which come in the reverse order of the requests; returns the requests."""

    def answering(reply: Reply) -> list[ChatRequest]:
        asked: list[ChatRequest] = []

        class Chat:
            def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
                asked.extend(requests)
                for request in asked[::-1]:
                    text = reply(request)
                    yield ChatAnswer(request, text, "" if text is not None else "cut off: limit on tokens")

        monkeypatch.setattr(Sources, "llm", LLM("llm", "a-model", Chat()))
        return asked

    return answering


def written(records: Iterable[Record] = PAIRS, **options: Any) -> SyntheticDataset:
    kind = RecordKind.TRIPLET if isinstance(next(iter(records)), Triplet) else RecordKind.PAIR
    return apply_steps(SyntheticDataset.create(kind, records), [WriteNegatives.model_validate(options)])


def about(request: ChatRequest) -> str:
    """Answer with a passage on the tree that the query asks about."""
    return "The oak is tall." if "oak" in request.messages[-1]["content"] else "The elm is tall."


def test_each_pair_gets_the_passage_written_for_it_and_keeps_its_columns(asks: Any) -> None:
    requests = asks(about)
    made = list(written())
    assert [(one.id, one.negative) for one in made] == [("a", "The oak is tall."), ("b", "The elm is tall.")]
    assert (made[0].anchor, made[0].positive, made[0].source_id) == (PAIRS[0].anchor, PAIRS[0].positive, "p")
    (system, user) = requests[0].messages
    assert "does not answer the query" in system["content"]
    assert user["content"] == f"Query: {PAIRS[0].anchor}\nPassage: {PAIRS[0].positive}"


def test_several_negatives_are_asked_for_apart_and_equal_ones_counted_once(asks: Any) -> None:
    requests = asks(lambda request: "It is tall." if int(request.key) % 3 else "It is green.")
    made = written(number=3)
    assert [one.negatives for one in made] == [("It is green.", "It is tall.")] * 2
    assert len({request.sample for request in requests}) == 3
    assert made.manifest.measured == {"write-negatives: negatives fewer than asked for": 2}


def test_triplets_get_other_negatives_or_further_ones(asks: Any) -> None:
    asks(about)
    mined = Triplet(id="a", anchor=PAIRS[0].anchor, positive=PAIRS[0].positive, negative="A mined one.")
    assert [one.negatives for one in written([mined])] == [("The oak is tall.",)]
    assert [one.negatives for one in written([mined], add=True)] == [("A mined one.", "The oak is tall.")]


def test_half_of_each_kind_come_from_adding_and_drawing(asks: Any) -> None:
    asks(about)
    data = SyntheticDataset.create(RecordKind.PAIR, PAIRS)
    steps = [MineNegatives(miner="bm25"), WriteNegatives(add=True), DrawNegatives()]
    for one in apply_steps(data, steps):
        assert one.negative in ("The oak is tall.", "The elm is tall.", PAIRS[0].positive, PAIRS[1].positive)
        assert one.further_negatives == ()


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        ("***", "empty"),
        (None, "cut off"),
        ("As an AI language model, I cannot write this passage.", "refusal"),
        ("the oak is 300 years old", "identical"),
    ],
)
def test_an_answer_that_is_no_negative_drops_the_record_with_its_reason(
    answer: str | None, reason: str, asks: Any
) -> None:
    asks(lambda request: answer if "oak" in request.messages[-1]["content"] else "The elm is tall.")
    made = written()
    assert [one.id for one in made] == ["b"]
    assert made.manifest.dropped == {f"write-negatives: {reason}": 1}


@pytest.mark.parametrize(
    "answer",
    [
        "Sure! Here is a passage that does not answer the query:\n\nIt is tall.\nIt is green.",
        "Hard negative passage: It is tall. It is green.",
        "**Passage:** It is tall. It is green.\n\nLet me know if you need another passage!",
        '"It is tall. It is green."',
        "```\nIt is tall.\n\nIt is green.\n```",
        "Query: how tall?\nPassage: It is tall. It is green.",
        "Passage: It is old.\n\n**Negative passage:**\nIt is tall. It is green.",
        "Here it is:\n\nQuery: how tall?\n\nPassage:\nIt is tall. It is green.",
        "Sure!\n\nHere you go:\n\nIt is tall. It is green.",
        "Based on the query, another passage would be:\nIt is tall. It is green.",
    ],
)
def test_what_a_chat_model_puts_around_a_passage_is_left_out(answer: str, asks: Any) -> None:
    asks(lambda _: answer)
    assert [one.negative for one in written()] == ["It is tall. It is green."] * 2


@pytest.mark.parametrize(
    "answer",
    [
        "Here's a passage:\nIt is tall. Steps:\nPlant it.\nNote what follows:\nIt grows.",
        "It is tall.\nSteps:\nPlant it.",
        "Steps:\nPlant it.",
        "Trees grow.\nDocument: signed in 1992.",
        "The query: a short history.\nIt is old.",
    ],
)
def test_lines_of_a_passage_with_a_colon_belong_to_it(answer: str) -> None:
    assert passage_in(answer) == " ".join(answer.removeprefix("Here's a passage:\n").split())


def test_a_prompt_of_ones_own_may_hide_the_passage(asks: Any) -> None:
    """As the paper's first version does."""
    requests = asks(about)
    step = {"prompts": {"negative": "Write a passage that does not answer: {query}"}}
    assert len(written(**step)) == 2
    assert [each["content"] for each in requests[0].messages] == [
        "Write a passage that does not answer: how old is the oak?"
    ]
    with pytest.raises(ValidationError, match=r"lacks the slot \{query\}"):
        written(prompts={"negative": "Write a passage beside {passage}"})


def test_the_plan_counts_a_request_for_each_negative() -> None:
    asked = WriteNegatives(number=2).asks(100)
    assert asked.num_requests == 200
    assert asked.completion_tokens == 200 * 60
