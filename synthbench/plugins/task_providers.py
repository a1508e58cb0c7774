"""Contract of evaluators whose tasks bring their own data, such as those of a benchmark's package."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from synthbench.data.dataset import SyntheticDataset
from synthbench.plugins.model_contracts import Evaluator


class TaskProvider(Evaluator):
    """An evaluator with its own tasks: an evaluation names them under `tasks`, without sources.

    `record_kind` is the kind of most tasks; `read_task` may return any.
    """

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the tasks that `tasks: [all]` means with these settings.

        Called by `validate` and `plan`: must be quick and work offline. Raises UserError if there are none.
        """

    @abstractmethod
    def check_name(self, task: str) -> None:
        """Raise UserError if these settings have no such task; as quick as `names`."""

    def task_revisions(self, task: str) -> Mapping[str, str]:
        """Return what determines a task's data and scoring: name -> content hash, commit or version.

        It enters the identity of all stages on the task. Must be quick. Raises UserError without local data.
        """
        return {}

    @abstractmethod
    def read_task(self, task: str) -> SyntheticDataset:
        """Return the test items as records, with the task's name under "task" in the manifest's `config`.

        Called before any training; raises UserError if the data are missing or unusable. Training data are
        searched for these texts. The manifest's `revisions` name the published data set with the same
        content, if there is one.
        """

    @classmethod
    @abstractmethod
    def of_suite(cls, name: str, data: Path | None) -> tuple[Self, tuple[str, ...]]:
        """Return the evaluator, and its tasks, for a suite of this name: a task or a collection.

        `data` is the folder of data sets; None: the tasks come from the hub.
        """
