"""The result of an experiment, as tracked; reports are made from it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from synthbench.auditing.report import Audit
from synthbench.base.frozen import added_field
from synthbench.config.published_tables import PublishedAudit, PublishedValue
from synthbench.registration.record import Registered
from synthbench.statistics.item_noise import ItemNoise

NORMALISED = "normalised"
Revisions = tuple[tuple[str, str], ...]
"""(Model or file, its commit or content hash)."""


class _Result(BaseModel):
    # A diverged training has NaN losses; written as null, they could not be read again.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


class Overlap(_Result):
    """Counts of a test set's scored items that share sentences with a run's training data.

    The checks, as in `synthbench.data.contamination`: exact, normalised, 13-gram, near-duplicate.
    """

    task: str
    items: str = Field(description="unit of the counts: pairs, queries or sentences")
    num_items: int
    sharing: dict[str, int] = Field(description="check -> number of items with any sentence in training data")
    whole: dict[str, int] = Field(description="check -> number of items with all sentences in training data")
    as_pairs: int = Field(description="number of items that share a normalised pair with the training data")
    by_part: dict[str, int] = Field(
        description="part of the data -> number of items that share a normalised sentence"
    )


class RecordExcerpt(_Result):
    """One record; long texts are truncated."""

    texts: tuple[tuple[str, str], ...] = Field(description="(name, text), in the order of the columns")
    score: float | None = None
    origin: tuple[tuple[str, str], ...] = Field((), description="(column, value) of the record's origin")


class DataExcerpt(_Result):
    """Sample records of one data set; several rows may use the data set."""

    stage: str
    records: tuple[RecordExcerpt, ...] = ()
    failures: tuple[tuple[str, int], ...] = Field((), description="(reason, number), most frequent first")
    revisions: Revisions = ()


class SharedRecords(_Result):
    """A few of a sentence's `num_records` records; the few and the number are equal in all of `stages`."""

    stages: tuple[str, ...]
    records: tuple[RecordExcerpt, ...]
    num_records: int


class SharedSentence(_Result):
    """A sentence for which several data sets have records."""

    sentence: str
    found: tuple[SharedRecords, ...]


class TaskScores(_Result):
    """The scores of one model on one test set; `num_dropped` items of the set were left out as leaks."""

    task: str
    evaluator: str
    main_score: str
    title: str = Field("", description="the main score in words; empty: its name is enough")
    scores: dict[str, float] = Field(description="named scores, in [-1, 1] or [0, 1]; tables print x 100")
    num_items: int
    num_dropped: int = 0
    settings: dict[str, Any] = added_field({}, "the evaluator's settings, with defaults")
    split: str = added_field("", "split that the items are from: train, dev or test")
    drawn: str = added_field("", "how items were sampled from the test set; empty: all items")
    stage: str = Field(description="identity of the evaluation stage")
    items_file: str = Field("", exclude=True, description="Parquet file of per-item scores")
    sentences_file: str = Field(
        "", exclude=True, description="JSON file with a checksum: each item's sentence ids"
    )


class Ingredient(_Result):
    """A stage that data were made from: a source, a model trained for them, or other data.

    `role` is its role in the stage that used it: the stage nearest to the data, if several did.
    """

    role: str
    kind: str = Field(description="kind of stage: source, train, generate or prepare")
    name: str = Field(description="name of the source, trainer, method or steps")
    of: tuple[str, ...] = Field((), description="roles of its inputs")
    num_records: int | None = Field(None, description="number of records, if the store still has the data")
    content_hash: str = ""
    dev_score: float | None = added_field(None, "dev score of a model trained for the data, in [-1, 1]")
    revisions: Revisions = Field((), description="revisions of its base model or source files")
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
    trained_on: bool = added_field(True, "False: used only to make other parts")
    llm: str = added_field("", "name of the LLM asked")
    notes: tuple[str, ...] = added_field((), "the method's notes for every table, a sentence each")
    measured: dict[str, float] = added_field({}, "figures that the method measured, by name")
    score_counts: tuple[int, ...] = added_field(
        (), "number of scores in each hundredth of [0, 1], if a figure needs it"
    )
    figures: dict[str, float] = added_field({}, "key figures: see `synthbench.data.quality.key_figures`")
    made_of: tuple[Ingredient, ...] = added_field(
        (), "sources, trained models and other data it was made from, nearest first"
    )
    content_hash: str
    stage: str
    folder: str = Field("", description="path of the artifact, relative to the store's home")


class RunResult(_Result):
    """One variant with one seed."""

    variant: str
    axes: dict[str, str] = Field(default_factory=dict, description="grid axis -> name of its value")
    seed: int
    is_seeded: bool = Field(True, description="whether the seed changes the score; if not, there is one run")
    identity: str
    parameters: dict[str, Any] = Field(default_factory=dict, description="dotted setting -> value")
    is_of_file: bool = added_field(False, "whether overrides left the row unchanged")
    chosen: dict[str, Any] = Field(default_factory=dict, description="settings that `select` chose on dev")
    num_starts: int = Field(1, description="number of trainings started; only the best on dev was finished")
    paused_at: float = Field(
        1.0, description="trainings paused after this share of steps to pick the best on dev; 1: no pause"
    )
    scores: tuple[TaskScores, ...]
    datasets: tuple[DatasetSummary, ...] = ()
    overlaps: tuple[Overlap, ...] = added_field((), "sentences that test sets share with the training data")
    history: tuple[tuple[int, str, float], ...] = Field((), description="training log: (step, name, value)")
    dev_score: float | None = None
    num_steps: int = 0
    seconds: float = Field(
        0.0, description="computing seconds of all the run's stages, each measured when it was computed"
    )
    revisions: Revisions = added_field(
        (), "revisions of the files that the training read, such as its base model"
    )
    model_folder: str = Field("", description="path of the trained model, relative to the store's home")


class SeenData(_Result):
    """A test set or training source that a model behind some rows was trained on before."""

    model: str
    name: str = Field(description="name of the test set or source in the experiment file")
    is_test: bool
    data_set: str = Field(description="the known data set that `name` denotes")
    stated_by: str = Field("", description="who says that the model was trained on it")
    rows: tuple[str, ...] = ()


class LabelCost(_Result):
    """Cost of an audited part's labels, without stages that the gold labels also needed."""

    num_labels: int = Field(description="records labelled, failures included")
    usd: float | None = Field(description="US dollars; None: no price, or another stage paid for the answers")
    seconds: float = Field(description="seconds of computing for the labels")
    training_seconds: float = Field(description="seconds of computing for the labeller's own training")


class AuditResult(_Result):
    """One audit of one part of the data, which several rows and seeds may share.

    `rows` include the seed if seeds have different data. `audit` is None until the labels are judged.
    """

    name: str
    part: str
    rows: tuple[str, ...] = Field(min_length=1)
    stage: str = Field(description="identity of the audit stage")
    num_items: int = Field(description="number of items judged, or to be judged")
    audit: Audit | None = None
    published: PublishedAudit | None = None
    cost: LabelCost | None = added_field(None, "what labels that were compared with gold cost")

    @property
    def title(self) -> str:
        """Audit, part and rows: "labels of x2 (dino, dino-unsmoothed)"."""
        return f"{self.name} of {self.part} ({', '.join(self.rows)})"


class CostResult(_Result):
    """One stage's LLM requests and their cost, from the ledger.

    Answers from the cache are not counted: another stage paid for them. `in_doubt_usd` is the most that
    requests in doubt may have cost: they were cut off and may have been billed.
    """

    method: str
    part: str
    rows: tuple[str, ...] = Field(min_length=1, description="rows that use these data")
    llm: str
    num_records: int = Field(description="records that the stage made, without failures")
    num_requests: int
    prompt_tokens: int
    completion_tokens: int
    usd: float
    in_doubt_usd: float = 0.0
    is_priced: bool = Field(True, description="whether the price of a token is known")
    price_list: str = added_field("", "date and package of the price; empty: the price is in the file")
    cached_tokens: int = added_field(0, "prompt tokens that the service had cached")
    reasoning_tokens: int = added_field(0, "answer tokens spent on reasoning")
    num_cut_off: int = added_field(0, "answers truncated by a token limit")
    num_empty: int = added_field(0, "answers without visible text")
    num_filtered: int = added_field(0, "answers withheld by a content filter or a refusal")
    num_faulty: int = added_field(0, "replies with an error, or invalid for the API")
    stage: str


class ExperimentResult(_Result):
    """All runs of an experiment or invocation, and everything needed to report them."""

    experiment: str
    description: str = ""
    file: str = added_field("", "path of the experiment file relative to the working folder, else its name")
    is_data_folder_given: bool = added_field(
        False, "whether data were read from a folder that the file does not name"
    )
    identity: str = Field(description="hash of the identities of all runs, and of the overrides")
    overrides: tuple[str, ...] = Field((), description="options that override the file, as typed")
    request: str = Field("", description="hash of the experiment and the overrides, without runtime settings")
    varied: tuple[str, ...] = Field(("training",), description="random choices that vary with the seed")
    source: str = Field("", description="the resolved experiment as YAML")
    table: dict[str, Any] = Field(default_factory=dict, description="the experiment's table options")
    published: tuple[PublishedValue, ...] = Field((), description="a paper's values for the table's rows")
    registration: Registered | None = added_field(
        None, "what was declared before the first score; None: not recorded"
    )
    baseline: str = added_field("", "name of the row that has the unpatched defaults; empty: none")
    tasks: tuple[str, ...] = Field((), description="test sets in the order of the file")
    runs: tuple[RunResult, ...]
    item_noise: tuple[ItemNoise, ...] = added_field((), "noise of comparisons due to test items")
    audits: tuple[AuditResult, ...] = ()
    costs: tuple[CostResult, ...] = added_field(())
    excerpts: tuple[DataExcerpt, ...] = added_field((), "sample records of each row's training data")
    seen: tuple[SeenData, ...] = added_field((), "data that models behind the rows were trained on before")
    side_by_side: tuple[SharedSentence, ...] = added_field(
        (), "records that several data sets have for the same sentence"
    )
    revisions: Revisions = added_field((), "revisions of all models and data read")
    failures: tuple[str, ...] = ()
    pending: tuple[str, ...] = Field((), description="runs that wait for an LLM's batch")
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)

    @property
    def has_scores(self) -> bool:
        """Whether the report has a table of scores; False if data were only made or audited."""
        counted = any(data.score_counts for run in self.runs for data in run.datasets)
        return bool(self.tasks) or not (self.audits or self.costs or counted)

    @property
    def title(self) -> str:
        """The experiment's name with the overrides: "augsbert_stsb --seeds 0"."""
        return " ".join((self.experiment, *self.overrides))
