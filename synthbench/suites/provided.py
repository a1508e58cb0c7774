"""Suites of `evaluate` whose evaluator provides the tasks: EVALUATOR:NAME, such as mteb:STSBenchmark."""

from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError
from synthbench.suites.known import SUITES, Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synthbench.data.dataset import SyntheticDataset
    from synthbench.plugins.task_providers import TaskProvider


def is_own(suite: str) -> bool:
    """Return whether a suite's name has the form EVALUATOR:NAME."""
    return ":" in suite


def evaluator_of(suite: str) -> str:
    """Return the name of a suite's evaluator."""
    return suite.partition(":")[0] if is_own(suite) else SUITES[suite].evaluator


def find_provided_tasks(
    suite: str, data: Path | None, origin: Origin
) -> "tuple[TaskProvider, Mapping[str, SyntheticDataset]]":
    """Return the suite's evaluator, and the suite's test sets by task name.

    Raises UserError if the evaluator is unknown, provides no tasks or none of this name, if no data folder is
    given, or if data are missing.
    """
    from synthbench.plugins.loading import component
    from synthbench.plugins.task_providers import TaskProvider

    evaluator, _, name = suite.partition(":")
    plugin = component("evaluators", evaluator)
    if not issubclass(plugin, TaskProvider):
        raise UserError(f"--suite {suite}: evaluator '{evaluator}' brings no tasks of its own")
    if origin == "folder" and data is None:
        raise UserError(f"--suite {suite}: name the folder of its data by --data DIR, or give --origin hub")
    try:
        provider, names = plugin.of_suite(name, None if origin == "hub" else data)
    except UserError as error:
        raise UserError(*(f"--suite {suite}: {message}" for message in error.messages)) from error
    return provider, {task: provider.read_task(task) for task in names}
