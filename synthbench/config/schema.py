"""The sections of an experiment file, as far as they are not a plug-in's own."""

from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from synthbench.base.runtime import Runtime
from synthbench.config.llm import AnyLLM
from synthbench.config.problems import COMPONENT_PATTERN, NAME_PATTERN, ROW_NAME_PATTERN, TASK_PATTERN
from synthbench.config.table_options import TableOptions
from synthbench.models.pretrained import Prompts
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.models import SOURCE_TYPES, FileSource, TaskSource, WorldSource
from synthbench.worlds import NAME, WorldName

MOST_LETTERS = 100
MOST_SEEDS = 1_000
Name = Annotated[
    str, Field(pattern=NAME_PATTERN, max_length=MOST_LETTERS, description="letters, digits, _ and -")
]
ComponentName = Annotated[
    str,
    Field(
        pattern=COMPONENT_PATTERN,
        max_length=MOST_LETTERS,
        description="a plug-in's name, or FILE.py:CLASS for a class in a Python file beside the experiment",
    ),
]
TestName = Annotated[
    str,
    Field(
        pattern=TASK_PATTERN,
        max_length=MOST_LETTERS,
        description="a source, or a task of the evaluator's own",
    ),
]
RowName = Annotated[
    str,
    Field(
        pattern=ROW_NAME_PATTERN,
        max_length=MOST_LETTERS,
        description="letters, digits, _ and -, and dots between them",
    ),
]
Settings = dict[str, Any]
Varied = Literal["sample", "generation"]


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is listed twice; each is one run")
    return seeds


def _shape(source: Any) -> str | None:  # noqa: ANN401 - whatever the file holds
    if not isinstance(source, dict):
        return None
    return next((f"by {key}" for key in SOURCE_TYPES if key in source), None)


AnySource = Annotated[
    Annotated[TaskSource, Tag("by task")]
    | Annotated[FileSource, Tag("by file")]
    | Annotated[CorpusSource, Tag("by corpus")]
    | Annotated[WorldSource, Tag(f"by {NAME}")],
    Discriminator(
        _shape,
        custom_error_type="source",
        custom_error_message=f"Needs `task:`, `file:`, `corpus:` or `{NAME}:`",
    ),
]


class Section(BaseModel):
    """Strict: an unknown key or a value of another type is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Corpora(Section):
    """Where the sources named by task come from."""

    origin: Literal["folder", "hub"] = Field(
        "folder", description="SentEval's folders, or the Hugging Face hub at pinned commits"
    )
    folder: str | None = Field(None, description="data folder, relative to the file; --data goes before it")


class ExperimentSection(Section):
    """The top level of an experiment file."""

    experiment: Name = Field(description="the experiment's name, under which it is tracked and reported")
    description: str = Field("", description="one sentence for people; the table's caption if it has none")
    corpora: Corpora = Field(Corpora(), description="where the sources named by task come from")
    sources: dict[Name, AnySource] = Field(
        default_factory=dict, description="name -> data that rows may train on, select by or be tested on"
    )
    defaults: Settings = Field(default_factory=dict, description="the run that every row starts from")
    grid: dict[Name, Annotated[dict[RowName, Settings], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="axis -> value -> patch; every variant is crossed with every value; `variants` in a value"
        " patches single variants after their own patches",
    )
    variants: dict[RowName, Settings | None] = Field(
        default_factory=dict, description="row -> patch over the defaults"
    )
    baseline: RowName | None = Field(
        None, description="a name, no variant's, for the row that is the defaults without a patch"
    )
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, lt=2**32)], ...],
        Field(min_length=1, max_length=MOST_SEEDS),
        AfterValidator(_distinct),
    ] = Field((0,), description="every row is trained once with each")
    vary: tuple[Varied, ...] = Field(
        (),
        description="what a seed decides beside the training: the draw of sampled training sources, the"
        " generation of data; each seed then pays for its own",
    )
    llm: AnyLLM | None = Field(
        None,
        description=f"the LLM of all methods that use one: `{NAME}`, or one of the four sections below",
    )
    llms: dict[Name, AnyLLM] = Field(
        default_factory=dict,
        description="name -> LLM, instead of `llm` where there are several; what asks one says `llm: NAME`",
    )
    table: TableOptions = Field(TableOptions(), description="what the tables show, and how")
    runtime: Runtime = Field(Runtime(), description="device, threads and memory; changes no result")


class SelectSection(Section):
    """Train one candidate for each combination of values; the best on dev alone is tested."""

    over: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(
        min_length=1, description="path in data or train -> the values to try, all combined"
    )


class RunSection(Section):
    """What defaults and variants describe: one run, but for its seed."""

    aliases: dict[Name, Name] = Field(
        default_factory=dict,
        description="name -> the source that it stands for in this row, wherever the row names a source",
    )
    data: dict[Name, Settings] = Field(
        default_factory=dict,
        description="name -> part of the training data; all parts are trained on together",
    )
    train: Settings | None = Field(
        None,
        description="the trainer, its settings, and how its checkpoint is selected; a row that only has its"
        " data made or audited has neither `train` nor `evaluate`",
    )
    evaluate: dict[Name, Settings] = Field(
        default_factory=dict, description="name -> evaluator and its test sources"
    )
    audit: dict[Name, Settings] = Field(
        default_factory=dict, description="name -> part of the data whose labels are judged"
    )
    select: SelectSection | None = Field(
        None, description="try several values and keep what is best on dev; null: nothing to try"
    )


class PartRole(Section):
    """Another part of the data as the source of a method's role; it comes before this part in the file."""

    part: Name = Field(description="the part of `data` whose records the role takes")
    prepared: bool = Field(
        True, description="take its records after its prepare steps; false: before them, as they were made"
    )


class PartSection(Section):
    """One part of the training data: a source as it is, or what a method makes of sources."""

    source: Name | None = Field(None, description="the source that is taken as it is; or give `method`")
    method: ComponentName | None = Field(
        None, description="the method that makes the data; its settings are given beside it"
    )
    sources: dict[Name, Name | PartRole] = Field(
        default_factory=dict,
        description="the method's role -> source, or another part: `{part: NAME}`, `{part: NAME, prepared:"
        " false}` for its records before its prepare steps",
    )
    weight: float = Field(
        1.0,
        gt=0,
        le=100,
        description="how many times an epoch has each record of it; of a fraction, that share of the records",
    )
    loss_temperature: float | None = Field(
        None,
        gt=0,
        le=10,
        description="of the losses simcse and multiple-negatives, for its records; null: the trainer's",
    )
    train_on: bool = Field(
        True,
        description="false: the part is made for the roles of other parts only (or to select, or to be"
        " audited), and not trained on itself",
    )
    llm: Name | None = Field(
        None, description="which of `llms` the method asks; may be left out where there is one"
    )
    prepare: tuple[Settings, ...] = Field((), description="steps applied to the data, in this order")


class StepSection(Section):
    """One step of `prepare`; its settings are given beside these keys."""

    step: ComponentName = Field(description="the step")
    llm: Name | None = Field(
        None, description="which of `llms` the step asks; may be left out where there is one"
    )


class SelectionSection(Section):
    """Which checkpoint is kept: the one with the best mean score on this dev data."""

    evaluator: ComponentName = Field(description="the evaluator whose main score is compared")
    sources: tuple[Name, ...] = Field(
        (), description="dev sources; the mean of the scores on them, and on the parts, decides"
    )
    parts: tuple[Name, ...] = Field(
        (), description="parts of `data`, of which the split dev selects (the prepare step `split` makes one)"
    )

    @model_validator(mode="after")
    def _has_dev_data(self) -> Self:
        if not self.sources and not self.parts:
            raise ValueError("needs `sources:`, `parts:` or both")
        return self


class SeedOptimizationSection(Section):
    """Several trainings that differ in their seed alone, of which the best on dev is finished."""

    seeds: int = Field(5, ge=2, le=1000, description="trainings that begin, for each seed of the experiment")
    at: float = Field(
        0.2, gt=0, lt=1, description="the share of the steps after which dev decides which one goes on"
    )


class TrainSection(Section):
    """The trainer and how its checkpoint is selected; the trainer's own keys are given beside these."""

    trainer: ComponentName = Field(description="the trainer; its settings are given beside it")
    selection: SelectionSection | None = Field(
        None, description="keep the checkpoint that is best on dev; null: keep the last"
    )
    seed_optimization: SeedOptimizationSection | None = Field(
        None, description="begin with several seeds and finish the best on dev; null: one seed"
    )
    starts_from: str | None = Field(
        None,
        min_length=1,
        description="another variant, whose trained model with the same seed this training starts from;"
        " null: the base as it is",
    )


class EvaluateSection(Section):
    """One evaluator on one or more test sources; its own keys are given beside these."""

    evaluator: ComponentName = Field(description="the evaluator; its settings are given beside it")
    tasks: tuple[TestName, ...] = Field(
        (), description="test sources, or tasks that the evaluator brings; their data must be there"
    )
    if_found: tuple[Name, ...] = Field((), description="further tasks, left out where their data is missing")
    exclude: tuple[Name, ...] = Field((), description="sources whose pairs are dropped from every task")
    train: tuple[Name, ...] = Field(
        (), description="sources that the evaluator itself learns from, such as a classifier on embeddings"
    )
    dev: tuple[Name, ...] = Field(
        (), description="sources on which the evaluator chooses, such as a threshold"
    )
    prompts: Prompts | None = Field(
        None,
        description="what the model reads before these texts, in place of its own prompts; `{}`: nothing",
    )

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        if not self.tasks and not self.if_found:
            raise ValueError("needs `tasks:`, `if_found:` or both")
        return self


class PublishedAuditSection(Section):
    """A paper's own audit, whose shares are shown beside ours."""

    file: str = Field(min_length=1, description="the published table, a CSV; relative to the experiment file")
    rows: dict[str, str] = Field(min_length=1, description="judged label -> the published row")
    columns: dict[str, str] = Field(min_length=1, description="intended label -> the published column")


class AuditSection(Section):
    """What was intended against what is judged, of one part of the data."""

    part: Name = Field(description="the part of `data`, as it is trained on: after its prepare steps")
    per_label: int | None = Field(
        100, ge=0, description="judged at random of each intended label, all where there are fewer; 0: all"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="decides which ones, and a sheet's order")
    oracle: WorldName | None = Field(
        None, description=f"{NAME}: its grammar judges, which knows its own sentences only; null: people do"
    )
    sheets: tuple[str, ...] = Field(
        (),
        description="answered sheets, one for each annotator, relative to the experiment file; none yet: the"
        " run writes a blank one",
    )

    published: PublishedAuditSection | None = Field(
        None, description="a paper's audit, printed beside this one; null: none"
    )

    @model_validator(mode="after")
    def _has_one_judge(self) -> Self:
        if self.oracle is not None and self.sheets:
            raise ValueError("has both `oracle:` and `sheets:`; one of them judges")
        if len({PurePath(sheet).stem for sheet in self.sheets}) < len(self.sheets):
            raise ValueError("annotators are named after their sheets; give each sheet a name of its own")
        return self


class SubstituteSection(Section):
    """Replacements for what a run names: pattern (as in shell globs) -> replacement."""

    models: dict[str, str] = Field(
        default_factory=dict,
        description="pattern of `model:` -> the model used instead; the first match counts",
    )
    roles: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="role -> patterns that go before those of `models`; a role is the key under which a"
        " method configures a model, with hyphens, or else a trainer's or a method's name",
    )
    tasks: dict[str, Settings] = Field(
        default_factory=dict,
        description="pattern of a source's TASK/SPLIT, HUB/FILE/KIND or data:PATH/KIND -> the source used"
        " instead, with the split, sample and `as` of the first; the first match counts",
    )
    llm: WorldName | None = Field(
        None, description="is asked instead of the LLM that the file names; null: as the file says"
    )
    oracle: WorldName | None = Field(
        None, description="judges every audit instead of people and their sheets; null: as the file says"
    )


class ProfileSection(Section):
    """A profile: how an experiment is run elsewhere or smaller, without touching its file."""

    description: str = Field("", description="one sentence for people")
    experiment: Settings = Field(default_factory=dict, description="patch of the file's top level")
    experiments: dict[Name, Settings] = Field(
        default_factory=dict,
        description="name -> patch of the top level of this experiment alone, after that of all",
    )
    run: Settings = Field(default_factory=dict, description="patch of every run, after its variant")
    substitute: SubstituteSection = Field(
        SubstituteSection(), description="other models and data instead of the file's"
    )
