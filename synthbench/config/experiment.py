"""A validated experiment, with every plug-in found and configured."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from synthbench.base.frozen import in_identity
from synthbench.base.runtime import Runtime
from synthbench.config.coordinates import row_at
from synthbench.config.documents import Document, texts_in
from synthbench.config.llm import NamedLLM
from synthbench.config.precisions import GivenPrecision
from synthbench.config.published_tables import PublishedAudit, PublishedValue
from synthbench.config.schema import PartRole, SeedOptimizationSection
from synthbench.config.table_options import TableOptions
from synthbench.models.pretrained import Prompts
from synthbench.plugins.contracts import Method, Step
from synthbench.plugins.model_contracts import Evaluator, Trainer
from synthbench.plugins.task_providers import TaskProvider
from synthbench.sources.description import Roots
from synthbench.sources.models import Source


@dataclass(frozen=True)
class PrepareStep:
    """A prepare step, with its name in the file."""

    name: str
    plugin: Step
    llm: NamedLLM | None = None
    """The LLM that the step uses, if any."""

    def identity(self) -> Mapping[str, Any]:
        """Return the name, version and settings, which determine the step's result."""
        return {"step": self.name, **in_identity(self.plugin), "version": self.plugin.version_in_use()}


@dataclass(frozen=True)
class Part:
    """One named part of a run's training data: `source` or `method` is set, never both."""

    name: str
    prepare: tuple[PrepareStep, ...]
    source: str | None = None
    method: Method | None = None
    method_name: str = ""
    roles: Mapping[str, str | PartRole] | None = None
    llm: NamedLLM | None = None
    """The LLM that the method uses, if any."""
    weight: float = 1.0
    """How often an epoch contains each record of the part."""
    temperature: float | None = None
    """Temperature of the contrastive loss for the part's records; None: the trainer's temperature."""
    train_on: bool = True
    """Whether the trainer reads the part; if not, it is only an input of other parts."""


@dataclass(frozen=True)
class Selection:
    """How a checkpoint is selected: by an evaluator's main score, averaged over dev data.

    The dev data are the whole `sources`, and the dev records of the training data's `parts`.
    """

    evaluator_name: str
    evaluator: Evaluator
    sources: tuple[str, ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluator, the test sources that it scores, and the sources (`train`, `dev`) that it learns from."""

    evaluator_name: str
    evaluator: Evaluator
    tasks: tuple[str, ...]
    if_found: tuple[str, ...]
    exclude: tuple[str, ...]
    train: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    prompts: Prompts | None = None

    @property
    def optional(self) -> tuple[str, ...]:
        """The sources whose data may be missing; includes `train` and `dev` if no task is mandatory."""
        return (*self.if_found, *(() if self.tasks else (*self.train, *self.dev)))


@dataclass(frozen=True)
class AuditPlan:
    """An audit of a part's labels by an oracle, answered sheets or gold scores.

    Without any of these, the run writes a blank sheet.
    """

    name: str
    part: str
    per_label: int | None
    seed: int
    oracle: str | None
    sheets: tuple[Path, ...]
    published: PublishedAudit | None = None
    gold: str | None = None
    positive: float = 0.5

    @property
    def reads(self) -> tuple[str, ...]:
        """The parts that the audit reads."""
        return (self.part,) if self.gold is None else (self.part, self.gold)


@dataclass(frozen=True)
class Start:
    """The row from whose trained model a training starts; dev scores choose among the row's candidates."""

    label: str = field(compare=False)
    candidates: "tuple[Candidate, ...]"


@dataclass(frozen=True)
class RunConfig:
    """The settings of one run, without its seed; a run without trainer ends with its audits."""

    parts: tuple[Part, ...]
    trainer_name: str
    trainer: Trainer | None
    selection: Selection | None
    evaluations: tuple[EvaluationPlan, ...]
    audits: tuple[AuditPlan, ...]
    parameters: Mapping[str, Any]
    seed_optimization: SeedOptimizationSection | None = None
    starts_from: str = ""
    """The variant whose trained model the training starts from; "": the base."""
    start: Start | None = None


@dataclass(frozen=True)
class Candidate:
    """One combination of the values that a `select` section ranges over."""

    chosen: Mapping[str, Any]
    config: RunConfig


@dataclass(frozen=True)
class Variant:
    """A named row: its axis values, and one candidate, or several among which dev scores choose."""

    name: str
    axes: Mapping[str, str]
    candidates: tuple[Candidate, ...]
    parameters: Mapping[str, Any]
    is_of_file: bool = field(default=False, compare=False)
    """Whether overrides leave the row unchanged."""

    @property
    def label(self) -> str:
        """The variant's name with its axis values."""
        return row_at(self.name, self.axes).label


def configs_of(variants: Iterable[Variant]) -> Iterator[RunConfig]:
    """Yield the configuration of every candidate of the variants."""
    return (candidate.config for variant in variants for candidate in variant.candidates)


@dataclass(frozen=True)
class Experiment:
    """Variants x seeds, and their common settings."""

    name: str
    description: str
    file: Path
    sources: Mapping[str, Source]
    roots: Roots
    variants: tuple[Variant, ...]
    seeds: tuple[int, ...]
    vary: tuple[str, ...]
    llms: Mapping[str, NamedLLM]
    table: TableOptions
    published: tuple[PublishedValue, ...]
    runtime: Runtime
    resolved: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """Remarks on the file, which results do not show; `notes` appear beside the results, too."""
    used_llms: frozenset[str] = frozenset()
    """Names of the LLMs that rows use."""
    files: tuple[Path, ...] = field(default=(), compare=False)
    """Each local file and folder that the file names, including itself."""
    is_data_folder_given: bool = False
    """Whether an option or environment variable, not the file, sets the data folder."""
    is_of_file: bool = field(default=True, compare=False)
    """Whether overrides change nothing but the runtime."""
    rows_of_file: frozenset[str] = frozenset()
    """Labels of the rows that overrides leave unchanged; empty if the whole file is unchanged."""
    precisions: tuple[GivenPrecision, ...] = field(default=(), compare=False)
    """The keys that set another precision than fp32."""
    document: Document = field(default=Document({}), repr=False, compare=False)
    """The long form of the file after overrides, with the location of each key."""

    def located(self, message: str) -> str:
        """Put the file and line of NAME before a message "NAME: ..." or "NAME at COMMIT: ...".

        Uses the first key whose value is NAME; without such a key, returns the message unchanged.
        """
        value = message.partition(": ")[0].partition(" at ")[0]
        paths = (path for path, text in texts_in(self.document.data) if text == value)
        location = next((self.document.location(path) for path in paths), "")
        return f"{location}: {message}" if location else message

    def is_seeded(self, variant: Variant) -> bool:
        """Return whether the seed affects a row; an unaffected row runs once."""
        return any(
            (config.trainer is not None and config.trainer.is_seeded) or (config.parts and self.vary)
            for config in configs_of([variant])
        )

    @property
    def audits(self) -> tuple[str, ...]:
        """The names of all audits, in order of first appearance."""
        return tuple(dict.fromkeys(audit.name for each in configs_of(self.variants) for audit in each.audits))

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The test sets of all variants, in order of first appearance."""
        plans = (plan for config in configs_of(self.variants) for plan in config.evaluations)
        names = [task for plan in plans for task in (*plan.tasks, *plan.if_found)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def provided_tasks(self) -> Mapping[str, TaskProvider]:
        """Test set -> the first evaluator that brings the test set's data."""
        found: dict[str, TaskProvider] = {}
        for plan in (plan for config in configs_of(self.variants) for plan in config.evaluations):
            if isinstance(plan.evaluator, TaskProvider):
                found = {**dict.fromkeys(plan.tasks, plan.evaluator), **found}
        return found
