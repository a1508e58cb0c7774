"""What a generated world offers: data sets whose truth is known, an LLM, models, a judge and commands."""

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
    """A data set of the world, as a file describes it: a field of the world's name says which one."""

    if TYPE_CHECKING:
        # Fields of each world's own, in the order and with the limits that it wants.
        split: str
        size: int

    @property
    def own_kind(self) -> RecordKind:
        """The kind of every record."""
        raise NotImplementedError

    @property
    def is_training_text(self) -> bool:
        """Whether it is text to train on, whatever its split."""
        return False

    def listed_records(self) -> list[Record]:
        """Return the set's records."""
        raise NotImplementedError


class WorldLLMSettings(BaseModel):
    """How the world's LLM answers, and how its service behaves."""

    def content(self) -> Mapping[str, Any]:
        """Return all that the answers depend on, beside the requests."""
        raise NotImplementedError


@dataclass(frozen=True)
class RunningLLM:
    """A server of the world's LLM that listens."""

    base_url: str
    model: str
    is_running: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class OracleVerdict:
    """What the world says of one sentence, or of two.

    `similarity` is in [0, 1], None for single sentences and where the world does not know a sentence;
    `outside` are the positions of those that it does not know.
    """

    label: str
    similarity: float | None
    outside: tuple[int, ...] = ()


class Oracle(Protocol):
    """The world as a judge of sentences."""

    def judge(self, texts: Sequence[tuple[str, ...]], progress: Progress) -> Sequence[OracleVerdict]:
        """Return a verdict on each sentence, or on each two sentences that are to be compared."""

    def labels_for(self, num_texts: int) -> tuple[str, ...]:
        """Return the labels that one or two sentences may get, in the order of a table's rows."""

    def bands(self) -> Mapping[str, tuple[float, float]]:
        """Return the true similarities, from and to, that each label of two sentences stands for."""


@dataclass(frozen=True)
class World:
    """A generated world: what an entry point of the group `synthbench.worlds` names."""

    version: int
    """Raised whenever the same settings give other records or verdicts."""
    sets: type[WorldSet]
    set_kinds: Mapping[str, RecordKind]
    """The kind of the records of each set, by name; the usual set is the first."""
    llm_settings: type[WorldLLMSettings]
    llm_model: str
    running_llm: Callable[[WorldLLMSettings], AbstractContextManager[RunningLLM]]
    """Runs the LLM in a process of its own while the context lasts. Raises UserError if it does not start."""
    model_names: Callable[[], Sequence[str]]
    """Returns the names of the models that ship with the world, each "NAME/..."."""
    model_folder: Callable[[str], Path]
    """Returns the folder of such a model. Raises UserError if there is none, or it is damaged."""
    oracle: Callable[[], Oracle]
    commands: Callable[[], "Typer"]
    """Returns the world's own commands, for `synthbench NAME`."""
