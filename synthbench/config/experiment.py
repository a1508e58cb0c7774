"""A validated experiment: what to run, with every plug-in found and configured."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from synthbench.base.frozen import in_identity
from synthbench.base.runtime import Runtime
from synthbench.config.llm import NamedLLM
from synthbench.config.precisions import GivenPrecision
from synthbench.config.published_tables import PublishedAudit, PublishedValue
from synthbench.config.schema import PartRole
from synthbench.config.table_options import TableOptions
from synthbench.models.pretrained import Prompts
from synthbench.plugins.contracts import Evaluator, Method, Step, Trainer
from synthbench.plugins.task_providers import TaskProvider
from synthbench.sources.description import Roots
from synthbench.sources.models import Source


@dataclass(frozen=True)
class PrepareStep:
    """A step by the name under which the file knows it."""

    name: str
    plugin: Step
    llm: NamedLLM | None = None
    """The LLM that it asks, if it asks one."""

    def identity(self) -> Mapping[str, Any]:
        """Return name, version and settings: all that decides what the step does."""
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
    """The LLM that the method asks, if it asks one."""
    weight: float = 1.0
    """How many times an epoch has each of its records."""
    temperature: float | None = None
    """The contrastive loss's for its records; None: the trainer's."""
    train_on: bool = True
    """Whether it is trained on itself; if not, it is there for others that are made from it."""


@dataclass(frozen=True)
class Selection:
    """How a checkpoint is selected: an evaluator's main score, averaged over dev data.

    That are whole sources, and of `parts` of the training data the records of the split dev.
    """

    evaluator_name: str
    evaluator: Evaluator
    sources: tuple[str, ...]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeedOptimization:
    """So many trainings begin; after the share `at` of their steps the best on dev goes on alone."""

    seeds: int
    at: float


@dataclass(frozen=True)
class EvaluationPlan:
    """An evaluator and the test sources that it scores; it learns from the sources in `train` and `dev`."""

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
        """The sources whose data may be missing: what is learnt from, too, where no task must be there."""
        return (*self.if_found, *(() if self.tasks else (*self.train, *self.dev)))


@dataclass(frozen=True)
class AuditPlan:
    """A part of the data whose labels are judged: by an oracle, in answered sheets, or not judged yet."""

    name: str
    part: str
    per_label: int | None
    seed: int
    oracle: str | None
    sheets: tuple[Path, ...]
    published: PublishedAudit | None = None


@dataclass(frozen=True)
class Start:
    """The training that another one starts from: of one candidate, or of several among which dev chooses."""

    label: str = field(compare=False)
    candidates: "tuple[Candidate, ...]"


@dataclass(frozen=True)
class RunConfig:
    """One row of the comparison before its seed is set; without a trainer it ends with its audits."""

    parts: tuple[Part, ...]
    trainer_name: str
    trainer: Trainer | None
    selection: Selection | None
    evaluations: tuple[EvaluationPlan, ...]
    audits: tuple[AuditPlan, ...]
    parameters: Mapping[str, Any]
    seed_optimization: SeedOptimization | None = None
    starts_from: str = ""
    """The variant whose trained model the training starts from; "": it starts from its base."""
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
    """Whether overrides leave the row as the file has it."""

    @property
    def label(self) -> str:
        """The variant's name with its axis values."""
        return row_label(self.name, self.axes)


def configs_of(variants: Iterable[Variant]) -> Iterator[RunConfig]:
    """Yield the configuration of every candidate of rows."""
    return (candidate.config for variant in variants for candidate in variant.candidates)


def row_label(name: str, axes: Mapping[str, str]) -> str:
    """Return a row's name with its axis values: "augsbert-bm25 [base=static]"."""
    values = ", ".join(f"{axis}={value}" for axis, value in axes.items())
    return f"{name} [{values}]" if values else name


@dataclass(frozen=True)
class Experiment:
    """Variants x seeds, and what they share."""

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
    """For who looks at the file; `notes` are also for who reads the results."""
    used_llms: frozenset[str] = frozenset()
    """Names of the LLMs that rows ask."""
    files: tuple[Path, ...] = field(default=(), compare=False)
    """Each file and folder of this machine that the file names, itself among them."""
    is_data_folder_given: bool = False
    """Whether an option or a variable names it, not the file."""
    is_of_file: bool = field(default=True, compare=False)
    """Whether overrides leave all as the file has it, but for the runtime."""
    rows_of_file: frozenset[str] = frozenset()
    """Labels of the rows that overrides leave as the file has them; empty if that is all of it."""
    precisions: tuple[GivenPrecision, ...] = field(default=(), compare=False)
    """The keys that ask for another precision than fp32."""

    def is_seeded(self, variant: Variant) -> bool:
        """Tell whether a seed makes a difference to a row; if not, it is run once."""
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
        """Every test set that some variant names, in order of first appearance."""
        plans = (plan for config in configs_of(self.variants) for plan in config.evaluations)
        names = [task for plan in plans for task in (*plan.tasks, *plan.if_found)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def provided_tasks(self) -> Mapping[str, TaskProvider]:
        """The test sets that an evaluator brings, each with the first evaluator that brings it."""
        found: dict[str, TaskProvider] = {}
        for plan in (plan for config in configs_of(self.variants) for plan in config.evaluations):
            if isinstance(plan.evaluator, TaskProvider):
                found = {**dict.fromkeys(plan.tasks, plan.evaluator), **found}
        return found
