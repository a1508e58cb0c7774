"""Inputs of plug-ins in contract tests: small data, and fake models, LLM and context."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import log
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from synthbench.api import (
    LLM,
    ChatAnswer,
    ChatRequest,
    Record,
    RecordKind,
    Runtime,
    ScoredPair,
    Sentence,
    SyntheticDataset,
    Triplet,
)
from synthbench.llm.logprobs import TokenLogprob

ENCODER = {"model": "sandbox/encoder"}
TEXTS = (
    "A man plays a red guitar on the stage.",
    "Two dogs run along the wet beach.",
    "The girl paints a picture of the sea.",
    "A man is playing the guitar.",
    "Some dogs are running on the beach at noon.",
    "The children are asleep in the old house.",
    "Heavy rain delays trains in the north.",
    "A girl is painting.",
)
PAIRS = [(TEXTS[0], TEXTS[3]), (TEXTS[1], TEXTS[4]), (TEXTS[2], TEXTS[7]), (TEXTS[5], TEXTS[6])]
SCORES = (0.8, 1.0, 0.6, 0.0)


def number(*of: object) -> int:
    """Return a number that looks random and is the same for equal arguments everywhere."""
    return int.from_bytes(hashlib.sha256(repr(of).encode()).digest()[:6])


class Model:
    """Gives sentences vectors and pairs scores that no machine computes otherwise."""

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        rows = [[number(text, axis) / 2**47 - 1 for axis in range(4)] for text in sentences]
        return np.array(rows, np.float32)

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([number(*pair) % 1000 / 1000 for pair in pairs])


Reply = Callable[[ChatRequest], str | None]
"""The LLM's answer to a request; None: the request failed permanently."""


def numbered(request: ChatRequest) -> str:
    """Answer with a list or sentence that is unique for each request."""
    told = number(request.key, request.sample, request.sampling, request.messages)
    if request.messages[-1]["content"].startswith("Input:"):
        return f"Sentence: It says {told}."
    return "\n".join(f"{line}. The number {line} of {told} is new." for line in range(1, 22))


def graded(request: ChatRequest) -> str:
    """Answer with a grade from 0 to 5."""
    return str(number(request.messages) % 6)


def likely(request: ChatRequest) -> str:
    """Answer with yes or no, or with a digit where a number is asked for."""
    told = number(request.messages)
    asks_yes = request.messages[-1]["content"].endswith("Answer with yes or no only.")
    return ("yes", "no")[told % 2] if asks_yes else str(told % 10)


def in_json(request: ChatRequest) -> str:
    """Answer with a JSON object of a text for each key that the prompt asks for, or with twenty tasks.

    Where a key lists options ("One of: ..."), the text is one of them.
    """
    told = number(request.sample, request.sampling, request.messages)
    keys = re.findall(r'^- "(\w+)":(?:.* One of: (.+))?', request.messages[-1]["content"], re.MULTILINE)
    texts = {key: f"The {key} of {told} is new." for key, _ in keys}
    for key, listed in keys:
        options = listed.split("; ")
        texts |= {key: options[told % len(options)].split(" (")[0]} if listed else {}
    return json.dumps(texts or {"tasks": [f"Find number {line} of {told}" for line in range(1, 21)]})


def in_levels(request: ChatRequest) -> str:
    """Answer with a JSON object of a text for each level that the prompt lists: "3" (...); "2" (...)."""
    told = number(request.sample, request.sampling, request.messages)
    keys = re.findall(r'"(\w+)" \(', request.messages[-1]["content"])
    return json.dumps({key: f"The level {key} of {told} is new." for key in keys})


@dataclass(frozen=True)
class Chat:
    """An LLM that answers in this process, in the order of the requests.

    It is as sure of an answer as the request's hash says, where log-probabilities are asked for.
    """

    reply: Reply

    def answers(self, requests: Iterable[ChatRequest]) -> Iterator[ChatAnswer]:
        for asked in requests:
            text = self.reply(asked)
            logprobs: tuple[TokenLogprob, ...] = ()
            if asked.logprobs and text:
                sure = number("sure", asked.messages) % 90 / 100 + 0.05
                other = {"yes": "no", "no": "yes"}.get(text, "0")
                logprobs = (TokenLogprob(text, log(sure), {other: log(1 - sure), text: log(sure)}),)
            yield ChatAnswer(asked, text, "" if text is not None else "content filter", logprobs=logprobs)


class Silent:
    """Progress without output."""

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Silent"]:
        yield self

    def advance(self, amount: int = 1) -> None: ...

    def say(self, message: str) -> None: ...


@dataclass
class Context:
    """A context with the models above and given data sets; records the method's counts."""

    datasets: Mapping[str, SyntheticDataset]
    reply: Reply = numbered
    counted: dict[str, float] = field(default_factory=dict)
    runtime: Runtime = field(default_factory=lambda: Runtime(device="cpu", threads=1))
    progress: Silent = field(default_factory=Silent)
    finished_units: frozenset[str] = frozenset()

    def shared(self) -> None:
        """Return None: no shared data were made before the shards."""

    def is_mine(self, piece: int) -> bool:
        return True

    @property
    def llm(self) -> LLM:
        return LLM("llm", "a-model", Chat(self.reply))

    def pair_scorer(self, need: str) -> Model:
        return Model()

    def encoder(self, need: str) -> Model:
        return Model()

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        return iter(())

    def dataset(self, need: str) -> SyntheticDataset:
        return self.datasets[need]

    def records(self, need: str) -> SyntheticDataset:
        return self.datasets[need]

    def source(self, name: str) -> SyntheticDataset | None:
        return self.datasets.get(name)

    def scratch(self) -> Path:
        return Path(mkdtemp())

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        self.counted[reason] = self.counted.get(reason, 0) + amount

    def measure(self, name: str, value: float) -> None:
        self.counted[name] = value


def sentences(*texts: str, **columns: Any) -> SyntheticDataset:
    records = [Sentence(id=f"s{row}", sentence=text, **columns) for row, text in enumerate(texts)]
    return SyntheticDataset.create(RecordKind.SENTENCE, records)


def pairs(
    number_of: int = 4, scores: Sequence[float] = SCORES, splits: Sequence[str] = ("train",), **columns: Any
) -> SyntheticDataset:
    records = []
    for row in range(number_of):
        first, second = PAIRS[row % 4]
        texts = {"sentence1": first, "sentence2": f"{second}{' Again.' * (row // 4)}"}
        score, split = scores[row % len(scores)], splits[row % len(splits)]
        records.append(ScoredPair(id=f"p{row}", score=score, split=split, **texts, **columns))
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records)


def triplets(*, scored: bool = False) -> SyntheticDataset:
    found = [
        Triplet(
            anchor=a,
            positive=b,
            negative=TEXTS[(row * 3 + 5) % 8],
            scores=(1 - row / 10, row / 10) if scored else (),
        )
        for row, (a, b) in enumerate(PAIRS)
    ]
    return SyntheticDataset.create(RecordKind.TRIPLET, found)
