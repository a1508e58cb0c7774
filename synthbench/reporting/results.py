"""The result of an experiment: what the tracker stores and reports are made of."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from synthbench.auditing.report import Audit
from synthbench.config.published_tables import PublishedAudit, PublishedValue
from synthbench.statistics.item_noise import ItemNoise

NORMALISED = "normalised"
Revisions = tuple[tuple[str, str], ...]
"""(Model or file, its commit or content hash)."""


class _Result(BaseModel):
    # A diverged training has NaN losses; as null they could not be read again.
    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


def _omitted(default: Any, description: str = "") -> Any:  # noqa: ANN401 - of the field's type
    """Declare a field that JSON lacks at its default, so that results of earlier versions stay the same."""
    return Field(default, exclude_if=lambda value: bool(value == default), description=description)


class Overlap(_Result):
    """Sentences shared by one test set, as it was scored, and the training data of one run.

    The checks are those of `synthbench.data.contamination`: exact, normalised, 13-gram, near-duplicate.
    """

    task: str
    items: str = Field(description="what is counted: pairs, queries or sentences")
    num_items: int
    sharing: dict[str, int] = Field(description="check -> items with a sentence in the training data")
    whole: dict[str, int] = Field(description="check -> items with every sentence in the training data")
    as_pairs: int = Field(description="items with a pair that is a training pair, normalised")
    by_part: dict[str, int] = Field(description="part of the data -> items that share a sentence, normalised")


class RecordExcerpt(_Result):
    """One record; long texts are cut."""

    texts: tuple[tuple[str, str], ...] = Field(description="(name, text), in the order of the columns")
    score: float | None = None
    origin: tuple[tuple[str, str], ...] = Field(
        (), description="(column, value) that say where the record comes from"
    )


class DataExcerpt(_Result):
    """Some records of one data set, which parts of several rows may share."""

    stage: str
    records: tuple[RecordExcerpt, ...] = ()
    failures: tuple[tuple[str, int], ...] = Field((), description="(reason, number), the most frequent first")
    revisions: Revisions = ()


class SharedRecords(_Result):
    """The records that data sets have for one sentence, all of these sets the same; `num_records` in all."""

    stages: tuple[str, ...]
    records: tuple[RecordExcerpt, ...]
    num_records: int


class SharedSentence(_Result):
    """A sentence that records of several data sets were made of."""

    sentence: str
    found: tuple[SharedRecords, ...]


class TaskScores(_Result):
    """One model on one test set; `num_dropped` items of the set were left out as leaks."""

    task: str
    evaluator: str
    main_score: str
    title: str = Field("", description="the main score in words; empty: its name says it")
    scores: dict[str, float] = Field(description="named scores, in [-1, 1] or [0, 1]; tables print x 100")
    num_items: int
    num_dropped: int = 0
    settings: dict[str, Any] = _omitted({}, "the evaluator's settings, with defaults")
    split: str = _omitted("", "train, dev or test: what the test set was taken as")
    drawn: str = _omitted("", "how the items were sampled from the test set, if they were")
    stage: str = Field(description="identity of the evaluation stage")
    items_file: str = Field("", exclude=True, description="Parquet file of per-item scores")


class Ingredient(_Result):
    """A stage that data were made from: a source, a model trained for them, or other data.

    `role` is the one it has for the first thing that was made of it.
    """

    role: str
    kind: str = Field(description="of the stage: source, train, generate or prepare")
    name: str = Field(description="of the source, the trainer, the method or the steps")
    of: tuple[str, ...] = Field((), description="roles of its own ingredients")
    num_records: int | None = Field(None, description="of data that the store holds")
    content_hash: str = ""
    dev_score: float | None = _omitted(None, "of a model whose checkpoint dev chose, in [-1, 1]")
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
    trained_on: bool = _omitted(True, "false: it was made for other parts only")
    llm: str = _omitted("", "the LLM that was asked for it")
    notes: tuple[str, ...] = _omitted((), "the method's notes for beside every table, a sentence each")
    measured: dict[str, float] = _omitted({}, "figures that the method measured, by name")
    score_counts: tuple[int, ...] = _omitted(
        (), "number of scores in each hundredth of [0, 1], where a figure asks for it"
    )
    figures: dict[str, float] = _omitted({}, "key figures: see `synthbench.data.quality.key_figures`")
    made_of: tuple[Ingredient, ...] = _omitted(
        (), "sources, trained models and other data behind it, each once, the nearest first"
    )
    content_hash: str
    stage: str
    folder: str = Field("", description="where it is kept, below the home of the store")


class RunResult(_Result):
    """One variant with one seed."""

    variant: str
    axes: dict[str, str] = Field(default_factory=dict, description="grid axis -> name of its value")
    seed: int
    is_seeded: bool = Field(True, description="whether the seed changes the score; if not, there is one run")
    identity: str
    parameters: dict[str, Any] = Field(default_factory=dict, description="dotted configuration paths")
    is_of_file: bool = _omitted(False, "whether overrides left the row as the file has it")
    chosen: dict[str, Any] = Field(default_factory=dict, description="what `select` chose on dev")
    num_starts: int = Field(1, description="trainings that were started; dev chose the one that was finished")
    paused_at: float = Field(1.0, description="the share of the steps after which dev chose")
    scores: tuple[TaskScores, ...]
    datasets: tuple[DatasetSummary, ...] = ()
    overlaps: tuple[Overlap, ...] = _omitted((), "sentences that test sets share with the training data")
    history: tuple[tuple[int, str, float], ...] = Field((), description="(step, name, value) of the training")
    dev_score: float | None = None
    num_steps: int = 0
    seconds: float = Field(0.0, description="computing time of the run's own stages when they were executed")
    revisions: Revisions = _omitted((), "of what the training read: its base model")
    model_folder: str = Field("", description="where the trained model is kept, below the home of the store")


class AuditResult(_Result):
    """One audit of one part of the data, which several rows and seeds may share.

    `rows` name the seed where seeds have different data. `audit` is None until the labels are judged.
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
    """What one stage asked an LLM for and paid, as the ledger has it.

    Answers from the cache are not counted: another stage paid for them. `in_doubt_usd` is the most that
    requests in doubt may have cost: they were cut off and may have been billed.
    """

    method: str
    part: str
    rows: tuple[str, ...] = Field(min_length=1, description="the rows whose data these are")
    llm: str
    num_records: int = Field(description="records that came of it, without failures")
    num_requests: int
    prompt_tokens: int
    completion_tokens: int
    usd: float
    in_doubt_usd: float = 0.0
    is_priced: bool = Field(True, description="whether the price of a token is known")
    cached_tokens: int = _omitted(0, "of the prompts' tokens, those that the service had cached")
    reasoning_tokens: int = _omitted(0, "of the answers' tokens, thoughts")
    num_cut_off: int = _omitted(0, "answers that a limit on tokens cut off")
    num_empty: int = _omitted(0, "answers without visible text")
    num_filtered: int = _omitted(0, "answers withheld by a content filter or a refusal")
    num_faulty: int = _omitted(0, "replies that ended in a fault, or were none of the API's")
    stage: str


class ExperimentResult(_Result):
    """All runs of an experiment or invocation, and what it takes to report them."""

    experiment: str
    description: str = ""
    file: str = _omitted("", "the experiment file, below the folder that it was run in, else its name alone")
    is_data_folder_given: bool = _omitted(
        False, "whether data were read from a folder that the file does not name"
    )
    identity: str = Field(description="hash of the identities of all runs, and of the overrides")
    overrides: tuple[str, ...] = Field((), description="as typed on the command line")
    request: str = Field("", description="hash of the file's content and the overrides, runtime left out")
    varied: tuple[str, ...] = Field(("training",), description="what varies with the seed")
    source: str = Field("", description="the resolved experiment as YAML")
    table: dict[str, Any] = Field(default_factory=dict, description="the experiment's table options")
    published: tuple[PublishedValue, ...] = Field((), description="a paper's values for the table's rows")
    baseline: str = _omitted("", "the row of the unpatched defaults, if it has a name")
    tasks: tuple[str, ...] = Field((), description="test sets in the order of the file")
    runs: tuple[RunResult, ...]
    item_noise: tuple[ItemNoise, ...] = _omitted((), "noise of the test items in comparisons of rows")
    audits: tuple[AuditResult, ...] = ()
    costs: tuple[CostResult, ...] = _omitted(())
    excerpts: tuple[DataExcerpt, ...] = _omitted((), "records of the training data of each row")
    side_by_side: tuple[SharedSentence, ...] = _omitted(
        (), "what several of these data sets have for the same sentence"
    )
    revisions: Revisions = _omitted((), "of all models and data that any stage read")
    failures: tuple[str, ...] = ()
    pending: tuple[str, ...] = Field((), description="what waits for an LLM's batch")
    notes: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)

    @property
    def has_scores(self) -> bool:
        """Whether there is a table of scores: there is none where data are only made or audited."""
        counted = any(data.score_counts for run in self.runs for data in run.datasets)
        return bool(self.tasks) or not (self.audits or self.costs or counted)

    @property
    def title(self) -> str:
        """The experiment's name with the overrides: "augsbert_stsb --seeds 0"."""
        return " ".join((self.experiment, *self.overrides))
