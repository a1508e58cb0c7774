"""Schema of an experiment file's sections, without the plug-ins' own settings."""

from pathlib import PurePath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from synthbench.base.runtime import Runtime
from synthbench.config.llm import AnyLLM
from synthbench.config.problems import COMPONENT_PATTERN, NAME_PATTERN, ROW_NAME_PATTERN, TASK_PATTERN
from synthbench.config.table_options import TableOptions
from synthbench.models.pretrained import Prompts
from synthbench.sources.corpora import CorpusSource
from synthbench.sources.documents import DocumentsSource
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
        description="a source, or one of the evaluator's own tasks",
    ),
]
RowName = Annotated[
    str,
    Field(
        pattern=ROW_NAME_PATTERN,
        max_length=MOST_LETTERS,
        description="letters, digits, _ and -, with dots in between",
    ),
]
Settings = dict[str, Any]
Varied = Literal["sample", "generation"]


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(seeds)) < len(seeds):
        raise ValueError("a seed is listed twice; each is one run")
    return seeds


GivenSeeds = Annotated[
    tuple[Annotated[int, Field(ge=0, strict=True)], ...],
    Field(max_length=MOST_SEEDS),
    AfterValidator(_distinct),
]
"""Seeds of `--seeds`, which may be larger than those of a file."""


def _shape(source: Any) -> str | None:  # noqa: ANN401 - whatever the file holds
    if not isinstance(source, dict):
        return None
    return next((f"by {key}" for key in SOURCE_TYPES if key in source), None)


AnySource = Annotated[
    Annotated[TaskSource, Tag("by task")]
    | Annotated[FileSource, Tag("by file")]
    | Annotated[CorpusSource, Tag("by corpus")]
    | Annotated[DocumentsSource, Tag("by documents")]
    | Annotated[WorldSource, Tag(f"by {NAME}")],
    Discriminator(
        _shape,
        custom_error_type="source",
        custom_error_message=f"Needs `task:`, `file:`, `corpus:`, `documents:` or `{NAME}:`",
    ),
]


class Section(BaseModel):
    """Base of all sections. Unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Corpora(Section):
    """Where the data of tasks come from."""

    origin: Literal["folder", "hub"] | None = Field(
        None,
        description="SentEval's folders, or the Hugging Face hub at pinned commits. Default: the data folder"
        " if there is one, else the hub",
    )
    folder: str | None = Field(
        None, description="data folder, relative to the experiment file; --data overrides this key"
    )


class ExperimentSection(Section):
    """The top level of an experiment file."""

    experiment: Name = Field(description="the experiment's name in tracking and reports")
    description: str = Field("", description="one sentence; the default caption of the table")
    corpora: Corpora = Field(Corpora(), description="where the data of tasks come from")
    sources: dict[Name, AnySource] = Field(
        default_factory=dict, description="name -> data for training, selection or tests"
    )
    defaults: Settings = Field(default_factory=dict, description="the run that every row starts from")
    grid: dict[Name, Annotated[dict[RowName, Settings], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="axis -> value -> patch; every variant is combined with every value. `variants` in a"
        " value patches single variants, after their own patches",
    )
    variants: dict[RowName, Settings | None] = Field(
        default_factory=dict, description="row -> patch over the defaults"
    )
    baseline: RowName | None = Field(
        None, description="name of the row that consists of the defaults alone; not a variant's name"
    )
    seeds: Annotated[
        tuple[Annotated[int, Field(ge=0, lt=2**32)], ...],
        Field(min_length=1, max_length=MOST_SEEDS),
        AfterValidator(_distinct),
    ] = Field((0,), description="each row runs once per seed")
    vary: tuple[Varied, ...] = Field(
        (),
        description="what each seed changes besides the training. sample: the samples drawn from training"
        " sources; generation: the generated data, which every seed then generates and pays for",
    )
    llm: AnyLLM | None = Field(
        None,
        description=f"the LLM of all methods that use one: `{NAME}`, or one of the four sections below",
    )
    llms: dict[Name, AnyLLM] = Field(
        default_factory=dict,
        description="name -> LLM: several instead of one `llm`; methods and steps choose with `llm: NAME`",
    )
    table: TableOptions = Field(TableOptions(), description="content and layout of the tables")
    runtime: Runtime = Field(
        Runtime(), description="device, threads and memory; changes results by rounding alone"
    )


class SelectSection(Section):
    """Train a candidate for each combination of values; test only the best on dev."""

    over: dict[str, Annotated[tuple[Any, ...], Field(min_length=2)]] = Field(
        min_length=1, description="path in data or train -> values to try, in all combinations"
    )


class RunSection(Section):
    """One run without its seed: the schema of defaults and variants."""

    aliases: dict[Name, Name] = Field(
        default_factory=dict,
        description="name -> source that replaces this name everywhere in the row",
    )
    data: dict[Name, Settings] = Field(
        default_factory=dict,
        description="name -> part of the training data; the model is trained on all parts together",
    )
    train: Settings | None = Field(
        None,
        description="the trainer, its settings, and how its checkpoint is selected. A row that only generates"
        " or audits data has neither `train` nor `evaluate`",
    )
    evaluate: dict[Name, Settings] = Field(
        default_factory=dict, description="name -> evaluator and its test sources"
    )
    audit: dict[Name, Settings] = Field(
        default_factory=dict, description="name -> audit of the labels of one part"
    )
    select: SelectSection | None = Field(
        None, description="try several values and keep the best on dev; null: none"
    )


class PartRole(Section):
    """Another part of the data as the source of a method's role; the file must list that part first."""

    part: Name = Field(description="the part of `data` whose records the role reads")
    prepared: bool = Field(
        True, description="read the part after its prepare steps; false: before these steps"
    )


class PartSection(Section):
    """One part of the training data: a source unchanged, or a method's output."""

    source: Name | None = Field(None, description="the source, used unchanged; or set `method`")
    method: ComponentName | None = Field(
        None, description="the method that generates the data; its settings are keys beside this one"
    )
    sources: dict[Name, Name | PartRole] = Field(
        default_factory=dict,
        description="the method's role -> source, or another part: `{part: NAME}`; `{part: NAME, prepared:"
        " false}` reads the part before its prepare steps",
    )
    weight: float = Field(
        1.0,
        gt=0,
        le=100,
        description="how often an epoch has each record; 0.5: half of the records; 1.5: all records, half of"
        " them twice",
    )
    loss_temperature: float | None = Field(
        None,
        gt=0,
        le=10,
        description="temperature of the losses simcse and multiple-negatives for this part's records; null:"
        " the trainer's temperature",
    )
    train_on: bool = Field(
        True,
        description="false: don't train on the part; it only serves other parts' roles, selection or audits",
    )
    llm: Name | None = Field(
        None, description="which of `llms` the method uses; optional if the file has only one LLM"
    )
    prepare: tuple[Settings, ...] = Field((), description="steps applied to the data, in order")


class StepSection(Section):
    """One step of `prepare`; the step's settings are further keys here."""

    step: ComponentName = Field(description="the step")
    llm: Name | None = Field(
        None, description="which of `llms` the step uses; optional if the file has only one LLM"
    )


class SelectionSection(Section):
    """Checkpoint selection: the checkpoint with the best mean score on dev is kept."""

    evaluator: ComponentName = Field(description="the evaluator whose main score is compared")
    sources: tuple[Name, ...] = Field(
        (), description="dev sources; the mean score over these and `parts` decides"
    )
    parts: tuple[Name, ...] = Field(
        (), description="parts of `data` whose dev records are scored (the prepare step `split` makes them)"
    )

    @model_validator(mode="after")
    def _has_dev_data(self) -> Self:
        if not self.sources and not self.parts:
            raise ValueError("needs `sources:`, `parts:` or both")
        return self


class SeedOptimizationSection(Section):
    """Start several trainings that differ only in their seed; finish the best on dev."""

    seeds: int = Field(5, ge=2, le=1000, description="number of trainings started per seed of the experiment")
    at: float = Field(
        0.2,
        gt=0,
        lt=1,
        description="share of the training steps after which only the training with the best dev score"
        " continues",
    )


class TrainSection(Section):
    """The trainer and its checkpoint selection; the trainer's settings are further keys here."""

    trainer: ComponentName = Field(description="the trainer; its settings are keys beside this one")
    selection: SelectionSection | None = Field(
        None, description="keep the best checkpoint on dev; null: keep the last"
    )
    seed_optimization: SeedOptimizationSection | None = Field(
        None, description="start several seeds and finish the best on dev; null: one seed"
    )
    starts_from: str | None = Field(
        None,
        min_length=1,
        description="variant whose trained model of the same seed this training starts from; null: the base",
    )


class EvaluateSection(Section):
    """One evaluator on one or more test sources; the evaluator's settings are further keys here."""

    evaluator: ComponentName = Field(description="the evaluator; its settings are keys beside this one")
    tasks: tuple[TestName, ...] = Field(
        (), description="test sources, or tasks that the evaluator brings; missing data are an error"
    )
    if_found: tuple[Name, ...] = Field((), description="further tasks, skipped if their data are missing")
    exclude: tuple[Name, ...] = Field((), description="sources whose pairs are dropped from every task")
    train: tuple[Name, ...] = Field(
        (), description="training sources of the evaluator itself, such as for a classifier on embeddings"
    )
    dev: tuple[Name, ...] = Field(
        (), description="dev sources on which the evaluator tunes its own settings, such as a threshold"
    )
    prompts: Prompts | None = Field(
        None,
        description="prompts put before this evaluation's texts; null: the model's own prompts; `{}`: none",
    )

    @model_validator(mode="after")
    def _has_tasks(self) -> Self:
        if not self.tasks and not self.if_found:
            raise ValueError("needs `tasks:`, `if_found:` or both")
        return self


class PublishedAuditSection(Section):
    """A paper's audit, shown beside this experiment's audit."""

    file: str = Field(min_length=1, description="the published table, a CSV; relative to the experiment file")
    rows: dict[str, str] = Field(min_length=1, description="judged label -> the published row")
    columns: dict[str, str] = Field(min_length=1, description="intended label -> the published column")


class AuditSection(Section):
    """An audit of one part of the data: intended against judged labels."""

    part: Name = Field(description="the part of `data`; audited after its prepare steps")
    per_label: int | None = Field(
        100, ge=0, description="random sample per intended label (all if there are fewer); 0: all records"
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the sample, and of a sheet's order")
    oracle: WorldName | None = Field(
        None,
        description=f"{NAME}: the generated world's grammar judges, and knows only that world's sentences;"
        " null: people or gold scores judge",
    )
    sheets: tuple[str, ...] = Field(
        (),
        description="answered sheets, one per annotator, relative to the experiment file; empty: the run"
        " writes a blank sheet",
    )

    published: PublishedAuditSection | None = Field(
        None, description="a paper's audit, printed beside this one; null: none"
    )
    gold: Name | None = Field(
        None,
        description="another part of `data` with scored pairs of the same texts. The report compares all"
        " labels with these scores; the least label of a positive pair is tuned on the gold part's split"
        " `dev`",
    )
    positive: float = Field(
        0.5, gt=0.0, le=1.0, description="with `gold`: least gold score of a positive pair"
    )

    @model_validator(mode="after")
    def _has_one_judge(self) -> Self:
        judges = {"oracle": self.oracle, "sheets": self.sheets, "gold": self.gold}
        given = [f"`{name}:`" for name, judge in judges.items() if judge]
        if len(given) > 1:
            raise ValueError(f"has both {' and '.join(given)}; one of them judges")
        if self.gold is not None and self.gold == self.part:
            raise ValueError("gold: the part can't judge itself")
        if len({PurePath(sheet).stem for sheet in self.sheets}) < len(self.sheets):
            raise ValueError("annotators are named after their sheets; give each sheet a name of its own")
        return self


class SubstituteSection(Section):
    """Replacements of models and data: pattern (a shell glob) -> replacement."""

    models: dict[str, str] = Field(
        default_factory=dict,
        description="pattern of `model:` -> replacement; the first match counts",
    )
    roles: dict[str, dict[str, str]] = Field(
        default_factory=dict,
        description="role -> patterns that override `models`. A role is the name of a trainer or method, or"
        " the key under which a method configures a model, written with hyphens: `cross-encoder`",
    )
    tasks: dict[str, Settings] = Field(
        default_factory=dict,
        description="pattern of a source's TASK/SPLIT, HUB/FILE/KIND or data:PATH/KIND -> replacement, which"
        " keeps the source's split, sample and `as`; the first match counts",
    )
    llm: WorldName | None = Field(
        None, description="LLM that replaces every LLM of the file; null: keep the file's LLMs"
    )
    oracle: WorldName | None = Field(
        None, description="oracle that replaces people in every audit; null: as in the file"
    )


class ProfileSection(Section):
    """A profile: changes to run an experiment elsewhere or smaller, without editing its file."""

    description: str = Field("", description="one sentence about the profile")
    experiment: Settings = Field(default_factory=dict, description="patch of the file's top level")
    experiments: dict[Name, Settings] = Field(
        default_factory=dict,
        description="experiment's name -> patch of its top level, applied after the patch `experiment`",
    )
    run: Settings = Field(
        default_factory=dict, description="patch of every run, applied after the variant's patch"
    )
    substitute: SubstituteSection = Field(
        SubstituteSection(), description="other models and data instead of the file's"
    )
