"""The sections of an experiment file, as far as they are not a plug-in's own."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from synthbench.data.prepare import PrepareStep
from synthbench.reporting.options import TableOptions
from synthbench.runtime import Runtime
from synthbench.sources.models import SOURCE_TYPES, FileSource, TaskSource
from synthbench.sources.sandbox import SandboxSource

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", description="letters, digits, _ and -")]
Settings = dict[str, Any]


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed stands there twice; each is one run")
    return seeds


def _shape(source: Any) -> str | None:  # noqa: ANN401 - whatever stands in the file
    if not isinstance(source, dict):
        return None
    return next((f"by {key}" for key in SOURCE_TYPES if key in source), None)


AnySource = Annotated[
    Annotated[TaskSource, Tag("by task")]
    | Annotated[FileSource, Tag("by file")]
    | Annotated[SandboxSource, Tag("by sandbox")],
    Discriminator(
        _shape,
        custom_error_type="source",
        custom_error_message="Needs either `task:` or `file:` or `sandbox:`",
    ),
]


class Section(BaseModel):
    """Strict: an unknown key or a value of another type is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Corpora(Section):
    """Where the sources named by task come from."""

    origin: Literal["folder", "hub"] = "folder"
    folder: str | None = Field(None, description="data folder, relative to the file; --data goes before it")


class ExperimentSection(Section):
    """The top level of an experiment file."""

    experiment: Name
    description: str = ""
    corpora: Corpora = Corpora()
    sources: dict[Name, AnySource] = Field(default_factory=dict)
    defaults: Settings = Field(default_factory=dict)
    grid: dict[Name, Annotated[dict[Name, Settings], Field(min_length=1)]] = Field(default_factory=dict)
    variants: dict[Name, Settings | None] = Field(default_factory=dict)
    baseline: str | None = Field(None, description="name of the row that is the defaults without a patch")
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], Field(min_length=1), AfterValidator(_distinct)
    ] = (0,)
    table: TableOptions = TableOptions()
    runtime: Runtime = Runtime()


class RunSection(Section):
    """What defaults and variants describe: one run, but for its seed."""

    data: dict[Name, Settings] = Field(default_factory=dict)
    train: Settings
    evaluate: dict[Name, Settings] = Field(min_length=1)
    select: "SelectSection | None" = None


class SelectSection(Section):
    """Train one candidate for each combination of values; the best on dev alone is tested."""

    over: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(min_length=1)


class PartSection(Section):
    """One part of the training data: a source as it is, or what a method makes of sources."""

    source: Name | None = None
    method: Name | None = None
    sources: dict[Name, Name] = Field(default_factory=dict, description="the method's role -> source")
    prepare: tuple[PrepareStep, ...] = ()


class SelectionSection(Section):
    """Which checkpoint is kept: the one with the best mean score on these dev sources."""

    evaluator: Name
    sources: Annotated[tuple[Name, ...], Field(min_length=1)]


class TrainSection(Section):
    """The trainer and how its checkpoint is selected; the trainer's own keys stand beside these."""

    trainer: Name
    selection: SelectionSection | None = None


class EvaluateSection(Section):
    """One evaluator on one or more test sources; its own keys stand beside these."""

    evaluator: Name
    tasks: tuple[Name, ...] = ()
    if_found: tuple[Name, ...] = Field((), description="further tasks, left out where their data is missing")
    exclude: tuple[Name, ...] = Field((), description="sources whose pairs are dropped from every task")

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        if not self.tasks and not self.if_found:
            raise ValueError("needs `tasks:`, `if_found:` or both")
        return self


class SubstituteSection(Section):
    """Replacements for what a run names: pattern (as in shell globs) -> replacement."""

    models: dict[str, str] = Field(default_factory=dict)


class ProfileSection(Section):
    """A profile: how an experiment is run elsewhere or smaller, without touching its file."""

    description: str = ""
    experiment: Settings = Field(default_factory=dict, description="patch of the file's top level")
    run: Settings = Field(default_factory=dict, description="patch of every run, after its variant")
    substitute: SubstituteSection = SubstituteSection()
