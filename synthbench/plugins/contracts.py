"""The contracts of methods and steps, and what all plug-ins have in common."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from synthbench.base.errors import did_you_mean
from synthbench.base.runtime import Progress, Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RECORD_TYPES, SHARED_COLUMNS, Record, RecordKind
from synthbench.data.views import Records as Records
from synthbench.data.views import Unit as Unit
from synthbench.llm.client import LLM
from synthbench.llm.endpoint import ChatAmount
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.work import Expected


@dataclass(frozen=True)
class TrainedModel:
    """A dependency of a method or step: a model that a shared trainer trains on the plug-in's own sources.

    `data` and `selection` name source roles of a method, or sources in a step's `others`. `config` is the
    trainer's configuration. `seed_optimization` is a section as in `train`: of `seeds` trainings, only the
    one with the best selection score is finished; `selection` must then have a source.
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
    """A dependency of a method: another method's data set.

    `sources`: role of the other method -> role of this method; both get the same source. Optional roles that
    this method has no source for stay empty.
    """

    method: str
    config: Mapping[str, Any]
    sources: Mapping[str, str]


Need = TrainedModel | GeneratedData


class Component(BaseModel):
    """A plug-in: its fields are its section of the experiment file; `version` numbers its behaviour.

    Raise `version` whenever the same configuration gives another result, so that older artifacts are not
    reused. The code of plug-ins outside synthbench enters identities as well.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    version: ClassVar[int]

    def version_in_use(self) -> int:
        """Return the version for identities: an earlier version if these settings still give its results."""
        return self.version

    def revisions(self) -> Mapping[str, str]:
        """Return external inputs of this component, as name -> content hash or commit.

        They enter the identity of the stage. Raises UserError if a named input is missing.
        """
        return {}

    def table_notes(self) -> Iterable[str]:
        """Return notes for every table of this component's data, a sentence each."""
        return ()


class PluginContext(Protocol):
    """Services for methods and steps."""

    @property
    def runtime(self) -> Runtime:
        """Device, threads, batch size."""

    @property
    def progress(self) -> Progress:
        """Receiver of progress reports."""

    def is_mine(self, piece: int) -> bool:
        """Return whether this shard owns work item `piece`.

        Always true unless `runtime.shards` divides the work of a shardable method.
        """

    @property
    def llm(self) -> LLM:
        """The plug-in's LLM, for plug-ins with `uses_llm`."""

    def pair_scorer(self, name: str) -> PairScorer:
        """Return the trained pair scorer that `needs` declares under this name."""

    def encoder(self, name: str) -> Encoder:
        """Return the trained encoder that `needs` declares under this name."""

    def count_dropped(self, reason: str, amount: int = 1) -> None:
        """Count deliberately dropped items; the manifest shows the count.

        A method that yields units must count the same on every run, also when it skips finished units. A step
        counts dropped records; records that it drops without a count are counted under the step's name.
        """

    def measure(self, name: str, value: float) -> None:
        """Record a finite figure about the data; the manifest shows it.

        A method that yields units must measure the same on every run. Raises ValueError for NaN or infinity.
        """


class GenerationContext(PluginContext, Protocol):
    """Services for a method during generation."""

    @property
    def finished_units(self) -> Collection[str]:
        """Keys of the units in the journal of an earlier, killed run: skip these."""

    def finished_records(self) -> Iterator[tuple[str, Sequence[Record]]]:
        """Yield the keys and records of the finished units, for figures over all records."""

    def dataset(self, name: str) -> SyntheticDataset:
        """Return the generated data set that `needs` declares under this name."""

    def records(self, name: str) -> Records:
        """Return the data set of `dataset(name)` as a stream of records: it may not fit into memory."""

    def shared(self) -> SyntheticDataset | None:
        """Return the data that the method from `shared_by_shards` made; None without shards."""


class StepContext(PluginContext, Protocol):
    """Services for a step."""

    def source(self, name: str) -> SyntheticDataset | None:
        """Return a source that `others` names; None if its data are missing, as for an `if_found` task."""

    def scratch(self) -> Path:
        """Return a folder for temporary data that may not fit into memory; it is emptied after the step."""


class Method(Component, ABC):
    """Generates training data, as a pure function of its configuration and sources, without writing files.

    An experiment must give sources for `source_roles`, and may for `optional_source_roles`. A dependency
    whose `selection` is an optional role without a source is trained without model selection.
    """

    record_kind: ClassVar[RecordKind]
    source_roles: ClassVar[Mapping[str, RecordKind]] = {}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {}
    uses_llm: ClassVar[bool] = False
    """Whether it asks an LLM, which the experiment must then name (`llm:`)."""
    is_shardable: ClassVar[bool] = False
    """Whether several processes may share its work.

    It must then number its work items from 0, the same on every run. It must skip items for which the
    context's `is_mine` is False, and yield only Units, which do not depend on the process.
    """

    def needs_llm(self) -> bool:
        """Return whether the method asks an LLM with these settings."""
        return self.uses_llm

    def can_be_sharded(self) -> bool:
        """Return whether several processes may share the work with these settings."""
        return self.is_shardable

    def shared_by_shards(self) -> "Method | None":
        """Return a method whose data all shards need, such as a search, or None.

        With `runtime.shards`, the returned method runs before the shards, in a separate stage, on the same
        sources. The shards read its data by the context's `shared`. It may be sharded, too. Its records must
        carry every count and measure that `generate` would report.
        """
        return None

    def needs(self) -> Mapping[str, Need]:
        """Return the dependencies, by name: models and data sets that are made before `generate`.

        If a dependency has its own section of settings, its name must be the section's key, dotted if nested,
        as in "sampler.bi_encoder": errors then name that location.
        """
        return {}

    def check_sources(self, given: Collection[str]) -> None:
        """Raise UserError if these settings don't suit the optional roles that have a source.

        `given` are the roles with a source; all `source_roles` are among them (checked elsewhere).
        """

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError if these settings can make nothing from the sources (role -> data set).

        Called when the sources are read, before the dependencies are made. Should be quick.
        """

    def cost(self, num_records: Mapping[str, int]) -> Iterable[str]:
        """Return the cost of generating, a line for each kind of cost, without reading the sources.

        `num_records`: role -> number of records of its source, where known.
        """
        return ()

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected number of records and work; `num_records` as in `cost`.

        `plan` and `run` estimate times from it; None is unknown.
        """
        return Expected()

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens, None: unknown; `num_records` as in `cost`."""
        return None

    @abstractmethod
    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[Record | Unit]:
        """Yield records, failures included; yield Units to allow resuming in the middle."""


class Step(Component, ABC):
    """Prepares training data: drops, adds or changes records. `prepare: [{step: NAME, ...}]` applies it.

    Results must not depend on the order of records: draw, and break ties, by ids or texts. Records are read
    from the disk during iteration, and written as they are yielded. Store only the needed parts of records,
    so that a million take little memory.
    """

    kinds: ClassVar[frozenset[RecordKind]] = frozenset(RECORD_TYPES) - {RecordKind.FAILURE}
    """Kinds of records that it accepts."""
    uses_llm: ClassVar[bool] = False
    """Whether it asks an LLM, which the experiment must then name (`llm:`)."""
    after_answers: ClassVar[frozenset[str]] = frozenset()
    """Settings that change no request: if steps differ only in these, `plan` counts their requests once."""
    reads_queries: ClassVar[bool] = False
    """Whether it encodes queries and passages separately (`of_queries`, `of_passages`)."""
    scores_triplets: ClassVar[bool | None] = None
    """Whether the resulting triplets have a teacher's scores; None: as before the step."""
    replaces_ids: ClassVar[bool] = False
    """Whether it replaces each record by records with new ids, so that a missing id is no drop."""

    def needs_llm(self) -> bool:
        """Return whether the step asks an LLM with these settings."""
        return self.uses_llm

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the trained models that the step needs, by name; their `data` are names in `others`."""
        return {}

    def others(self) -> tuple[str, ...]:
        """Return the further sources to read, which the settings name in `source` or `sources`."""
        return ()

    def bases_apart(self) -> tuple[Mapping[str, Any], ...]:
        """Return the `base` settings of those models of the step that must not be the model under test."""
        return ()

    def columns_used(self) -> tuple[str, ...]:
        """Return the record columns that the settings name."""
        return ()

    def obstacle(self, kind: RecordKind) -> str:
        """Return why records of this kind are not accepted, "" if they are."""
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
        """Return the kind of the resulting records."""
        return kind

    def expected(self, num_records: int) -> int:
        """Return the approximate number of resulting records; `num_records` if only the records can tell."""
        return num_records

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return the LLM requests and tokens for `num_records` records; None: unknown."""
        return None

    def memory(self, num_records: int) -> float | None:
        """Return the extra memory in bytes that the step needs for `num_records` records; None: unknown.

        Extra: beyond what every stage needs. `plan` counts it. A stage announces 0.1 GB or more before it
        starts.
        """
        return None

    def remark(self, before: Records, after: Records) -> str:
        """Return a remark on the outcome beyond the number of records, "" if none."""
        return ""

    @property
    def is_plain(self) -> bool:
        """Whether the step reads only records and sources: no model, no LLM, no other input."""
        reads_outside = type(self).revisions is not Component.revisions
        return not (self.needs_llm() or self.needs() or reads_outside)

    @abstractmethod
    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the resulting records, in their final order.

        Ids of `records` that are not yielded count as dropped, unless `replaces_ids` is set; unknown ids are
        new. `records` can be iterated over any number of times, also between yields.
        """
