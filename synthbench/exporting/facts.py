"""Content of model and data cards: scores with intervals, the data, how they were made, and costs."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from synthbench.base.patterns import linear_pattern
from synthbench.data.dataset import StoredRecords
from synthbench.data.manifest import Manifest
from synthbench.engine.artifacts import DATASET_FOLDER
from synthbench.exporting.subject import Subject, stored
from synthbench.plugins.model_contracts import Evaluator
from synthbench.reporting.model.aggregate import Measurement
from synthbench.reporting.results import CostResult, DatasetSummary, RecordExcerpt, TaskScores
from synthbench.reporting.trace import ingredient_text
from synthbench.results.item_noise import item_influence, items_of
from synthbench.sources.models import FileSource, Source, TaskSource, WorldSource
from synthbench.sources.tasks import TASKS
from synthbench.statistics.differences import Noise, SeedScores, interval_half_width
from synthbench.statistics.item_noise import Influences, item_variances
from synthbench.worlds import MODEL_PREFIX, NAME

NUM_INSTRUCTIONS = 12
"""Number of prompts in a card, the most frequent first."""
NUM_EXAMPLES = 6
_HUB_ID = linear_pattern(r"^[\w.-]+(?:/[\w.-]+)?")
_COMMIT = linear_pattern(r"^[0-9a-f]{40}")


def is_on_hub(name: str, version: str) -> bool:
    """Return whether `name` is a hub id (the owner may be missing), and `version` a commit's hash."""
    return bool(_HUB_ID.fullmatch(name) and _COMMIT.fullmatch(version)) and not name.startswith(MODEL_PREFIX)


@dataclass(frozen=True)
class Score:
    """The main score on one test set, x 100: `value` of the exported model, `mean` over its row's seeds.

    `over_items` and `over_seeds` are half widths of 95 % confidence intervals, None if unknown.
    """

    task: str
    metric: str
    name: str
    evaluator: str
    split: str
    value: float
    over_items: float | None
    num_items: int
    num_dropped: int
    mean: float
    over_seeds: float | None
    num_seeds: int


def scores(subject: Subject) -> Iterator[Score]:
    """Yield the run's main score on each test set, for each evaluator."""
    for each in subject.run.scores:
        sample = Measurement(each.task, each.evaluator, each.task).sample(subject.runs)
        assert sample is not None, "the exported run has this score"
        yield Score(
            task=each.task,
            metric=each.title or each.main_score,
            name=each.main_score,
            evaluator=each.evaluator,
            split=each.split or "test",
            value=100 * each.scores[each.main_score],
            over_items=_over_items(each, subject),
            num_items=each.num_items,
            num_dropped=each.num_dropped,
            mean=100 * sample.mean,
            over_seeds=_over_seeds(sample),
            num_seeds=sample.num_seeds,
        )


def _over_seeds(sample: SeedScores) -> float | None:
    spread = sample.standard_deviation
    return None if not spread else 100 * interval_half_width(spread, sample.num_seeds)


def _over_items(score: TaskScores, subject: Subject) -> float | None:
    """Return a score's `over_items`, with items clustered by sentence.

    None if the items' scores are gone, or if the evaluator can't compute their influence.
    """
    evaluator = _evaluator(score, subject)
    if evaluator is None or not subject.store.has(score.stage):
        return None
    found = item_influence(score.stage, evaluator, subject.artifacts)
    if found is None:
        return None
    # The noise of a score is that of its difference from a constant.
    rows = [Influences(values[None], (0,), is_seeded=False) for values in (found.values, 0 * found.values)]
    (errors,) = item_variances(rows, [items_of(score, evaluator, found, subject.artifacts)])
    return 100 * Noise(errors.squared_error, errors.degrees).half_width


def _evaluator(score: TaskScores, subject: Subject) -> Evaluator | None:
    plans = (
        plan
        for plan in subject.config.evaluations
        if plan.evaluator_name == score.evaluator and score.task in (*plan.tasks, *plan.if_found)
    )
    return next((plan.evaluator for plan in plans), None)


@dataclass(frozen=True)
class ExportedPart:
    """One part of the run's data: its summary, and what the store still has of it.

    `costs`: the LLM costs of the part's own stage and of the stages it was made from.
    """

    summary: DatasetSummary
    steps: tuple[str, ...]
    costs: tuple[CostResult, ...]
    folder: Path | None
    manifest: Manifest | None
    generators: Mapping[str, str]
    examples: tuple[RecordExcerpt, ...]

    @property
    def name(self) -> str:
        """The part's name in the experiment file."""
        return self.summary.part

    @property
    def made_by(self) -> str:
        """The method that made the part, else "read as it is"."""
        return self.summary.method or "read as it is"

    @property
    def dropped(self) -> dict[str, int]:
        """Numbers of records left out, by reason, including failures to make a record."""
        failures = {"failed": self.summary.num_failures}
        return {why: number for why, number in {**self.summary.dropped, **failures}.items() if number}

    @property
    def made_of(self) -> list[str]:
        """Descriptions of the sources, models and data sets that the part was made from, and of its steps."""
        notes = self.manifest.notes if self.manifest else []
        prepared = [note for note in notes if note.startswith(tuple(f"{step} v" for step in self.steps))]
        steps = prepared or self.steps
        return [*map(ingredient_text, self.summary.made_of), *(f"prepared: {step}" for step in steps)]

    @cached_property
    def splits(self) -> dict[str, int]:
        """Number of records by split; all count as train if the store no longer has them."""
        if self.folder is None:
            return {"train": self.summary.num_records}
        return dict(sorted(Counter(StoredRecords(self.folder).column("split")).items(), reverse=True))

    @cached_property
    def instructions(self) -> list[tuple[str, int]]:
        """The NUM_INSTRUCTIONS most frequent prompts or samplers, with their numbers of records.

        [] if no method made the part, or if the store no longer has the part.
        """
        if self.folder is None or not self.summary.method:
            return []
        found = Counter(text for text in StoredRecords(self.folder).column("instruction") if text)
        return found.most_common(NUM_INSTRUCTIONS)

    @property
    def settings(self) -> str:
        """The method's settings, prompts included, as JSON; "" if unknown."""
        config = self.manifest.config if self.manifest and self.summary.method else {}
        return json.dumps(config, indent=1, ensure_ascii=False) if config else ""


def parts(subject: Subject) -> Iterator[ExportedPart]:
    """Yield the parts of the run's data that its result describes, in the result's order.

    Raises UserError if the store's copy of a part is damaged.
    """
    steps = {part.name: tuple(step.name for step in part.prepare) for part in subject.config.parts}
    for summary in subject.run.datasets:
        folder = _folder(summary, subject)
        yield ExportedPart(
            summary=summary,
            steps=steps.get(summary.part, ()),
            costs=tuple(_costs(summary, subject)),
            folder=folder,
            manifest=None if folder is None else subject.artifacts.manifest(summary.stage),
            generators=_generators(summary, subject),
            examples=_examples(summary, subject),
        )


def costs_of(parts: Sequence[ExportedPart]) -> list[CostResult]:
    """Return the parts' LLM costs; a stage that several parts were made from is counted once."""
    return list(dict.fromkeys(cost for part in parts for cost in part.costs))


def _folder(summary: DatasetSummary, subject: Subject) -> Path | None:
    if not subject.store.has(summary.stage):
        return None
    return stored(subject, summary.folder, f"part '{summary.part}'") / DATASET_FOLDER


def _examples(summary: DatasetSummary, subject: Subject) -> tuple[RecordExcerpt, ...]:
    found = (each.records for each in subject.result.excerpts if each.stage == summary.stage)
    return next(found, ())[:NUM_EXAMPLES]


def _costs(summary: DatasetSummary, subject: Subject) -> Iterator[CostResult]:
    """Yield the costs of the part's own stage and of the stages it was made from."""
    stages = {summary.stage, *(ingredient.stage for ingredient in summary.made_of)}
    yield from (cost for cost in subject.result.costs if cost.stage in stages)


def _generators(summary: DatasetSummary, subject: Subject) -> dict[str, str]:
    """Return the models that wrote or labelled the records: name -> version, "" for an LLM.

    {} if no method made the part.
    """
    if not summary.method:
        return {}
    found = dict.fromkeys((name for name in summary.llm.split(" and ") if name), "")
    for excerpt in subject.result.excerpts:
        if excerpt.stage == summary.stage:
            found.update(excerpt.revisions)
    for each in summary.made_of:
        if each.kind in ("generate", "train"):
            found.update(each.revisions)
    return found


def sources(subject: Subject) -> dict[str, Source]:
    """Return the sources that the run's data were made from, by name in the experiment file."""
    behind = {each.name for data in subject.run.datasets for each in data.made_of if each.kind == "source"}
    direct = {part.source for part in subject.config.parts if part.source}
    known = subject.experiment.sources
    return {name: known[name] for name in known if name in behind | direct}


def source_texts(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield each source's name and description."""
    for name, source in sources(subject).items():
        if isinstance(source, WorldSource):
            yield name, f"the {NAME}, a small generated world"
        elif isinstance(source, TaskSource):
            task = TASKS[source.task]
            on_hub = f" (on the hub: {task.hub_id} at {task.hub_revision[:7]})" if task.hub_id else ""
            yield name, f"the standard data set {source.task}, split {source.split}{on_hub}"
        elif isinstance(source, FileSource) and source.hub:
            yield name, f"{source.file} of the hub's data set {source.hub}"
        else:
            yield name, f"the file {Path(str(getattr(source, 'file', name))).name}, not part of this folder"


def hub_datasets(subject: Subject) -> list[str]:
    """Return the ids of the hub's data sets that the run's data were made from."""
    found: dict[str, None] = {}
    for source in sources(subject).values():
        if isinstance(source, FileSource) and source.hub:
            found[source.hub] = None
        elif isinstance(source, TaskSource) and TASKS[source.task].hub_id:
            found[TASKS[source.task].hub_id] = None
    return list(found)


def language(subject: Subject) -> str:
    """Return "en" if all sources are known to be English, else "und" (undetermined)."""
    known = sources(subject).values()
    return "en" if known and all(_is_english(source) for source in known) else "und"


def is_generated_world(subject: Subject) -> bool:
    """Return whether any data come from a generated world."""
    return any(isinstance(source, WorldSource) for source in sources(subject).values())


def hub_test_set(subject: Subject, score: Score) -> str:
    """Return the hub's name of the data set if the score is on a whole standard test split, else ""."""
    source = subject.experiment.sources.get(score.task)
    if not isinstance(source, TaskSource) or not source.is_whole_test or score.num_dropped:
        return ""
    return TASKS[source.task].hub_id or ""


def _is_english(source: Source) -> bool:
    if isinstance(source, WorldSource):
        return True
    if not isinstance(source, TaskSource):
        return False
    # "STS17-en-de" and "STS14-15-es" end in codes of languages.
    languages = {part for part in source.task.split("-") if len(part) == 2 and part.islower()}
    return languages <= {"en"}


def costs_text(costs: Sequence[CostResult]) -> str:
    """Describe the costs of LLM answers in words."""
    if not costs:
        return "No LLM was asked"
    requests = sum(cost.num_requests for cost in costs)
    tokens = sum(cost.prompt_tokens + cost.completion_tokens for cost in costs)
    dollars = sum(cost.usd for cost in costs)
    price = f"{dollars:.2f} US dollars" if all(cost.is_priced for cost in costs) else "price unknown"
    llms = " and ".join(dict.fromkeys(cost.llm for cost in costs))
    return f"{requests:,} requests to {llms}, {tokens:,} tokens, {price}"
