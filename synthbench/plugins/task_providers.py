"""The contract of evaluators whose tasks bring their own data, such as those of a benchmark's package."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from synthbench.data.dataset import SyntheticDataset
from synthbench.plugins.contracts import Evaluator


class TaskProvider(Evaluator):
    """An evaluator with tasks of its own: an evaluation names them under `tasks`, and no sources.

    `record_kind` is the kind that most tasks have; `read_task` may return any.
    """

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Return the tasks that `tasks: [all]` stands for with these settings.

        Called by `validate` and `plan`: must be quick, and ask nobody. Raises UserError if there are none.
        """

    @abstractmethod
    def check_name(self, task: str) -> None:
        """Raise UserError if there is no such task with these settings; as quick as `names`."""

    def task_revisions(self, task: str) -> Mapping[str, str]:
        """Return what determines a task's data and scoring: name -> content hash, commit or version.

        It enters the identity of all stages on the task. Must be quick. Raises UserError if local data are
        missing.
        """
        return {}

    @abstractmethod
    def read_task(self, task: str) -> SyntheticDataset:
        """Return the test items as records, and "task" -> its name in the manifest's `config`.

        Called before anything is trained; raises UserError if the data are not at hand, or unusable. Training
        data are searched for these texts. The manifest's `revisions` name the published data set whose
        content the data have, if they have it.
        """

    @classmethod
    @abstractmethod
    def of_suite(cls, name: str, data: Path | None) -> tuple[Self, tuple[str, ...]]:
        """Return the evaluator, and its tasks, of a suite of this name: a task or a collection.

        `data` is the folder of data sets; None: the tasks come from the hub.
        """
