"""The sandbox's questions and passages: their relevance, and the questions of its LLM."""

from dataclasses import replace
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
from synthbench.worlds.sandbox.events import Event
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.understanding import AskedTask, understand
from synthbench.worlds.sandbox.questions import question, relevance, slots_of

if TYPE_CHECKING:
    from synthbench.data.records import RetrievalText, ScoredPair, Sentence

CHEF = Event("cooking", "one", None, "chef", "peel", "potatoes", "in the kitchen", None)
PASSAGE = "A chef is peeling potatoes in the kitchen. Two waiters are washing carrots."


def world(**options: Any) -> list[Any]:
    return list(WorldSource.model_validate({"split": "test", "size": 160, **options}).load(Roots()))


def test_a_question_leaves_out_the_slot_in_question() -> None:
    assert slots_of(CHEF) == ("agent", "object", "place")
    asked = {slot: question(CHEF, slot, Random(1)) for slot in slots_of(CHEF)}
    assert asked["agent"].startswith("Who is ")
    assert asked["object"].startswith("What is ")
    assert asked["place"].startswith("Where is ")
    assert all(text.endswith("?") for text in asked.values())
    assert "chef" not in asked["agent"]
    assert "potato" not in asked["object"]
    assert asked["place"].count(" in ") + asked["place"].count(" by ") == 0


@pytest.mark.parametrize(
    ("slot", "changes", "grade"),
    [
        ("place", {}, 2.0),
        ("place", {"place": None}, 1.0),
        ("agent", {"agent": "waiter", "number": "two"}, 2.0),
        ("object", {"agent": "waiter"}, 0.0),
        ("object", {"object": "carrots"}, 2.0),
        ("object", {"time": "at night"}, 1.0),
        ("agent", {"is_negative": True}, 0.0),
        ("place", {"action": "wash"}, 0.0),
    ],
)
def test_relevance_follows_from_the_events(slot: str, changes: dict[str, Any], grade: float) -> None:
    assert relevance(CHEF, slot, replace(CHEF, **changes)) == grade


def test_a_retrieval_set_has_its_passages_and_one_question_per_eight_passages() -> None:
    texts: list[RetrievalText] = world(sandbox="retrieval", domains="held-out")
    passages = {text.id: text for text in texts if not text.is_query}
    queries = [text for text in texts if text.is_query]
    assert (len(passages), len(queries)) == (160, 20)
    assert all(set(query.judged) <= passages.keys() for query in queries)
    assert all(2.0 in query.grades for query in queries)
    unlabelled: list[Sentence] = world(sandbox="passages", domains="held-out")
    assert [(text.id, text.sentence) for text in unlabelled] == [
        (text.id, text.text) for text in passages.values()
    ]
    assert {text.split for text in unlabelled} == {"train"}


def test_a_larger_set_begins_with_the_passages_of_a_smaller_one() -> None:
    fewer, more = (world(sandbox="passages", size=size) for size in (20, 60))
    assert more[:20] == fewer


def test_one_query_passage_pair_in_eight_is_relevant() -> None:
    pairs: list[ScoredPair] = world(sandbox="answers")
    assert {pair.score for pair in pairs} <= {0.0, 0.5, 1.0}
    assert all(pair.score == 1.0 for pair in pairs[::8])
    assert len({pair.sentence1 for pair in pairs[:8]}) == 1


def chat(*texts: str) -> list[tuple[str, str]]:
    return [
        ("system", "Write one search query that the passage answers."),
        *(("user", text) for text in texts),
    ]


def test_the_llm_recognises_a_request_for_a_passages_question() -> None:
    ask = understand(chat(f"Passage: {PASSAGE}"))
    assert (ask.task, ask.sentence) == (AskedTask.QUESTION, PASSAGE)
    assert understand([("user", f"Paraphrase.\nSentence: {PASSAGE}")]).task is not AskedTask.QUESTION


def test_over_two_passages_the_llm_asks_about_both() -> None:
    other = "A nurse is weighing a baby at the clinic."
    ask = understand(chat(f"Passage: {PASSAGE}\n\nPassage: {other}"))
    assert (ask.task, ask.sentence, ask.further) == (AskedTask.QUESTION, PASSAGE, (other,))
    for text in answers(LLMSettings(), f"{PASSAGE}\n\nPassage: {other}"):
        assert text.count("?") == 2


def answers(settings: LLMSettings, passage: str = PASSAGE) -> list[str]:
    body = {"messages": [{"role": role, "content": text} for role, text in chat(f"Passage: {passage}")]}
    asked = Answers(settings, body)
    return [asked.choice(index) for index in range(30)]


def test_the_passage_answers_the_llms_question() -> None:
    for text in answers(LLMSettings()):
        assert text.split()[0] in ("Who", "What", "Where")
        assert text.endswith("?")
    assert len({*answers(LLMSettings())}) > 5


def test_a_passage_outside_the_grammar_gets_a_question_in_its_words() -> None:
    assert set(islice(answers(LLMSettings(), "Photosynthesis feeds plants."), 3)) == {
        "What is said about photosynthesis?"
    }


def test_the_llms_faults_apply_to_questions() -> None:
    found = answers(LLMSettings(refusals=0.3, empty=0.3, malformed=0.3))
    assert "" in found
    assert any("sorry" in text or "cannot" in text for text in found)
