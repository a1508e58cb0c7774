"""Test sets together with what their evaluator learns from."""

from collections.abc import Iterable
from dataclasses import replace

from synthbench.data.dataset import SyntheticDataset


def with_learning(
    task: SyntheticDataset, learning: Iterable[tuple[str, SyntheticDataset]]
) -> SyntheticDataset:
    """Return the task's records as split "test", and behind them those of each (split, data set)."""
    parts = [("test", task), *learning]
    return task.with_records([replace(record, split=split) for split, data in parts for record in data])
