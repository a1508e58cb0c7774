"""How long stages took that were run before, in this run or by what the store keeps of them."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthbench.pipeline.store import STAGE_FILE, Store

MOST_READ = 1000
"""Artifacts that are looked at, the newest first: a store may hold many thousands."""
NEAREST = 5
Key = tuple[str, str, str]
"""Kind, component and model: stages that are alike in them differ in their amount alone."""


@dataclass(frozen=True)
class Timed:
    """One stage that was run: the seconds that a model of it tells, its amount, and what it took."""

    predicted: float | None
    amount: float | None
    seconds: float


class Past:
    """Stages that were run, by kind, component and model; those of this run come before all others."""

    def __init__(self) -> None:
        self.own: dict[Key, list[Timed]] = defaultdict(list)
        self.stored: dict[Key, list[Timed]] = defaultdict(list)

    def seconds(self, key: Key, predicted: float | None, amount: float | None) -> float | None:
        """Return how long a stage takes by those alike that are nearest in size, None if there is none."""
        alike = self.own.get(key) or self.stored.get(key)
        if not alike:
            return None
        for size, name in ((predicted, "predicted"), (amount, "amount")):
            sized = [(getattr(each, name), each.seconds) for each in alike if getattr(each, name)]
            if size and sized:
                sized.sort(key=lambda each: abs(math.log(each[0] / size)))
                told = sum(predicted_one for predicted_one, _ in sized[:NEAREST])
                return float(size * sum(took for _, took in sized[:NEAREST]) / told)
        return sum(each.seconds for each in alike) / len(alike)


def recorded(store: Store) -> Iterator[Mapping[str, Any]]:
    """Yield what was recorded of the newest artifacts, if it says how long they took."""
    files = [(_age(file), file) for file in (store.root / "artifacts").glob(f"*/*/{STAGE_FILE}")]
    for _, file in sorted(files, key=lambda each: -each[0])[:MOST_READ]:
        info = store.info(file.parent.name)
        if info is not None and isinstance(info.get("seconds"), int | float):
            yield info


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
