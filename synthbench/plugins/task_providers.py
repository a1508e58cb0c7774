"""Contract of evaluators whose tasks bring their own data, such as those of a benchmark's package."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from synthbench.data.dataset import SyntheticDataset
from synthbench.plugins.model_contracts import Evaluator


class TaskProvider(Evaluator):
    """An evaluator with its own tasks: an evaluation names them under `tasks`, without sources.

    `record_kind` is the record kind of most tasks; `read_task` may return records of any kind.
    """

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the names of the tasks that `tasks: [all]` stands for with these settings.

        Called by `validate` and `plan`: must be quick and work offline. Raises UserError if there are no
        tasks.
        """

    @abstractmethod
    def check_name(self, task: str) -> None:
        """Raise UserError if these settings have no such task. Must be as quick as `names`."""

    def task_revisions(self, task: str) -> Mapping[str, str]:
        """Return what determines a task's data and scoring: name -> content hash, commit or version.

        The result enters the identity of all stages that use the task. Must be quick. Raises UserError if
        local data are missing.
        """
        return {}

    @abstractmethod
    def read_task(self, task: str) -> SyntheticDataset:
        """Return the test items as records, with the task's name under "task" in the manifest's `config`.

        Called before any training; raises UserError if the data are missing or unusable. The contamination
        check searches training data for the items' texts. The manifest's `revisions` name the published data
        set with the same content, if there is one.
        """

    @classmethod
    @abstractmethod
    def of_suite(cls, name: str, data: Path | None) -> tuple[Self, tuple[str, ...]]:
        """Return an evaluator and its tasks' names; `name` names one task or a collection of tasks.

        `data` is the user's folder of data sets; None takes the tasks from the hub.
        """
