"""A generation context: a chat model in this process, or one with scripted answers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import cast

from synthbench.api import (
    LLM,
    ChatAnswer,
    ChatRequest,
    Encoder,
    GenerationContext,
    Method,
    PairScorer,
    RecordKind,
    Runtime,
    Sentence,
    SyntheticDataset,
    Unit,
)
from synthbench.worlds.sandbox.llm import LLMSettings
from synthbench.worlds.sandbox.llm.answering import Answers

Answering = Callable[[ChatRequest], str | None]


def sandbox(**settings: float) -> Answering:
    """Return the sandbox's chat model."""
    known = LLMSettings.model_validate(settings)

    def answer(request: ChatRequest) -> str:
        body = {"model": "sandbox/llm", "messages": list(request.messages), "seed": request.sample}
        return Answers(known, {**body, **request.sampling}).choice(0)

    return answer


@dataclass
class Chat:
    """Answers all requests, in an order of its own; None is an answer that failed for good."""

    answering: Answering
    order: int = 0
    asked: list[ChatRequest] = field(default_factory=list)

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        waiting = list(requests)
        Random(self.order).shuffle(waiting)
        for request in waiting:
            self.asked.append(request)
            text = self.answering(request)
            yield ChatAnswer(request, text, "" if text is not None else "content filter")


@dataclass
class Told:
    """Progress without output."""

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Told"]:
        yield self

    def advance(self, amount: int = 1) -> None:
        pass

    def say(self, message: str) -> None:
        pass


@dataclass
class Context:
    """A context with a chat model."""

    model: Chat
    needed: SyntheticDataset | None = None
    finished_units: frozenset[str] = frozenset()
    dropped: dict[str, int] = field(default_factory=dict)
    runtime: Runtime = field(default_factory=lambda: Runtime(device="cpu", threads=1))
    progress: Told = field(default_factory=Told)

    def is_mine(self, piece: int) -> bool:
        return True

    @property
    def llm(self) -> LLM:
        return LLM("test", "a-model", self.model)

    def pair_scorer(self, need: str) -> PairScorer:
        raise AssertionError(need)

    def encoder(self, need: str) -> Encoder:
        raise AssertionError(need)

    def dataset(self, need: str) -> SyntheticDataset:
        assert need == "sentences" and self.needed is not None
        return self.needed

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        self.dropped[reason] = self.dropped.get(reason, 0) + amount


def generated(
    method: Method, context: Context, sources: dict[str, SyntheticDataset] | None = None
) -> list[Unit]:
    """Return the units in the order of the data set."""
    outputs = method.generate(sources or {}, cast("GenerationContext", context))
    units = [output for output in outputs if isinstance(output, Unit)]
    assert len({unit.key for unit in units}) == len(units)
    return sorted(units, key=lambda unit: unit.position)


def dataset(*texts: str) -> SyntheticDataset:
    """Return a data set of sentences."""
    return SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in texts])
