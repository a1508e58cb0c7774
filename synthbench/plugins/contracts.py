"""The contracts of methods, trainers and evaluators."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from synthbench.base.errors import did_you_mean
from synthbench.base.runtime import Progress, Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, SHARED_COLUMNS, Record, RecordKind
from synthbench.data.views import Records as Records
from synthbench.data.views import Unit as Unit
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import ChatAmount, ChatModel
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.work import Expected, Work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class TrainedModel:
    """A dependency of a method: a model that a shared trainer trains on the method's own sources.

    `data` and `selection` name source roles of the method; `config` is the trainer's configuration.
    `seed_optimization` is a section as `train` has it (`seeds`, `at`): that many trainings begin, and the
    best on the selection is finished; the role `selection` must then have a source.
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
    """A dependency of a method: the data set of another method; `sources` maps its roles to ours.

    An optional role of the other method stays without a source where ours has none.
    """

    method: str
    config: Mapping[str, Any]
    sources: Mapping[str, str]


Need = TrainedModel | GeneratedData


class Component(BaseModel):
    """A plug-in: its fields are its part of the experiment file, `version` names its behaviour.

    Raise `version` whenever the same configuration gives another result, so that older artifacts are no
    longer used. The code of plug-ins that are not synthbench's own counts as well.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    version: ClassVar[int]

    def version_in_use(self) -> int:
        """Return the version for identities: an earlier one if these settings still give its results."""
        return self.version

    def revisions(self) -> Mapping[str, str]:
        """Return what this component reads from outside, as name -> content hash or commit.

        It enters the identity of the stage. Raises UserError if something named is missing.
        """
        return {}

    def table_notes(self) -> Iterable[str]:
        """Return the notes below every table of such data, a sentence each."""
        return ()


class PluginContext(Protocol):
    """What methods and steps may use."""

    @property
    def runtime(self) -> Runtime:
        """Device, threads, batch size."""

    @property
    def progress(self) -> Progress:
        """Where to report progress."""

    def is_mine(self, piece: int) -> bool:
        """Tell whether this process does the piece of work with this number, 0, 1, ...; another does else.

        Always true unless `runtime.shards` divides the work of a method that can be divided.
        """

    def chat(self) -> ChatClient:
        """Return a client of the plug-in's LLM, which caches every answer, so that each is paid once.

        Its errors are UserErrors; let them through.
        """

    def pair_scorer(self, name: str) -> PairScorer:
        """Return the trained pair scorer that `needs` declares under this name."""

    def encoder(self, name: str) -> Encoder:
        """Return the trained encoder that `needs` declares under this name."""

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        """Count what was dropped on purpose; the manifest shows it.

        A method that yields units must count the same on every run, also where it skips finished units. A
        step counts records by reason; those that it drops uncounted are counted under its name.
        """

    def measure(self, name: str, value: float) -> None:
        """Record a finite number that people should know of the data; the manifest shows it.

        A method that yields units must measure the same on every run.
        """


class GenerationContext(PluginContext, Protocol):
    """What a method may use while it generates."""

    @property
    def finished_units(self) -> Collection[str]:
        """Keys of the units that an earlier, killed run has journalled: skip these."""

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        """Yield the keys and records of those units, for figures over all records."""

    @property
    def llm(self) -> ChatModel:
        """The LLM that the experiment names, for methods with `uses_llm`.

        Let connection errors through once retries are used up: the run resumes after the last finished unit.
        """

    def dataset(self, name: str) -> SyntheticDataset:
        """Return the generated data set that `needs` declares under this name."""

    def records(self, name: str) -> Records:
        """Return the same data set, read as its records are used: it may not fit into memory."""

    def shared(self) -> SyntheticDataset | None:
        """Return what the method's `shared_by_shards` made; None where `generate` makes it itself."""


class StepContext(PluginContext, Protocol):
    """What a step may use."""

    def source(self, name: str) -> SyntheticDataset | None:
        """Return a source that `others` names; None if its data are missing, as an `if_found` task's may."""

    def scratch(self) -> Path:
        """Return a folder for what may not fit into memory; it is emptied after the step."""


class Method(Component, ABC):
    """Makes training data, a pure function of its configuration and sources; touches no file and no tracking.

    An experiment must give `source_roles` and may give `optional_source_roles`. A dependency selects nothing
    if its `selection` is an optional role without a source.
    """

    record_kind: ClassVar[RecordKind]
    source_roles: ClassVar[Mapping[str, RecordKind]] = {}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {}
    uses_llm: ClassVar[bool] = False
    """Whether it asks an LLM, which the experiment must then name (`llm:`)."""

    def needs_llm(self) -> bool:
        """Tell whether it asks an LLM with these settings."""
        return self.uses_llm

    def can_be_sharded(self) -> bool:
        """Tell whether several processes may share its work with these settings.

        It must then number the pieces of its work from 0, the same on every run, leave out those that are
        not the context's (`is_mine`), and yield Units only, the same ones whoever makes them.
        """
        return False

    def shared_by_shards(self) -> "Method | None":
        """Return a method that makes what each shard would make alike, such as a search; None: nothing.

        With `runtime.shards` a stage of its own runs it before the shards, on the same sources, which read it
        by the context's `shared`; it may be divided, too. Its data must tell all that `generate` would count
        and measure.
        """
        return None

    def needs(self) -> Mapping[str, Need]:
        """Return the dependencies, by name: models and data sets that are made before `generate`.

        Name a dependency that has a section of settings after its key, dotted if nested, as in
        "sampler.bi_encoder": errors then name that location.
        """
        return {}

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if these settings don't go with the optional roles that have a source.

        `given` are the roles with a source; that they include all `source_roles` is checked elsewhere.
        """

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if these settings can make nothing of the sources, by role.

        Called when the sources are read, before the dependencies are made. Should be quick.
        """

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return the cost of generating, a line for each kind of cost, from amounts alone.

        `num_records` are the known sizes of the sources, by role.
        """
        return ()

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return how many records generating would make, and its work, from the same amounts as `cost`.

        `plan` and `run` estimate times from it; None is unknown.
        """
        return Expected()

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the requests and tokens that generating would take, from the same amounts; None: unknown."""
        return None

    @abstractmethod
    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        """Yield records, failures included; yield Units to be resumable in the middle."""


class Step(Component, ABC):
    """Prepares data for training: drops, adds or changes records. `prepare: [{step: NAME, ...}]` applies it.

    Nothing may depend on the order of records: draw, and choose among equals, by their ids or texts. Records
    are read from the disk as they are iterated over, and written as they are yielded: keep of each what the
    step needs, not the record, and a million take little memory.
    """

    kinds: ClassVar[frozenset[RecordKind]] = frozenset(RECORD_TYPES) - {RecordKind.FAILURE}
    """Kinds of records that it can be applied to."""
    uses_llm: ClassVar[bool] = False
    """Whether it asks an LLM, which the experiment must then name (`llm:`)."""
    reads_queries: ClassVar[bool] = False
    """Whether its encoders read queries and passages (`of_queries`, `of_passages`)."""
    scores_triplets: ClassVar[bool | None] = None
    """Whether its triplets have a teacher's scores (True) or none (False); None: as before it, or unknown."""

    def needs_llm(self) -> bool:
        """Tell whether it asks an LLM with these settings."""
        return self.uses_llm

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the trained models that it uses, by name, as a method's; `data` are names in `others`."""
        return {}

    def others(self) -> tuple[str, ...]:
        """Return the further sources that it reads, which its settings name in `source` or `sources`."""
        return ()

    def bases_apart(self) -> tuple[Mapping[str, Any], ...]:
        """Return the bases of models that must not be the one under test, as settings."""
        return ()

    def columns_used(self) -> tuple[str, ...]:
        """Return the columns that the settings name."""
        return ()

    def obstacle(self, kind: RecordKind) -> str:
        """Return why it can't be applied to records of this kind, "" if it can."""
        if kind not in self.kinds:
            return f"is for {', '.join(sorted(self.kinds))} records, not for {kind} records"
        text_fields = RECORD_TYPES[kind].text_fields
        score = ("score",) if kind == RecordKind.SCORED_PAIR else ()
        known = (*(name for name in text_fields if name != "candidates"), *score, *SHARED_COLUMNS)
        for name in self.columns_used():
            if name not in known:
                return f"{kind} records have no column '{name}' to group by{did_you_mean(name, known)}"
        return ""

    def kind_after(self, kind: RecordKind) -> RecordKind:
        """Return the kind of the records that go on."""
        return kind

    def expected(self, num_records: int) -> int:
        """Return about how many of so many records go on; as many, if only the records can tell."""
        return num_records

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return the requests and tokens that so many records would take; None: unknown."""
        return None

    def memory(self, num_records: int) -> float | None:
        """Return the bytes that so many records take beside what every stage does; None: unknown.

        A stage says what it needs before it starts, and `plan` counts on it.
        """
        return None

    def remark(self, before: Records, after: Records) -> str:
        """Return what people should know of the outcome beyond the number of records, "" if nothing."""
        return ""

    @property
    def is_plain(self) -> bool:
        """Whether records and sources are all it reads: no model, no LLM, nothing from outside."""
        reads_outside = type(self).revisions is not Component.revisions
        return not (self.needs_llm() or self.needs() or reads_outside)

    @abstractmethod
    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the records that go on, in order. A missing id counts as dropped; an added one is new.

        `records` can be iterated over any number of times, also while it yields.
        """


@dataclass(frozen=True)
class TrainingContext:
    """What a trainer gets beside its data.

    `checkpoints` survives a kill; the finished model goes into `output`. `select` scores a model on the dev
    tasks (higher is better), None if nothing is selected.

    A trainer with `can_pause` stops after the share `until` of its steps, in (0, 1], and leaves in `output`
    what resuming takes; `resume` is the `output` of such a training with equal settings, seed and data. Both
    together end as an uninterrupted training.
    """

    seed: int
    checkpoints: Path
    output: Path
    runtime: Runtime
    progress: Progress
    select: Callable[[PairScorer], float] | None = None
    weights: tuple[float, ...] = ()
    """How many times an epoch has each record of each data set; empty: once."""
    temperatures: tuple[float | None, ...] = ()
    """Of the contrastive loss for the records of each data set; None, or empty: the trainer's."""
    until: float = 1.0
    resume: Path | None = None


@dataclass(frozen=True)
class TrainingSummary:
    """The outcome of a training: the selected dev score, and curves as (step, name, value).

    A paused training's dev score is that of its last step.
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
    """Whether the seed matters; if not, all seeds share one training."""
    can_pause: ClassVar[bool] = False
    """Whether it obeys the context's `until` and `resume`."""
    takes_data: ClassVar[bool] = True
    """Whether it takes data; if not, giving any is an error."""
    takes_weights: ClassVar[bool] = False
    """Whether it obeys the context's `weights`."""

    @property
    def num_devices(self) -> int:
        """How many GPUs, or processes of a CPU, share a training.

        If several, `train` is called in as many processes, which torch.distributed has joined. The first
        one's model and summary count; all write checkpoints into one folder.
        """
        return 1

    @property
    def takes_temperatures(self) -> bool:
        """Whether it obeys the context's `temperatures`; some losses have one, others have none."""
        return False

    def pair_readers(self) -> Mapping[str, bool]:
        """Return the keys of models that read two texts together, and whether one needs a head of its own."""
        return {}

    def obstacle(self, kind: RecordKind) -> str:
        """Return why it can't learn from records of this kind, with what can; "" if it can."""
        return ""

    def if_unscored(self) -> str:
        """Return what to say, with {missing}, if triplets lack the scores it needs; "" if it needs none."""
        return ""

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Return the work of training on so many records and scoring so many dev pairs; None: unknown."""
        return None if self.takes_data else Work("", 0.0, 0.0)

    @abstractmethod
    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all `data` together and save the model with `save_model`."""


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
    """Splits beside the test data that it learns from ("train", "dev"); an evaluation may name their sources.

    Their records are then part of the task, with that split; all others are test data.
    """

    def check_learning(self, given: Collection[str]) -> None:
        """Raise UserError if these settings need more to learn from than the evaluation gives."""

    def check_data(self, task: SyntheticDataset) -> None:
        """Raise UserError if nothing can be measured on a task, whatever the model.

        Called before anything is trained.
        """

    @property
    @abstractmethod
    def main_score(self) -> str:
        """Name of the score that tables print and that selection maximises."""

    @property
    def main_score_title(self) -> str:
        """The main score in words, for readers of a table."""
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
        """Return the influence function of the main score at each item, shape (items,); None if unknown.

        `items` and `scores` are those of an `Evaluation`. It is the score's derivative by the item's weight
        in the test set, times the number of items, and adds up to 0; of a mean it is value - mean. Confidence
        intervals over test items come from it.
        """
        return None

    @abstractmethod
    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Score `model` (an Encoder if `needs_encoder`, else a PairScorer) on `task`."""

    def evaluate_with_progress(
        self, model: PairScorer | Encoder, task: SyntheticDataset, progress: Progress | None
    ) -> Evaluation:
        """Do what `evaluate` does, and report progress: for evaluators that take long after encoding."""
        return self.evaluate(model, task)
