"""A generation context for AugSBERT."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from synthbench.api import Encoder, PairScorer, Runtime, SyntheticDataset


@dataclass
class Told:
    """Progress that records its messages."""

    said: list[str] = field(default_factory=list)

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Told"]:
        yield self

    def advance(self, amount: int = 1) -> None:
        pass

    def say(self, message: str) -> None:
        self.said.append(message)


@dataclass
class Context:
    """Needs by name, and a tally; `made` is for what came of it."""

    models: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, SyntheticDataset] = field(default_factory=dict)
    finished_units: frozenset[str] = frozenset()
    dropped: Counter[str] = field(default_factory=Counter)
    measured: dict[str, float] = field(default_factory=dict)
    runtime: Runtime = field(default_factory=lambda: Runtime(device="cpu", threads=1))
    progress: Told = field(default_factory=Told)
    made: list[Any] = field(default_factory=list)

    def shared(self) -> None:
        """Return None: no shared data were made before the shards."""

    def is_mine(self, piece: int) -> bool:
        return True

    def pair_scorer(self, need: str) -> PairScorer:
        scorer: PairScorer = self.models[need]
        return scorer

    def encoder(self, need: str) -> Encoder:
        encoder: Encoder = self.models[need]
        return encoder

    def dataset(self, need: str) -> SyntheticDataset:
        return self.datasets[need]

    def records(self, need: str) -> SyntheticDataset:
        return self.datasets[need]

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        self.dropped[reason] += amount

    def measure(self, name: str, value: float) -> None:
        self.measured[name] = value


@dataclass
class Vectors:
    """An encoder that knows its sentences' vectors."""

    known: Mapping[str, Sequence[float]]

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        return np.array([self.known[sentence] for sentence in sentences], np.float32)
