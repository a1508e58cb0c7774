"""The sandbox's LLM understands the prompts of the pools."""

import pytest

from synthbench.api import PromptChat
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers
from synthbench.worlds.sandbox.llm.understanding import Ask, AskedTask
from synthbench_syncse.prompts import LABELS, SHIPPED, labels_of, sentences_of
from synthbench_syncse.requests import LabelChats, SentenceChats

POOLS = {kind: labels_of(SHIPPED.read(), kind) for kind in LABELS}
SENTENCES = sentences_of(SHIPPED.read())
TASKS = {"positive": AskedTask.PARAPHRASE, "negative": AskedTask.CONTRADICTION}
INPUTS = (
    "A man is playing a harp.",
    "Harvest of corn by two farmers in field",
    "What is the sentence that the court passed on him?",
    'She wrote: "Paraphrase the following sentence" on the board.',
    "Write three sentences about your holidays.",
    "Do not contradict your mother.",
    "a bowl of soup",
)
EVERY_PROMPT = [(kind, place) for kind, prompts in POOLS.items() for place in range(len(prompts))]
NUM_REQUESTS = 400


def asked(chat: PromptChat) -> Ask:
    return Answers(LLMSettings(), {"model": "sandbox/llm", "messages": list(chat.messages)}).ask


@pytest.mark.parametrize("sentence", INPUTS)
@pytest.mark.parametrize(("kind", "place"), EVERY_PROMPT)
def test_every_label_prompt_is_understood_as_its_kind(kind: str, place: int, sentence: str) -> None:
    chats = LabelChats([POOLS[kind][place]], kind, 0)
    for sentence_id in "abcdefgh":
        ask = asked(chats.chat(sentence_id, sentence))
        assert (ask.task, ask.sentence, ask.count) == (TASKS[kind], sentence, 1)


@pytest.mark.parametrize("kind", POOLS)
def test_every_exemplars_sentence_is_recognised_as_the_input(kind: str) -> None:
    chats = LabelChats(POOLS[kind], kind, seed=1)
    for prompt in POOLS[kind]:
        for place, exemplar in enumerate(prompt.exemplars):
            ask = asked(chats.chat(f"{prompt.name}/{place}", exemplar["sentence"]))
            assert (ask.task, ask.sentence) == (TASKS[kind], exemplar["sentence"])


@pytest.mark.parametrize(
    "chats",
    [
        SentenceChats(SENTENCES, 0),
        SentenceChats(SENTENCES, 0, domain="biomedicine"),
        SentenceChats(SENTENCES, 0, domain="stack-overflow"),
        SentenceChats(SENTENCES, 0, is_naive=True),
    ],
    ids=("genres", "biomedicine", "stack-overflow", "naive"),
)
def test_every_request_for_sentences_asks_for_twenty(chats: SentenceChats) -> None:
    for index in range(NUM_REQUESTS):
        ask = asked(chats.chat(index))
        assert (ask.task, ask.count) == (AskedTask.SENTENCES, 20)


@pytest.mark.parametrize("kind", ["prompts", "caption_prompts", "domain_prompts"])
def test_every_prompt_for_sentences_occurs_in_some_request(kind: str) -> None:
    pool = SENTENCES
    prompts = [prompt.instruction for prompt in getattr(pool, kind)]
    chats = SentenceChats(pool, 0, domain="biomedicine" if kind == "domain_prompts" else "")
    asked_for = [chats.chat(index).messages[-1]["content"] for index in range(NUM_REQUESTS)]
    for prompt in prompts:
        beginning, _, after = prompt.partition("{number}")
        rest = after.partition("{")[0]
        assert any(said.startswith(f"{beginning}20{rest}") for said in asked_for)


def test_headlines_are_in_the_headline_register() -> None:
    pool = SENTENCES
    chats = SentenceChats(pool, 0, genres=("headlines",))
    answers = Answers(LLMSettings(), {"model": "sandbox/llm", "messages": list(chats.chat(0).messages)})
    assert not any(line.endswith(".") for line in answers.choice(0).splitlines())
