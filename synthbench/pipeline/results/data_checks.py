"""What the training data of a run are like, and what of its test sets stands in them.

It is no stage: nothing depends on it. It is looked at when the results are collected, and then kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.errors import UserError
from synthbench.pipeline.engine.artifacts import Artifacts
from synthbench.pipeline.engine.plan import PlannedRun
from synthbench.pipeline.engine.result_cache import ResultCache
from synthbench.pipeline.engine.stage import Stage
from synthbench.pipeline.operations.data import JoinLearning
from synthbench.reporting.results import Overlap, RunResult

if TYPE_CHECKING:
    from synthbench.data.contamination import TestIndex

VERSION = 2
"""Raise it whenever the same data give other figures."""
ITEMS = {RecordKind.RANKING: "queries", RecordKind.SENTENCE: "sentences"}


def examined(
    runs: Sequence[PlannedRun], results: Sequence[RunResult], artifacts: Artifacts
) -> tuple[tuple[RunResult, ...], tuple[str, ...]]:
    """Return the runs' results with the figures of their data and what of their test sets stands in these.

    Data and test sets that are no longer in the store, and data without sentences, are left out, and named in
    the notes that are returned, too: what nobody looked for must not pass for what is not there.
    """
    examiner = _Examiner(artifacts)
    found = tuple(examiner.try_to_examine(run, result) for run, result in zip(runs, results, strict=True))
    return found, tuple(examiner.notes)


class _Examiner:
    """Looks at data sets of the store, at each once."""

    def __init__(self, artifacts: Artifacts) -> None:
        self._artifacts = artifacts
        self._known = ResultCache(artifacts, VERSION)
        self._indexes: dict[tuple[tuple[str, str], ...], TestIndex] = {}
        self.notes: dict[str, None] = {}

    def try_to_examine(self, run: PlannedRun, result: RunResult) -> RunResult:
        try:
            return self._examine(run, result)
        except UserError as error:
            # Where the store lies is in no result.
            reason = str(error).replace(f"{self._artifacts.root.parent}/", "")
            self.notes[f"Nobody looked for test sentences in all training data: {reason}."] = None
            return result

    def _examine(self, run: PlannedRun, result: RunResult) -> RunResult:
        datasets = tuple(
            dataset.model_copy(update={"figures": self._figures(dataset.stage)})
            for dataset in result.datasets
        )
        parts = {dataset.part: dataset.stage for dataset in datasets if dataset.num_records}
        overlaps = self._overlaps(parts, dict(self._tests(run)) if parts else {})
        return result.model_copy(update={"datasets": datasets, "overlaps": overlaps})

    def _tests(self, run: PlannedRun) -> Iterator[tuple[str, str]]:
        for task, evaluation in run.evaluations.items():
            identity = _scored(evaluation).identity
            if self._artifacts.has_dataset(identity):
                yield task, identity
            else:
                gone = f"{task} is no longer in the store: nobody looked for it in the training data."
                self.notes[gone] = None

    def _figures(self, part: str) -> dict[str, float]:
        from synthbench.data.quality import key_figures

        known = self._known.kept("figures", part)
        if known is None:
            known = key_figures(self._read(part))
            self._known.keep(known, "figures", part, of=[part])
        return dict(known)

    def _overlaps(self, parts: Mapping[str, str], tests: Mapping[str, str]) -> tuple[Overlap, ...]:
        if not parts or not tests:
            return ()
        key = (*parts.items(), *tests.items())
        known = self._known.kept("overlaps", *map(list, key))
        if known is None:
            known = [overlap.model_dump(mode="json") for overlap in self._search(parts, tests)]
            stages = (*parts.values(), *tests.values())
            self._known.keep(known, "overlaps", *map(list, key), of=stages)
        return tuple(map(Overlap.model_validate, known))

    def _search(self, parts: Mapping[str, str], tests: Mapping[str, str]) -> list[Overlap]:
        from synthbench.data.contamination import Check, Findings, search
        from synthbench.data.streaming import text_batches

        index = self._index(tests)
        found = {
            name: search(text_batches(self._artifacts.dataset(identity)), index)
            for name, identity in parts.items()
        }
        by_part = {name: findings.overlaps(index) for name, findings in found.items()}
        together = reduce(Findings.together, found.values()).overlaps(index)
        return [
            Overlap(
                task=each.name,
                items=ITEMS.get(self._kind(tests[each.name]), "pairs"),
                num_items=each.num_items,
                sharing={check.value: counts.items for check, counts in each.checks.items()},
                whole={check.value: counts.whole_items for check, counts in each.checks.items()},
                as_pairs=each.items_as_pairs,
                by_part={name: of[place].checks[Check.NORMALISED].items for name, of in by_part.items()},
            )
            for place, each in enumerate(together)
        ]

    def _index(self, tests: Mapping[str, str]) -> "TestIndex":
        """Return the index of these test sets; the last one is kept, as rows mostly share their tests."""
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


def _scored(evaluation: Stage) -> Stage:
    """Return the test set of an evaluation, without what its evaluator learns from."""
    task = evaluation.inputs["task"]
    return task.inputs["task"] if isinstance(task.operation, JoinLearning) else task
