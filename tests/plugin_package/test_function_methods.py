"""A method may be one function: its parameters are its sources, its LLM and its settings."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, List, cast  # noqa: UP035

import pytest
from small_experiment import Project, artifact
from wording import refused, worded

from synthbench.api import (
    LLM,
    ChatAnswer,
    ChatRequest,
    Failure,
    GenerationContext,
    Method,
    Pair,
    RecordKind,
    ScoredPair,
    Sentence,
    SyntheticDataset,
    method,
)
from synthbench.engine.artifacts import read_dataset
from synthbench.plugins.files import ALLOWED

FILE = '''\
from collections.abc import Iterator
from synthbench.api import LLM, Pair, method, sentence_in

@method
def reworded(texts: list[str], llm: LLM, temperature: float = 1.0) -> Iterator[Pair]:
    """Pair each text with the LLM's paraphrase."""
    prompts = [f'Please paraphrase this sentence: "{text}"' for text in texts]
    for text, answer in zip(texts, llm.ask(prompts, temperature=temperature), strict=True):
        if answer:
            yield Pair(anchor=text, positive=sentence_in(answer))
'''
EXPERIMENT = """\
experiment: small
llm: sandbox
sources: {texts: {file: texts.txt}}
baseline: reworded
defaults:
  data.pairs: {method: "mine.py:reworded", sources: {texts: texts}, temperature: 0.7}
"""
TEXTS = ["A dog runs in the park.", "The woman reads a book.", "It rains in the city."]


@dataclass
class Answers:
    """An LLM that answers the last request first."""

    answer: Callable[[str], str | None]
    asked: list[ChatRequest] = field(default_factory=list)

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        for request in reversed(list(requests)):
            self.asked.append(request)
            text = self.answer(request.messages[-1]["content"])
            yield ChatAnswer(request, text, "" if text else "refused by a filter")


@dataclass
class Context:
    model: Answers

    @property
    def llm(self) -> LLM:
        return LLM("mine", "a-model", self.model)


def made(plugin: type[Method], llm: Answers, *texts: str, **settings: Any) -> list[Any]:
    records = [Sentence(sentence=text) for text in texts]
    sources = {"texts": SyntheticDataset.create(RecordKind.SENTENCE, records)} if texts else {}
    return list(plugin(**settings).generate(sources, cast("GenerationContext", Context(llm))))


@method
def echoed(texts: list[str], llm: LLM, times: int = 1) -> Iterator[Pair]:
    """Pair each text with the LLM's answers to it."""
    for text, answer in zip(texts * times, llm.ask(texts * times), strict=True):
        if answer is not None:
            yield Pair(anchor=text, positive=answer)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.delenv(ALLOWED, raising=False)
    folder = tmp_path / "experiment"
    folder.mkdir()
    (folder / "small.yaml").write_text(EXPERIMENT)
    (folder / "mine.py").write_text(FILE)
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    return Project(folder, tmp_path / "home")


def test_a_function_asks_the_llm_through_cache_and_ledger(project: Project) -> None:
    plan = project.call("plan", "small.yaml", "--allow-code")
    assert "about 3 requests" in plan.out
    called = project.call("run", "small.yaml", "--allow-code")
    assert (called.code, called.errors) == (0, [])
    data = read_dataset(artifact(project, "generate mine.py:reworded for reworded seed 0"))
    assert data.column("anchor") == TEXTS
    assert all(generator.startswith("sandbox") for generator in data.column("generator"))
    assert ": 3 (" in project.call("ledger").out
    # The changed code is another data set, from the same answers.
    file = project.folder / "mine.py"
    file.write_text(file.read_text().replace("positive=sentence_in(answer)", "positive=answer"))
    assert "1 stages executed, 1 reused" in project.call("run", "small.yaml", "--allow-code").err
    assert ": 3 (" in project.call("ledger").out


def test_a_setting_is_a_key_of_the_file_with_its_line(project: Project) -> None:
    project.change("temperature: 0.7", "temprature: 0.7")
    called = project.call("validate", "small.yaml", "--allow-code")
    worded(called.errors, "small.yaml:6", "data.pairs.temprature", "'temperature'")


def test_answers_come_in_the_order_of_their_prompts() -> None:
    found = made(echoed, Answers(lambda text: f"not {text}"), "one", "two", "three")
    assert [(each.anchor, each.positive) for each in found] == [
        ("one", "not one"),
        ("two", "not two"),
        ("three", "not three"),
    ]


def test_a_prompt_that_is_asked_again_gets_another_answer() -> None:
    llm = Answers(lambda text: f"again {text}")
    made(echoed, llm, "one", "two", times=2)
    keys = {(request.messages[-1]["content"], request.sample) for request in llm.asked}
    assert len(keys) == 4


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "refused by a filter"),
        ("I'm sorry, but I cannot help with that.", "refusal"),
        ("...", "empty"),
        ("One!", "identical"),
    ],
)
def test_an_answer_that_is_no_data_becomes_a_failure(answer: str | None, reason: str) -> None:
    found = made(echoed, Answers(lambda text: answer if text == "one" else f"not {text}"), "one", "two")
    assert [type(each) for each in found] == [Failure, Pair]
    assert (found[0].reason, found[0].generator) == (reason, "a-model")


def test_plan_expects_the_requests_and_records_of_any_number_of_sentences() -> None:
    plugin = echoed(times=2)
    amount = plugin.asks({"texts": 1000})
    assert amount is not None
    assert (amount.num_requests, amount.completion_tokens) == (2000, 36_000)
    assert plugin.expected({"texts": 1000}).num_records == 2000
    assert plugin.asks({}) is None
    assert pickle.loads(pickle.dumps(plugin)) == plugin


def test_plan_knows_nothing_of_a_function_that_fails_on_made_up_sentences() -> None:
    @method
    def picky(texts: list[str], llm: LLM) -> Iterator[Pair]:
        """Read JSON."""
        raise KeyError("no such text")
        yield

    @method
    def endless(texts: list[str], llm: LLM) -> Iterator[Pair]:
        """Ask until an answer pleases."""
        while True:
            list(llm.ask(texts))
        yield

    assert picky().asks({"texts": 10}) is None
    assert endless().asks({"texts": 10}) is None


def test_plan_expects_no_negative_number_of_requests_and_records() -> None:
    @method
    def of_few(texts: list[str], llm: LLM) -> Iterator[Pair]:
        for text, answer in zip(texts, llm.ask(texts[: 10 - len(texts)]), strict=False):
            if answer:
                yield Pair(anchor=text, positive=answer)

    amount = of_few().asks({"texts": 1000})
    assert amount is not None
    assert (amount.num_requests, of_few().expected({"texts": 1000}).num_records) == (0, 0)


def test_parameters_are_sources_llm_and_settings() -> None:
    @method(version=3, tokens_per_answer=200)
    def mixed(
        gold: list[ScoredPair], texts: list[str] | None = None, words: tuple[str, ...] = ("a",)
    ) -> Iterator[ScoredPair | Failure]:
        """Yield gold."""
        yield from gold

    assert (mixed.version, mixed.record_kind) == (3, RecordKind.SCORED_PAIR)
    assert mixed.source_roles == {"gold": RecordKind.SCORED_PAIR}
    assert mixed.optional_source_roles == {"texts": RecordKind.SENTENCE}
    assert (list(mixed.model_fields), mixed.uses_llm) == (["words"], False)

    @method
    def listing(texts: list[str], words: List, more: list) -> Iterator[Pair]:  # type: ignore[type-arg]  # noqa: UP006
        yield from ()

    assert list(listing.model_fields) == ["words", "more"]


def test_a_function_whose_types_say_too_little_is_refused() -> None:
    with refused("'bare'", "'texts'"):

        @method
        def bare(texts) -> Iterator[Pair]:  # type: ignore[no-untyped-def]  # noqa: ANN001
            yield from ()

    with refused("'returning'", "Iterator[ScoredPair]"):

        @method
        def returning(texts: list[str]):  # type: ignore[no-untyped-def]  # noqa: ANN202
            yield from ()


def test_a_parameter_that_would_be_lost_is_refused() -> None:
    with refused("'version'", "rename"):

        @method
        def versioned(texts: list[str], version: int = 2) -> Iterator[Pair]:
            yield from ()

    with refused("'_hidden'", "rename"):

        @method
        def hiding(texts: list[str], _hidden: int = 2) -> Iterator[Pair]:
            yield from ()

    with refused("'**more: int'"):

        @method
        def open_ended(texts: list[str], **more: int) -> Iterator[Pair]:
            yield from ()

    with refused("'llm'", "'judge'"):

        @method
        def judged(texts: list[str], llm: LLM, judge: LLM) -> Iterator[Pair]:
            yield from ()


def test_one_text_in_place_of_prompts_is_not_asked_letter_by_letter() -> None:
    llm = Answers(lambda text: text)
    with refused("list of prompts"):
        list(LLM("mine", "a-model", llm).ask("Write a sentence."))
    assert llm.asked == []
