"""Stages that read sources, drop test pairs found in gold data, and add evaluators' training data."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from synthbench.base.errors import UserError
from synthbench.base.frozen import in_identity
from synthbench.data.dataset import SyntheticDataset
from synthbench.engine.artifacts import read_dataset, write_dataset
from synthbench.engine.stage import Operation
from synthbench.engine.workspace import Workspace
from synthbench.plugins.task_providers import TaskProvider
from synthbench.sources.description import Roots
from synthbench.sources.models import Source
from synthbench.stages.plugin_calls import PluginOperation, checked_return


@dataclass(frozen=True)
class ReadSource(Operation):
    """Reads the records of a source."""

    kind: ClassVar[str] = "source"
    comes_first: ClassVar[bool] = True
    source: Source
    roots: Roots

    @property
    def component(self) -> str:
        """The type of source, such as TaskSource or FileSource."""
        return self.source.component

    @property
    def version(self) -> int:
        """The version of the source's reader."""
        return self.source.version

    def config(self) -> Mapping[str, Any]:
        """Return the source's section without `origin` (folder or hub)."""
        return in_identity(self.source, leave_out=["origin"])

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """The content hashes of the files, or the commit of the repository."""
        return self.source.fingerprint(self.roots)

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Read, check and write the data set."""
        write_dataset(self.source.load(self.roots), work)


@dataclass(frozen=True)
class ReadOwnTask(PluginOperation[TaskProvider]):
    """Reads the test items of a task whose data the evaluator provides."""

    kind: ClassVar[str] = "source"
    comes_first: ClassVar[bool] = True
    task: str

    def config(self) -> Mapping[str, Any]:
        """Return the evaluator's settings and the task."""
        return {**super().config(), "task": self.task}

    @cached_property
    def outside(self) -> Mapping[str, str]:
        """Name -> revision of the inputs that determine the task's data and scores, from the evaluator."""
        return self.plugin.task_revisions(self.task)

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Read, check and write the test items."""
        items = self.plugin.read_task(self.task)
        write_dataset(checked_return(items, SyntheticDataset, self.name, "read_task"), work)


@dataclass(frozen=True)
class ExcludePairs(Operation):
    """Drops the pairs of a test set ("task" input) that also occur in gold data ("gold:..." inputs)."""

    kind: ClassVar[str] = "exclude"
    comes_first: ClassVar[bool] = True
    component: ClassVar[str] = "pairs"
    version: ClassVar[int] = 2

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Drop the pairs and count them in the manifest; raises UserError if no pair is left."""
        from synthbench.data.contamination import drop_pairs_in

        gold = [read_dataset(folder) for name, folder in inputs.items() if name.startswith("gold:")]
        kept = drop_pairs_in(read_dataset(inputs["task"]), gold)
        if not len(kept):
            raise UserError("every pair is in the excluded sources, so none is left to score")
        write_dataset(kept, work)


@dataclass(frozen=True)
class JoinLearning(Operation):
    """Adds the evaluator's training and dev data ("train:...", "dev:...") to a test set ("task")."""

    kind: ClassVar[str] = "join"
    comes_first: ClassVar[bool] = True
    component: ClassVar[str] = "splits"
    version: ClassVar[int] = 1

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Join the records, each marked with its split."""
        learning = [
            (name.partition(":")[0], read_dataset(folder)) for name, folder in inputs.items() if ":" in name
        ]
        write_dataset(read_dataset(inputs["task"]).with_splits(learning), work)
