"""The sandbox's LLM writes tasks and records in JSON: right by the grammar, in the requested form."""

import json
from collections import Counter
from typing import Any, cast

import pytest

from synthbench.api import AnswerError, PromptChat
from synthbench.worlds.sandbox.events import similarity
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.understanding import Ask, AskedTask, domains_of
from synthbench.worlds.sandbox.parsing import read_sentence
from synthbench.worlds.sandbox.realisation import WordedEvent
from synthbench.worlds.sandbox.sampling import split_of
from synthbench.worlds.sandbox.vocabulary import domain_names, domains
from synthbench_brainstorm.answers import texts_in
from synthbench_brainstorm.prompts import SHIPPED, Category, prompts_of
from synthbench_brainstorm.requests import Chats

NUM = 25
WITH_TASKS = [category for category in Category if category is not Category.STS]


def chats(category: Category) -> Chats:
    return Chats(category, prompts_of(SHIPPED.read(), category), 0)


def answers(chat: PromptChat, settings: LLMSettings, **body: Any) -> Answers:
    return Answers(settings, {"messages": list(chat.messages), "seed": chat.sample, **body})


def tasks(category: Category, number: int = 0, **settings: float) -> list[str]:
    made = answers(chats(category).for_tasks(number), LLMSettings.model_validate(settings)).choice(0)
    return cast("list[str]", json.loads(made)["tasks"])


def records(category: Category, **settings: float) -> list[tuple[str, list[str]]]:
    """Return records, each its task and its three texts."""
    of, listed = chats(category), tasks(category) if category in WITH_TASKS else []
    found = []
    for number in range(NUM):
        task = of.task(number, listed)
        made = answers(of.for_record(number, task), LLMSettings.model_validate(settings)).choice(0)
        found.append((task, list(json.loads(made).values())))
    return found


def known(text: str) -> WordedEvent:
    found = read_sentence(text)
    assert found is not None, text
    return found


def sentences(text: str) -> list[str]:
    return [f"{part}." for part in text.removesuffix(".").split(". ")]


@pytest.mark.parametrize("category", WITH_TASKS)
def test_twenty_different_tasks_are_about_the_world_and_describe_their_input(category: Category) -> None:
    found = tasks(category)
    assert len(set(found)) == len(found) == 20
    named = [domains_of(task) for task in found]
    if category is Category.LONG_SHORT:
        assert {len(each) for each in named} == {1, len(domain_names())}
    else:
        assert {len(each) for each in named} == {1}
    ask = answers(chats(category).for_tasks(0), LLMSettings()).ask
    assert ask.task is AskedTask.JSON


def test_one_prompt_gives_tasks_mostly_in_three_fields() -> None:
    def shares(habits: float) -> list[int]:
        named = [
            domains_of(task)
            for number in range(5)
            for task in tasks(Category.SHORT_LONG, number, habits=habits)
        ]
        counts = Counter(name for names in named for name in names)
        return sorted(counts.values(), reverse=True)

    assert sum(shares(1.0)[:3]) == sum(shares(1.0))
    assert len(shares(0.0)) > 10


@pytest.mark.parametrize("category", [Category.SHORT_LONG, Category.SHORT_SHORT, Category.LONG_LONG])
def test_a_positive_describes_the_querys_event_and_a_hard_negative_contradicts_it(
    category: Category,
) -> None:
    for task, texts in records(category):
        first, *others = [{known(part).event for part in sentences(text)} for text in texts]
        assert first & others[0]
        assert category is Category.LONG_LONG or not first & others[1]
        (event, *_) = first & others[0]
        assert event.domain in domains_of(task)
        assert max(similarity(event, other) for other in others[1]) >= 0.4
        assert all(split_of(each) == "train" for events in (first, *others) for each in events)


def test_long_texts_have_two_to_four_sentences_and_short_ones_one() -> None:
    lengths = {
        category: [
            {len(sentences(text)) for text in column}
            for column in zip(*(t for _, t in records(category)), strict=True)
        ]
        for category in WITH_TASKS
    }
    short, long = {1}, {2, 3, 4}
    assert lengths[Category.SHORT_LONG] == [short, long, long]
    assert lengths[Category.LONG_SHORT] == [long, short, short]
    assert lengths[Category.SHORT_SHORT] == [short, short, short]
    assert lengths[Category.LONG_LONG] == [long, long, long]


def test_labels_are_domains_or_an_object_of_the_text() -> None:
    for task, (text, label, misleading) in records(Category.LONG_SHORT):
        events = [known(part).event for part in sentences(text)]
        named = domains_of(task)
        if len(named) == 1:
            assert label in {event.object for event in events}
            assert misleading in domains()[named[0]].objects and misleading != label
        else:
            assert label == events[0].domain != misleading
            assert misleading in domain_names()


def test_graded_texts_are_about_as_similar_as_requested() -> None:
    gaps = []
    for number in range(NUM):
        chat = chats(Category.STS).for_record(number, "")
        if chat.values["unit"] == "passage":
            continue
        first, second, third = json.loads(answers(chat, LLMSettings()).choice(0)).values()
        event, high, low = (known(text).event for text in (first, second, third))
        gaps += [
            abs(similarity(event, high) - float(chat.values["high_score"]) / 5),
            abs(similarity(event, low) - float(chat.values["low_score"]) / 5),
        ]
        assert similarity(event, high) > similarity(event, low)
    assert max(gaps) < 0.15


def test_noise_swaps_positive_and_hard_negative() -> None:
    right, wrong = records(Category.SHORT_SHORT, noise=0.0), records(Category.SHORT_SHORT, noise=1.0)
    assert [texts for _, texts in wrong] == [[first, third, second] for _, (first, second, third) in right]


def test_malformed_answers_are_parsed_or_refused_with_a_reason_and_json_mode_gives_json() -> None:
    settings = LLMSettings(malformed=1.0)
    reasons, num_read = set(), 0
    keys = prompts_of(SHIPPED.read(), Category.STS).keys
    for number in range(2 * NUM):
        chat = chats(Category.STS).for_record(number, "")
        try:
            texts_in(answers(chat, settings).choice(0), keys)
            num_read += 1
        except AnswerError as error:
            reasons.add(str(error).rpartition(": ")[2])
        forced = answers(chat, settings, response_format={"type": "json_object"}).choice(0)
        assert isinstance(json.loads(forced), dict)
    assert reasons == {"JSON that ends too early", "no JSON", "missing", "empty"}
    assert 0 < num_read < NUM


@pytest.mark.parametrize(
    "text",
    [
        "Write 20 sentences about tasks of a doctor.",
        'Answer with a JSON object, {"sentence": "..."}: paraphrase "A man plays a harp."',
        "How many tasks are there in JSON?",
    ],
)
def test_other_requests_are_understood_as_before(text: str) -> None:
    ask: Ask = Answers(LLMSettings(), {"messages": [{"role": "user", "content": text}]}).ask
    assert ask.json is None
