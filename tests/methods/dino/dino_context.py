"""A generation context, and a language model with a known distribution."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from synthbench.api import (
    LLM,
    Encoder,
    Method,
    PairScorer,
    Runtime,
    Sentence,
    SyntheticDataset,
    Unit,
)
from synthbench.data.records import RecordKind

X1 = "ab"
"""A text that the scripted model often writes."""
FOLLOWS: Mapping[str, Mapping[str, float]] = {
    '"': {"a": 0.4, "c": 0.3, '"': 0.1, "\n": 0.2},
    "a": {"b": 0.9, "\n": 0.1},
    "b": {'"': 0.7, "c": 0.3},
    "c": {"c": 0.6, "a": 0.2, '"': 0.2},
    "\n": {"a": 0.5, '"': 0.5},
}
"""Next-token probabilities of a model that writes usable texts, line breaks, "" and endless texts."""


@dataclass
class Told:
    """Progress that remembers."""

    said: list[str] = field(default_factory=list)
    tasks: list[tuple[str, int]] = field(default_factory=list)
    num_done: int = 0

    @contextmanager
    def task(self, description: str, total: int) -> Iterator["Told"]:
        self.tasks.append((description, total))
        yield self

    def advance(self, amount: int = 1) -> None:
        self.num_done += amount

    def say(self, message: str) -> None:
        self.said.append(message)


@dataclass
class Context:
    """A context without needs, but for a data set."""

    runtime: Runtime = field(default_factory=lambda: Runtime(device="cpu", threads=1))
    finished_units: frozenset[str] = frozenset()
    needed: SyntheticDataset | None = None
    progress: Told = field(default_factory=Told)

    def is_mine(self, piece: int) -> bool:
        return True

    @property
    def llm(self) -> LLM:
        raise AssertionError("no chat model is needed")

    def pair_scorer(self, need: str) -> PairScorer:
        raise AssertionError(need)

    def encoder(self, need: str) -> Encoder:
        raise AssertionError(need)

    def dataset(self, need: str) -> SyntheticDataset:
        assert need == "x1"
        assert self.needed is not None
        return self.needed

    def records(self, need: str) -> SyntheticDataset:
        return self.dataset(need)

    def measure(self, name: str, value: float) -> None:
        raise AssertionError(name)

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        raise AssertionError("units count for themselves")


def sentences(*texts: str) -> SyntheticDataset:
    """Return a data set of sentences."""
    return SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(sentence=text) for text in texts])


def by_key(
    method: Method, sources: Mapping[str, SyntheticDataset], context: Context | None = None
) -> dict[str, Unit]:
    """Return the units that a method yields, each of another key."""
    units = list(method.generate(sources, context or Context()))
    assert all(isinstance(unit, Unit) for unit in units)
    keyed = {unit.key: unit for unit in units if isinstance(unit, Unit)}
    assert len(keyed) == len(units)
    return keyed


def in_order(units: Mapping[str, Unit]) -> Sequence[Unit]:
    """Return units in the data set's order."""
    return sorted(units.values(), key=lambda unit: unit.position)
