"""What a page shows of trainings: how long they were, what dev said of them, and its way there."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate

DEV = "dev_score"
FEWEST_POINTS = 3
WIDTH, HEIGHT, MARGIN = 96.0, 22.0, 2.0


@dataclass(frozen=True)
class Training:
    """The trainings of one row: texts, and the dev scores of each seed as points of a drawing."""

    row: str
    seeds: str
    steps: str
    dev: str
    dev_score: str
    seconds: str
    curves: tuple[str, ...] = ()


def trainings(result: ExperimentResult) -> Iterator[Training]:
    """Yield the trainings of each row that has any."""
    for key, runs in aggregate.rows(result).items():
        if not any(run.num_steps or run.seconds for run in runs):
            continue
        dev = [run.dev_score for run in runs if run.dev_score is not None and math.isfinite(run.dev_score)]
        steps = sorted({run.num_steps for run in runs if run.num_steps})
        yield Training(
            row=", ".join((key.variant, *(value for _, value in key.axes))),
            seeds=str(len(runs)),
            steps=" to ".join(f"{number:,}" for number in dict.fromkeys(steps[:1] + steps[-1:])) or MISSING,
            dev=_dev(runs[0]) if dev else MISSING,
            dev_score=f"{100 * fmean(dev):.2f}" if dev else MISSING,
            seconds=f"{sum(run.seconds for run in runs) / len(runs):,.0f}",
            curves=tuple(_curves(runs)),
        )


def _dev(run: RunResult) -> str:
    """Return what dev is made of: sources, and held-out parts of the row's own data."""
    names = [
        name for key in ("sources", "parts") for name in run.parameters.get(f"train.selection.{key}") or ()
    ]
    return ", ".join(names)


def _curves(runs: Sequence[RunResult]) -> Iterator[str]:
    """Yield the points of each seed's dev scores over the steps, all seeds in one frame."""
    paths = [[(step, value) for step, name, value in run.history if name == DEV] for run in runs]
    points = [point for path in paths for point in path]
    if not points or not all(math.isfinite(value) for _, value in points):
        return
    steps, values = zip(*points, strict=True)
    for path in paths:
        if len(path) >= FEWEST_POINTS:
            xs = _scaled([step for step, _ in path], (0, max(steps)), WIDTH)
            ys = _scaled([value for _, value in path], (max(values), min(values)), HEIGHT)
            yield " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))


def _scaled(values: Sequence[float], ends: tuple[float, float], length: float) -> Iterator[float]:
    """Yield where values lie on a length, the first end near 0 and the second near the length."""
    first, last = ends
    room = length - 2 * MARGIN
    return (MARGIN + room * ((value - first) / (last - first) if last != first else 0.5) for value in values)
