"""Data checks: key figures of training data, and test sentences found in them.

The checks are not stages, since no stage depends on them. They are computed and cached when results are
collected.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.engine.artifacts import Artifacts
from synthbench.engine.plan import PlannedRun
from synthbench.engine.result_cache import ResultCache
from synthbench.engine.stage import Stage
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import Prompts
from synthbench.reporting.results import Overlap, RunResult
from synthbench.results.lineage import trained_model
from synthbench.stages.data import JoinLearning
from synthbench.stages.training import DATA, Train
from synthbench.training.settings import TrainingSettings

if TYPE_CHECKING:
    from synthbench.data.contamination import TestIndex

VERSION = 2
"""Raise it whenever the same data give different figures."""
ITEMS = {
    RecordKind.RANKING: "queries",
    RecordKind.RETRIEVAL: "queries and passages",
    RecordKind.SENTENCE: "sentences",
}


def with_data_checks(
    runs: Sequence[PlannedRun], results: Sequence[RunResult], artifacts: Artifacts
) -> tuple[tuple[RunResult, ...], tuple[str, ...]]:
    """Return the results with key figures and contamination of their training data, and notes.

    Each note names data or a test set that could not be checked: it is no longer in the store or has no
    sentences. "Not checked" must not read as "not contaminated".
    """
    checker = _Checker(artifacts)
    checked = tuple(checker.check(run, result) for run, result in zip(runs, results, strict=True))
    return checked, tuple(checker.notes)


class _Checker:
    """Checks each data set once."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._cache = ResultCache(artifacts, VERSION)
        self._indexes: dict[tuple[tuple[str, str], ...], TestIndex] = {}
        self.notes: dict[str, None] = {}

    def check(self, run: PlannedRun, result: RunResult) -> RunResult:
        try:
            return self._checked(run, result)
        except UserError as error:
            # The store's path must not get into results.
            reason = str(error).replace(f"{self._artifacts.root.parent}/", "")
            self.notes[f"Not all training data were checked for test sentences: {reason}."] = None
            return result

    def _checked(self, run: PlannedRun, result: RunResult) -> RunResult:
        training = training_of(run)
        self._note_gone(trained_model(run, self._artifacts))
        datasets = []
        for dataset in result.datasets:
            cut = self._cut(dataset.stage, *training) if training is not None and dataset.trained_on else {}
            figures = self._figures(dataset.stage) | cut
            datasets.append(dataset.model_copy(update={"figures": figures}))
        parts = {
            dataset.part: dataset.stage for dataset in datasets if dataset.num_records and dataset.trained_on
        }
        overlaps = self._overlaps(parts, dict(self._tests(run)) if parts else {})
        return result.model_copy(update={"datasets": tuple(datasets), "overlaps": overlaps})

    def _note_gone(self, model: Stage | None) -> None:
        for name, data in ({} if model is None else model.inputs).items():
            if name.startswith(DATA) and not self._artifacts.has_dataset(data.identity):
                gone = f"{data} is no longer in the store: these training data were not checked."
                self.notes[gone] = None

    def _tests(self, run: PlannedRun) -> Iterator[tuple[str, str]]:
        for task, evaluation in run.evaluations.items():
            identity = _scored(evaluation).identity
            if self._artifacts.has_dataset(identity):
                yield task, identity
            else:
                gone = f"{task} is no longer in the store: training data were not checked for its sentences."
                self.notes[gone] = None

    def _figures(self, part: str) -> dict[str, float]:
        from synthbench.data.quality import key_figures

        return dict(self._cache.get(lambda: key_figures(self._read(part)), "figures", part, of=[part]))

    def _cut(self, part: str, trainer: TrainingSettings, revisions: Mapping[str, str]) -> dict[str, float]:
        """Return how many inputs a training truncates, and how many of them then equal another input."""
        if not self._artifacts.manifest(part).num_records:
            return {}
        key = (dict(revisions), trainer.base.model_dump(mode="json"), trainer.max_length, trainer.model_kind)
        try:
            return dict(
                self._cache.get(lambda: self._counted_cut(part, trainer), "cut", part, *key, of=[part])
            )
        except UserError as error:
            self.notes[f"What a training cuts of its data was not counted: {error}."] = None
            return {}

    def _counted_cut(self, part: str, trainer: TrainingSettings) -> dict[str, float]:
        from synthbench.data.streaming import text_batches
        from synthbench.data.truncation import count_truncated
        from synthbench.models.reading_limits import tokenizer_and_limit

        reader = tokenizer_and_limit(trainer.base, trainer.max_length)
        if reader is None:
            return {}
        batches = text_batches(self._artifacts.dataset(part))
        kind = self._kind(part)
        inputs = (each for rows in batches for row in rows for each in inputs_of(row, kind, trainer))
        found = count_truncated(inputs, *reader)
        return {"num_truncated": float(found.truncated), "num_truncated_alike": float(found.equal_after)}

    def _overlaps(self, parts: Mapping[str, str], tests: Mapping[str, str]) -> tuple[Overlap, ...]:
        if not parts or not tests:
            return ()
        key = (*parts.items(), *tests.items())
        stages = (*parts.values(), *tests.values())
        search = partial(self._search, parts, tests)
        return tuple(
            map(Overlap.model_validate, self._cache.get(search, "overlaps", *map(list, key), of=stages))
        )

    def _search(self, parts: Mapping[str, str], tests: Mapping[str, str]) -> list[dict[str, Any]]:
        from synthbench.data.contamination import Check, Findings, search
        from synthbench.data.streaming import text_batches

        index = self._index(tests)
        found = {
            name: search(text_batches(self._artifacts.dataset(identity)), index)
            for name, identity in parts.items()
        }
        by_part = {name: findings.overlaps(index) for name, findings in found.items()}
        together = reduce(Findings.combined_with, found.values()).overlaps(index)
        return [
            Overlap(
                task=each.name,
                items=ITEMS.get(self._kind(tests[each.name]), "pairs"),
                num_items=each.num_items,
                sharing={check.value: counts.items for check, counts in each.checks.items()},
                whole={check.value: counts.whole_items for check, counts in each.checks.items()},
                as_pairs=each.items_as_pairs,
                by_part={name: of[index].checks[Check.NORMALISED].items for name, of in by_part.items()},
            ).model_dump(mode="json")
            for index, each in enumerate(together)
        ]

    def _index(self, tests: Mapping[str, str]) -> "TestIndex":
        """Return the index of these test sets; the latest stays in memory, since rows mostly share tests."""
        from synthbench.data.contamination import TestIndex

        key = tuple(tests.items())
        if key not in self._indexes:
            rows = {task: self._read(each).text_rows() for task, each in key}
            self._indexes = {key: TestIndex(rows)}
        return self._indexes[key]

    def _kind(self, identity: str) -> RecordKind:
        return self._artifacts.manifest(identity).kind

    def _read(self, identity: str) -> SyntheticDataset:
        return SyntheticDataset.read(self._artifacts.dataset(identity))


def training_of(run: PlannedRun) -> tuple[TrainingSettings, Mapping[str, str]] | None:
    """Return a run's TrainingSettings and its models' revisions; None if its trainer has no such settings."""
    stage = run.model
    while stage is not None and not isinstance(stage.operation, Train):
        stage = next(iter(stage.inputs.values()), None)
    training = None if stage is None else stage.operation
    if not isinstance(training, Train) or not isinstance(training.plugin, TrainingSettings):
        return None
    return training.plugin, training.outside


def inputs_of(row: Sequence[str], kind: RecordKind, trainer: TrainingSettings) -> Iterator[tuple[str, ...]]:
    """Yield a record's inputs to the model: each text, or each pair for a cross-encoder."""
    if trainer.model_kind is ModelKind.PAIR_SCORER:
        yield from ((row[0], other) for other in row[1:])
        return
    prompts = trainer.base.prompts or Prompts()
    of_others = prompts.query if kind == RecordKind.SCORED_PAIR else prompts.passage
    yield (prompts.query + row[0],)
    yield from ((of_others + other,) for other in row[1:])


def _scored(evaluation: Stage) -> Stage:
    """Return an evaluation's test set, without its evaluator's training data."""
    task = evaluation.inputs["task"]
    return task.inputs["task"] if isinstance(task.operation, JoinLearning) else task
