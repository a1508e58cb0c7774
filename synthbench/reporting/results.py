"""What a finished experiment is made of, as the tracker keeps it and the tables read it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from synthbench.auditing.report import Audit
from synthbench.reporting.published import PublishedAudit, PublishedValue
from synthbench.reporting.statistics.item_noise import ItemNoise

NORMALISED = "normalised"


class Overlap(BaseModel):
    """One test set, as it was scored, and the training data of one run.

    The checks are those of `synthbench.data.contamination`: exact, normalised, 13-gram, near-duplicate.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    task: str
    items: str = Field(description="what is counted: pairs, queries or sentences")
    num_items: int
    sharing: dict[str, int] = Field(description="check -> items of which a sentence was found")
    whole: dict[str, int] = Field(description="check -> items of which every sentence was found")
    as_pairs: int = Field(description="items with a pair that is a pair of the training data, normalised")
    by_part: dict[str, int] = Field(description="part of the data -> items of which a sentence, normalised")


class _Excerpt(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordExcerpt(_Excerpt):
    """One record; long texts are cut."""

    texts: tuple[tuple[str, str], ...] = Field(description="(name, text), in the order of the columns")
    score: float | None = None
    origin: tuple[tuple[str, str], ...] = Field(
        (), description="(column, value) that say where it comes from, as far as anything is known"
    )


class DataExcerpt(_Excerpt):
    """One data set, which parts of several rows may have."""

    stage: str
    records: tuple[RecordExcerpt, ...] = ()
    failures: tuple[tuple[str, int], ...] = Field((), description="(reason, number), the most frequent first")
    revisions: tuple[tuple[str, str], ...] = Field((), description="(model or data set, commit or hash)")


class SharedRecords(_Excerpt):
    """What some data sets, which do not differ here, have for one sentence; `num_records` in all."""

    stages: tuple[str, ...]
    records: tuple[RecordExcerpt, ...]
    num_records: int


class SharedSentence(_Excerpt):
    """A sentence that records of several data sets were made of."""

    sentence: str
    found: tuple[SharedRecords, ...]


Revisions = tuple[tuple[str, str], ...]
"""(Model or file, its commit or content hash)."""


class _Result(BaseModel):
    # A diverged training has NaN losses; as null they could not be read again.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class TaskScores(_Result):
    """One model on one test set; `num_dropped` pairs of the set were left out as leaks."""

    task: str
    evaluator: str
    main_score: str
    title: str = Field("", description="the main score in words; empty: its name says it")
    scores: dict[str, float] = Field(description="named scores, in [-1, 1] or [0, 1]; tables print x 100")
    num_items: int
    num_dropped: int = 0
    # These three are left out where they are not known, as in results from before they were.
    settings: dict[str, Any] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="how the evaluator was set, defaults among them",
    )
    split: str = Field(
        "",
        exclude_if=lambda value: not value,
        description="train, dev or test: what the test set was taken as",
    )
    drawn: str = Field(
        "",
        exclude_if=lambda value: not value,
        description="how the test set's items were drawn by chance, if they were",
    )
    stage: str = Field(description="identity of the evaluation stage")
    items_file: str = Field(
        "", exclude=True, description="Parquet file of per-item scores; its place is no part of the result"
    )


class Ingredient(_Result):
    """One stage that data were made from: a source, a model that was trained for them, or other data.

    `role` is the one that it has for what it was made for first.
    """

    role: str
    kind: str = Field(description="of the stage: source, train or generate")
    name: str = Field(description="of the source, the trainer or the method")
    of: tuple[str, ...] = Field((), description="the roles of what it was made from itself")
    num_records: int | None = Field(None, description="of data that the store holds")
    content_hash: str = ""
    dev_score: float | None = Field(
        None,
        exclude_if=lambda value: value is None,
        description="of a model whose checkpoint dev chose, in [-1, 1]",
    )
    revisions: Revisions = Field((), description="of what it read: the base model, the source's files")
    stage: str


class DatasetSummary(_Result):
    """One part of a run's training data."""

    part: str
    kind: str
    method: str = ""
    num_records: int
    num_failures: int = 0
    dropped: dict[str, int] = Field(default_factory=dict)
    tokens: dict[str, int] = Field(default_factory=dict)
    cost_usd: float = 0.0
    # These six are left out where there are none, so that results from before they were stay the same.
    llm: str = Field("", exclude_if=lambda value: not value, description="the LLM that was asked for it")
    notes: tuple[str, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="what must be known beside every table, a sentence each",
    )
    measured: dict[str, float] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="what the method found on its way, by what it is",
    )
    score_counts: tuple[int, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="how many scores each hundredth of [0, 1] holds, where a figure asks for it",
    )
    figures: dict[str, float] = Field(
        default_factory=dict,
        exclude_if=lambda value: not value,
        description="what the data are like: see `synthbench.data.quality.key_figures`",
    )
    made_of: tuple[Ingredient, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="sources, trained models and other data behind it, each once, the nearest first",
    )
    content_hash: str
    stage: str
    folder: str = Field("", description="where it is kept, below the home of the store")


class RunResult(_Result):
    """One variant with one seed."""

    variant: str
    axes: dict[str, str] = Field(default_factory=dict, description="grid axis -> name of its value")
    seed: int
    is_seeded: bool = Field(True, description="whether the seed makes a difference; if not, there is one run")
    identity: str
    parameters: dict[str, Any] = Field(default_factory=dict, description="dotted configuration paths")
    is_of_file: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="whether overrides left the row as the file has it; False, too, where that is not known",
    )
    chosen: dict[str, Any] = Field(default_factory=dict, description="what a selection on dev chose")
    num_starts: int = Field(1, description="trainings that began, of which dev chose the one that went on")
    paused_at: float = Field(1.0, description="after which share of the steps dev chose")
    scores: tuple[TaskScores, ...]
    datasets: tuple[DatasetSummary, ...] = ()
    overlaps: tuple[Overlap, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="what of its test sets stands in its training data",
    )
    history: tuple[tuple[int, str, float], ...] = Field((), description="(step, name, value) of the training")
    dev_score: float | None = None
    num_steps: int = 0
    seconds: float = Field(0.0, description="computing time of the run's own stages when they were executed")
    revisions: Revisions = Field(
        (), exclude_if=lambda value: not value, description="of what the training read: its base model"
    )
    model_folder: str = Field("", description="where the trained model is kept, below the home of the store")


class AuditResult(_Result):
    """One audit of one part of the data, which are those of one row or several, and of all their seeds.

    `rows` tell the seed where other seeds have other data. `audit` is None as long as nobody has judged.
    """

    name: str
    part: str
    rows: tuple[str, ...] = Field(min_length=1)
    stage: str = Field(description="identity of the audit stage")
    num_items: int = Field(description="judged, or to be judged")
    audit: Audit | None = None
    published: PublishedAudit | None = None

    @property
    def title(self) -> str:
        """Audit, part and rows: "labels of x2 (dino, dino-unsmoothed)"."""
        return f"{self.name} of {self.part} ({', '.join(self.rows)})"


class CostResult(_Result):
    """What one stage asked an LLM for, as the ledger has it: what was answered, and paid.

    Answers that the cache held already were paid for by another stage, and are in none of the numbers. Of
    what is in doubt (killed or lost on its way) nobody knows whether it was paid; `in_doubt_usd` is the most.
    """

    method: str
    part: str
    rows: tuple[str, ...] = Field(min_length=1, description="the rows whose data these are")
    llm: str
    num_records: int = Field(description="records that came of it, failures not among them")
    num_requests: int
    prompt_tokens: int
    completion_tokens: int
    usd: float
    in_doubt_usd: float = 0.0
    is_priced: bool = Field(True, description="whether anybody knows what a token costs")
    stage: str


class ExperimentResult(_Result):
    """All runs of one experiment file, or of what overrides made of it, and what it takes to print them."""

    experiment: str
    description: str = ""
    # These two are left out where they are not known or not so, as in results from before they were.
    file: str = Field(
        "",
        exclude_if=lambda value: not value,
        description="the experiment file, below the folder that it was run in, else its name alone",
    )
    is_data_folder_given: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="whether data were read from a folder that the file does not name",
    )
    identity: str = Field(description="hash of the identities of all runs, and of the overrides")
    overrides: tuple[str, ...] = Field((), description="what made it another than its file's, as typed")
    request: str = Field("", description="hash of the file's content and the overrides, runtime left out")
    varied: tuple[str, ...] = Field(("training",), description="what was done anew for every seed")
    source: str = Field("", description="the resolved experiment as YAML")
    table: dict[str, Any] = Field(default_factory=dict, description="the experiment's table options")
    published: tuple[PublishedValue, ...] = Field((), description="a paper's figures for the table's rows")
    baseline: str = Field(
        "",
        exclude_if=lambda value: not value,
        description="the row of the unpatched defaults, if it has a name",
    )
    tasks: tuple[str, ...] = Field((), description="test sets in the order of the file")
    runs: tuple[RunResult, ...]
    item_noise: tuple[ItemNoise, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="what the test items do to each comparison of rows",
    )
    audits: tuple[AuditResult, ...] = ()
    costs: tuple[CostResult, ...] = Field((), exclude_if=lambda value: not value)
    excerpts: tuple[DataExcerpt, ...] = Field(
        (), exclude_if=lambda value: not value, description="records of the training data of each row"
    )
    side_by_side: tuple[SharedSentence, ...] = Field(
        (),
        exclude_if=lambda value: not value,
        description="what several of these data sets have for the same sentence",
    )
    revisions: Revisions = Field(
        (), exclude_if=lambda value: not value, description="of all models and data that any stage read"
    )
    failures: tuple[str, ...] = ()
    pending: tuple[str, ...] = Field((), description="what comes on another day")
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)

    @property
    def has_scores(self) -> bool:
        """Whether there is a table of scores to show: there is none where data are only made or audited."""
        counted = any(data.score_counts for run in self.runs for data in run.datasets)
        return bool(self.tasks) or not (self.audits or self.costs or counted)

    @property
    def title(self) -> str:
        """The experiment's name with the overrides: "augsbert_stsb --seeds 0"."""
        return " ".join((self.experiment, *self.overrides))
