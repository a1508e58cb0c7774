"""Tasks of mteb, the Massive Text Embedding Benchmark, scored by mteb's own code."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from synthbench.api import (
    Encoder,
    Evaluation,
    GivenName,
    PairScorer,
    RecordKind,
    SyntheticDataset,
    TaskProvider,
    UserError,
    path_of,
    spearman_influence,
)
from synthbench_mteb import catalogue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDER = "mteb"
"""The folder of the tasks in the data folder."""


class MTEB(TaskProvider):
    """Tasks of the package mteb, by mteb's names, with mteb's scores and main scores.

    For a task in several languages or splits, each score is the mean, and `SCORE/PART` has each part's score.
    The version of mteb is part of every result's identity.
    """

    version: ClassVar[int] = 2
    record_kind: ClassVar[RecordKind] = RecordKind.SENTENCE
    needs_encoder: ClassVar[bool] = True
    main_score: ClassVar[str] = "main_score"
    main_score_title: ClassVar[str] = ""
    """Empty: each task names its main score itself."""

    benchmark: str | None = Field(
        None,
        description="a benchmark of mteb, such as MTEB(eng, v2): `tasks: [all]` means its tasks, in its "
        "languages and splits; null: single tasks with their own languages and splits",
    )
    folder: GivenName | None = Field(
        None,
        description="folder of local data, with one folder per task for the files of its data set; "
        "relative to the experiment file. Default: the Hugging Face hub or its local cache",
    )

    def names(self) -> tuple[str, ...]:
        """Return the tasks of `benchmark`; raises UserError without one."""
        if self.benchmark is None:
            raise UserError("`tasks: [all]` needs `benchmark:`, such as MTEB(eng, v2); else list the tasks")
        return catalogue.benchmark_tasks(self.benchmark)

    def check_name(self, task: str) -> None:
        """Raise UserError if mteb has no such task, the benchmark lacks it, or its folder is missing.

        If some tasks of the benchmark are means of other tasks, only `read_task` checks that it has `task`.
        """
        catalogue.check_task(task)
        known = frozenset(() if self.benchmark is None else catalogue.benchmark_tasks(self.benchmark))
        if known and task not in known and known.isdisjoint(catalogue.aggregates()):
            hint = catalogue.near(task, known)
            raise UserError(f"'{task}' is no task of benchmark '{self.benchmark}'{hint}")
        self._data_folder(task)

    def task_revisions(self, task: str) -> Mapping[str, str]:
        """Return mteb's version, which fixes the hub's commit, and the hash of local data, if any."""
        from synthbench_mteb.local_data import folder_hash

        folder = self._data_folder(task)
        local = {} if folder is None else {f"{self.folder}/{task}": folder_hash(folder)}
        return {"mteb": catalogue.installed_version(), **local}

    def read_task(self, task: str) -> SyntheticDataset:
        """Return the sentences, scored pairs or queries of the test set."""
        from synthbench_mteb.items import test_items
        from synthbench_mteb.tasks import isolated, open_task

        with isolated():
            return test_items(open_task(task, self.benchmark, self._data_folder(task)))

    @classmethod
    def of_suite(cls, name: str, data: Path | None) -> tuple[Self, tuple[str, ...]]:
        """Return an evaluator, and the tasks of the benchmark `name`, or `name` if it is a task.

        Local data come from the folder `mteb` in `data`. Raises UserError as `check_name`.
        """
        is_benchmark = name in catalogue.benchmarks()
        folder = None if data is None else str(data / FOLDER)
        evaluator = cls(benchmark=name if is_benchmark else None, folder=folder)
        tasks = evaluator.names() if is_benchmark else (name,)
        for task in tasks:
            evaluator.check_name(task)
        return evaluator, tasks

    def texts(self, task: SyntheticDataset) -> Iterable[str]:
        """Return nothing, since mteb chooses the texts to encode."""
        return ()

    def sentences(self, task: SyntheticDataset) -> None:
        """Return None: items are mteb's rows, and `read_task` merges equal rows, so ids don't match."""
        return

    def influence(
        self, items: "Mapping[str, NDArray[Any]]", scores: Mapping[str, float]
    ) -> "NDArray[np.float64] | None":
        """Return each item's influence on the mean over languages and splits; None without item scores."""
        import numpy as np

        if not {"value", "predicted"} & items.keys():
            return None
        parts = items["part"]
        found = np.zeros(len(parts))
        for part in (names := np.unique(parts)):
            mask = parts == part
            of_part = {name: column[mask] for name, column in items.items()}
            found[mask] = _influence(of_part) / len(names) / mask.mean()
        return found

    def evaluate(self, model: PairScorer | Encoder, task: SyntheticDataset) -> Evaluation:
        """Return mteb's scores of the model on the task named `task.task_name`."""
        from synthbench_mteb.scoring import score
        from synthbench_mteb.tasks import open_task

        if not isinstance(model, Encoder):
            raise TypeError(f"{type(model).__name__} is not an Encoder")
        name = task.task_name
        return score(model, open_task(name, self.benchmark, self._data_folder(name)), len(task))

    def _data_folder(self, task: str) -> Path | None:
        """Return the folder of a task's local data; raises UserError if it is missing."""
        if self.folder is None:
            return None
        folder = path_of(self.folder)
        if not folder.is_dir():
            raise UserError(f"folder {folder}: no such folder")
        if not (folder / task).is_dir():
            raise UserError(f"{task}: no folder {folder / task} with the files of its data set")
        return folder / task


def _influence(items: "Mapping[str, NDArray[Any]]") -> "NDArray[np.float64]":
    if "value" in items:
        values: NDArray[np.float64] = items["value"] - items["value"].mean()
        return values
    return spearman_influence(items["gold"], items["predicted"])
