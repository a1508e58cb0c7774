"""Whether an evaluator can measure anything on a task, found out once however many models it is to score."""

from functools import cache
from pathlib import Path

from synthbench.data.dataset import SyntheticDataset
from synthbench.plugins import Evaluator


def check_task(evaluator: Evaluator, folder: Path) -> None:
    """Let an evaluator look at the data set in `folder`, if it does so; reading takes a while.

    Raises UserError if it can't measure anything there.
    """
    if type(evaluator).check_data is not Evaluator.check_data:
        _check(evaluator, folder)


@cache
def _check(evaluator: Evaluator, folder: Path) -> None:
    evaluator.check_data(SyntheticDataset.read(folder))
