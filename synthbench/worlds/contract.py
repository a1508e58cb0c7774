"""The interface of a generated world: data sets with known truth, an LLM, models, a judge, commands."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from synthbench.base.frozen import WithConstants
from synthbench.base.runtime import Progress
from synthbench.data.records import Record, RecordKind

if TYPE_CHECKING:
    from typer import Typer


class WorldSet(BaseModel, WithConstants):
    """A data set of the world, as an experiment file describes it under the world's name."""

    if TYPE_CHECKING:
        # Each world adds fields of its own, in its own order and with its own limits.
        split: str
        size: int

    @property
    def own_kind(self) -> RecordKind:
        """The kind of the set's records."""
        raise NotImplementedError

    @property
    def is_training_text(self) -> bool:
        """Whether the set may be used for training, whatever its split."""
        return False

    def listed_records(self) -> list[Record]:
        """Return the set's records."""
        raise NotImplementedError


class WorldLLMSettings(BaseModel):
    """Settings of the world's LLM: how it answers, and how its service fails."""

    def content(self) -> Mapping[str, Any]:
        """Return the settings that the answers depend on."""
        raise NotImplementedError


@dataclass(frozen=True)
class RunningLLM:
    """A running server of the world's LLM."""

    base_url: str
    model: str
    is_running: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class OracleVerdict:
    """The world's verdict on one sentence or two.

    `similarity` is in [0, 1]; None for single sentences, and if the world can't interpret a sentence.
    `outside` are the positions of the sentences that the world can't interpret.
    """

    label: str
    similarity: float | None
    outside: tuple[int, ...] = ()


class Oracle(Protocol):
    """The world as a judge of sentences."""

    def judge(self, texts: Sequence[tuple[str, ...]], progress: Progress) -> Sequence[OracleVerdict]:
        """Return a verdict on each sentence, or on each pair of sentences."""

    def labels_for(self, num_texts: int) -> tuple[str, ...]:
        """Return the labels that `num_texts` sentences (1 or 2) may get, in the order of a table's rows."""

    def bands(self) -> Mapping[str, tuple[float, float]]:
        """Return the range of true similarities, (from, to), of each label of two sentences."""


@dataclass(frozen=True)
class World:
    """A generated world: the object that an entry point of the group `synthbench.worlds` names."""

    version: int
    """Raise it whenever the same settings give different records or verdicts."""
    sets: type[WorldSet]
    set_kinds: Mapping[str, RecordKind]
    """Set name -> kind of its records; the default set comes first."""
    llm_settings: type[WorldLLMSettings]
    llm_model: str
    running_llm: Callable[[WorldLLMSettings], AbstractContextManager[RunningLLM]]
    """Runs the LLM in a process of its own within the context. Raises UserError if it does not start."""
    model_folder: Callable[[str], Path]
    """Returns a model's folder. Raises UserError if it is missing or damaged."""
    oracle: Callable[[], Oracle]
    commands: Callable[[], "Typer"]
    """Returns the world's commands, for `synthbench NAME`."""
