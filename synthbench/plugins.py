"""The contracts of methods, trainers and evaluators."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Record, RecordKind
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import ChatAmount
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.work import Expected, Work
from synthbench.runtime import Progress, Runtime

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class TrainedModel:
    """Something a method needs first: a model trained by a shared trainer on the method's own sources.

    `data` and `selection` name source roles of the method; `config` is the trainer's configuration.
    `seed_optimization` is a section as `train` has it (`seeds`, `at`): that many trainings begin, and the
    best on the selection is finished. It needs a source for the role `selection`.
    """

    trainer: str
    config: Mapping[str, Any]
    data: tuple[str, ...]
    seed: int
    evaluator: str = ""
    selection: str = ""
    seed_optimization: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class GeneratedData:
    """Something a method needs first: the data set of another method; `sources` maps its roles to ours.

    An optional role of the other method is not handed on where ours has no source.
    """

    method: str
    config: Mapping[str, Any]
    sources: Mapping[str, str]


Need = TrainedModel | GeneratedData


class Component(BaseModel):
    """A plug-in: its fields are its part of the experiment file, `version` names its behaviour.

    Raise `version` whenever the same configuration gives another result: artifacts of the older version are
    then no longer used. Nor are those of other code, if the plug-in is not synthbench's own.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    version: ClassVar[int]

    def revisions(self) -> Mapping[str, str]:
        """Return what this component reads from outside: name -> content hash or commit.

        Enters the identity of the stage. Raises UserError if something named is missing.
        """
        return {}


@dataclass(frozen=True)
class Unit:
    """All that came of one piece of a method's work, journalled as one line and never done twice.

    `key` names the piece, `position` orders the pieces in the final data set whatever order they end in.
    `dropped` counts what the piece came to beside its records, by reason; shown in the manifest.
    """

    key: str
    position: int
    records: tuple[Record, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ChatModel:
    """A chat model behind OpenAI's chat-completions API: its declared name, address and model id there."""

    name: str
    base_url: str
    model: str


class Records(Protocol):
    """The records of a data set, in memory or not."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...

    def column(self, name: str) -> list[Any]:
        """Return one column's values."""


class GenerationContext(Protocol):
    """What a method may use while it generates."""

    @property
    def runtime(self) -> Runtime:
        """Device, threads, batch size."""

    @property
    def progress(self) -> Progress:
        """Where to say how far it is."""

    @property
    def finished_units(self) -> Collection[str]:
        """Keys of the units that an earlier, killed run has journalled; skip them."""

    @property
    def llm(self) -> ChatModel:
        """The LLM that the experiment names; only for a method that says `uses_llm`.

        Let errors of the connection through once retries are used up: the run then says what to do, and is
        resumed after the last finished unit.
        """

    def chat(self) -> ChatClient:
        """Return a client of that LLM, which keeps every answer and is paid for it once.

        Its errors are UserErrors; let them through.
        """

    def pair_scorer(self, need: str) -> PairScorer:
        """Return the trained pair scorer that `needs` declared under this name."""

    def encoder(self, need: str) -> Encoder:
        """Return the trained encoder that `needs` declared under this name."""

    def dataset(self, need: str) -> SyntheticDataset:
        """Return the generated data set that `needs` declared under this name."""

    def records(self, need: str) -> Records:
        """Return the same, if it may be more than fits into memory: its records are read as they are used."""

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        """Count candidates that were dropped on purpose; shown in the manifest.

        A method that yields units must count the same on every run, also where it skips finished units.
        """

    def measure(self, name: str, value: float) -> None:
        """Keep a finite number that people should know of the data, beside them; shown in the manifest.

        A method that yields units must measure the same on every run.
        """


class Method(Component, ABC):
    """Makes training data; pure given its configuration and sources, knows nothing of files or tracking.

    `source_roles` must be given in the experiment, `optional_source_roles` may be. A need whose `selection`
    names an optional role that is not given selects nothing.
    """

    record_kind: ClassVar[RecordKind]
    source_roles: ClassVar[Mapping[str, RecordKind]] = {}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {}
    uses_llm: ClassVar[bool] = False
    """Whether it asks an LLM, which the experiment must then name (`llm:`)."""

    def needs(self) -> Mapping[str, Need]:
        """Return the models and data sets to be made before `generate`, by name.

        A need that has a section of settings is called as its key is, dotted if nested, as in
        "sampler.bi_encoder": faults are then told with that place.
        """
        return {}

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if these settings don't go with the optional roles that have a source.

        `given` are the roles that have one; that all `source_roles` are among them is looked at elsewhere.
        """

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if these settings can make nothing of the sources, by role.

        Asked when the sources are read, before anything is spent on what the method needs. Should be quick.
        """

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Tell what generating would cost, a line for each kind of cost, from amounts alone.

        `num_records` are the sizes of the sources, by role; nothing is told if one that matters is not there.
        """
        return ()

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Tell how many records generating would make and what it computes, from the same amounts as `cost`.

        `plan` and `run` tell times from it; what is None is called unknown.
        """
        return Expected()

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Tell how much generating would ask the LLM, as `cost` does; None if nobody can tell."""
        return None

    def table_notes(self) -> Iterable[str]:
        """Tell what must be known beside every table of such data, a sentence each."""
        return ()

    @abstractmethod
    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        """Yield records, failures among them; yield Units to be resumable in the middle."""


@dataclass(frozen=True)
class TrainingContext:
    """What a trainer gets beside its data.

    `checkpoints` survives a kill and holds whatever the trainer needs to resume; the finished model goes into
    `output`. `select` scores a model on the dev tasks (higher is better), None if nothing is selected.

    A trainer that says `can_pause` stops after the share `until` of its steps, in (0, 1], and then leaves in
    `output` what it needs to go on; `resume` is the `output` of such a training with equal settings, seed and
    data. Both together end as one that was not interrupted.
    """

    seed: int
    checkpoints: Path
    output: Path
    runtime: Runtime
    progress: Progress
    select: Callable[[PairScorer], float] | None = None
    until: float = 1.0
    resume: Path | None = None


@dataclass(frozen=True)
class TrainingSummary:
    """What became of a training: the selected dev score, and curves as (step, name, value).

    The dev score of a training that was paused is that of the moment.
    """

    num_steps: int = 0
    num_records: int = 0
    best_step: int | None = None
    dev_score: float | None = None
    history: tuple[tuple[int, str, float], ...] = ()


class Trainer(Component, ABC):
    """Makes a model from data sets of any record kind it accepts."""

    model_kind: ClassVar[ModelKind]
    is_seeded: ClassVar[bool] = True
    """Whether the seed makes a difference; if not, there is one run instead of one for each seed."""
    can_pause: ClassVar[bool] = False
    """Whether it heeds the context's `until` and `resume`."""
    takes_data: ClassVar[bool] = True
    """Whether there must be data; if not, there must be none."""

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Tell what a training on so many records computes that scores dev pairs, if any; None: unknown."""
        return None if self.takes_data else Work("", 0.0, 0.0)

    @abstractmethod
    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all `data` together and save the model with `synthbench.models.artifact`."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of one model on one task.

    `scores` are named; `main_score` names the one for tables. `items` holds per-item columns of equal length
    (`id` among them) for paired statistics.
    """

    scores: Mapping[str, float]
    main_score: str
    num_items: int
    items: Mapping[str, Sequence[Any]] = field(default_factory=dict)


class Evaluator(Component, ABC):
    """Scores a model on a task's data set."""

    record_kind: ClassVar[RecordKind]
    needs_encoder: ClassVar[bool] = False
    learns_from: ClassVar[Collection[str]] = ()
    """What it can learn from beside the test data, "train" and "dev": an evaluation may name such sources.

    Their records then stand in the task, with that split; all others are test data.
    """

    def check_learning(self, given: Collection[str]) -> None:
        """Raise UserError if these settings need more to learn from than the evaluation gives."""

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if nothing can be measured on a task, whatever the model.

        Asked once the task is there, before anything is trained.
        """

    @property
    @abstractmethod
    def main_score(self) -> str:
        """Name of the score that tables print and that selection maximises."""

    @property
    def main_score_title(self) -> str:
        """The main score in words for readers of a table; its name unless a plug-in says more."""
        return self.main_score

    @property
    @abstractmethod
    def score_names(self) -> tuple[str, ...]:
        """Names of the scores that every task has (subset scores come on top)."""

    def texts(self, task: SyntheticDataset) -> Iterable[str]:
        """Return the sentences that `evaluate` will encode, so that all tasks share one pass."""
        return task.texts

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64] | None":
        """Return how each item moves the main score, of shape (items,); None if nobody knows.

        `items` and `scores` are those of an `Evaluation`. The influence is the score's derivative by the
        item's weight in the test set, times the number of items, so that it adds up to 0 and the mean of a
        value has the influences value - mean. Intervals that hold for other test items come from it.
        """
        return None

    @abstractmethod
    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Score `model` (an Encoder if `needs_encoder`, else a PairScorer) on `task`."""

    def evaluate_with_progress(
        self, model: PairScorer | Encoder, task: SyntheticDataset, progress: Progress | None
    ) -> Evaluation:
        """Do what `evaluate` does, and say how far it is: for evaluators that take long after encoding."""
        return self.evaluate(model, task)
