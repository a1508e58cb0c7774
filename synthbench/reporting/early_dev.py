"""How well dev scores on the way rank the seeds: against their dev scores in the end."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.reporting import aggregate
from synthbench.reporting.grids import Grid
from synthbench.reporting.notes import data_notes
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.table import MISSING

DEV_SCORE = "dev_score"
FEWEST_SEEDS = 3
FIELDS = ("row", "axis", "step", "share_of_steps", "rank_correlation", "n_seeds")
WHAT = (
    "Spearman's rank correlation over {} seeds: dev scores after a share of the steps against the last ones"
)


@dataclass(frozen=True)
class EarlyPoint:
    """After a step; the correlation is None where all seeds have the same score."""

    step: int
    share: float
    correlation: float | None


@dataclass(frozen=True)
class EarlyDev:
    """A row's points, the last of them the end itself."""

    variant: str
    axes: aggregate.Place
    label: str
    num_seeds: int
    points: tuple[EarlyPoint, ...]


@dataclass(frozen=True)
class EarlyDevs:
    """All rows that were scored on dev several times, with three seeds or more."""

    caption: str
    rows: tuple[EarlyDev, ...]
    notes: tuple[str, ...]


def early_dev(result: ExperimentResult) -> EarlyDevs | None:
    """Return what `table.figures.early_dev` asks for, None if it asks for nothing or no row has it.

    Seeds with an undefined dev score do not count. Rows with seed optimisation have none: of their seeds only
    the best on dev went on.
    """
    options = TableOptions.model_validate(result.table)
    if not options.figures.early_dev:
        return None
    found = {key: points for key, runs in aggregate.rows(result).items() if (points := _points(runs))}
    names = _names(list(found))
    rows = tuple(
        EarlyDev(key.variant, key.axes, name, num_seeds, points)
        for (key, (num_seeds, points)), name in zip(found.items(), names, strict=True)
    )
    caption = options.caption or result.description or result.experiment
    return EarlyDevs(caption, rows, data_notes(result)) if rows else None


def _names(keys: Sequence[aggregate.RowKey]) -> list[str]:
    """Name rows by what differs between them: the values of the grid, the variant."""
    several = len({key.variant for key in keys}) > 1
    names = []
    for key in keys:
        values = ", ".join(value for _, value in key.axes)
        names.append(f"{key.variant} ({values})" if several and values else values or key.variant)
    return names


def _points(runs: Sequence[RunResult]) -> tuple[int, tuple[EarlyPoint, ...]] | None:
    """Return the number of seeds and the points; None where nothing can be correlated."""
    steps = sorted({step for run in runs for step in _dev_scores(run)})
    curves = [scores for run in runs if _is_complete(scores := _dev_scores(run), steps)]
    if len(curves) < FEWEST_SEEDS or len(steps) < 2 or any(run.num_starts > 1 for run in runs):
        return None
    end = [scores[steps[-1]] for scores in curves]
    return len(curves), tuple(
        EarlyPoint(step, step / steps[-1], _correlation([scores[step] for scores in curves], end))
        for step in steps
    )


def _dev_scores(run: RunResult) -> dict[int, float]:
    return {step: value for step, name, value in run.history if name == DEV_SCORE}


def _is_complete(scores: Mapping[int, float], steps: Sequence[int]) -> bool:
    return all(math.isfinite(scores.get(step, math.nan)) for step in steps)


def _correlation(scores: Sequence[float], end: Sequence[float]) -> float | None:
    from scipy.stats import spearmanr

    if len(set(scores)) == 1 or len(set(end)) == 1:
        return None
    return float(spearmanr(scores, end).statistic)


def early_dev_grid(found: EarlyDevs) -> Grid:
    """Return a line for each row, a column for each share of the steps in percent."""
    shares = sorted({round(100 * point.share) for row in found.rows for point in row.points})
    lines = []
    for row in found.rows:
        at = {round(100 * point.share): point.correlation for point in row.points}
        texts = (MISSING if (value := at.get(share)) is None else f"{value:.2f}" for share in shares)
        lines.append((row.label, str(row.num_seeds), *texts))
    return Grid(found.caption, ("", "seeds", *(f"{share} %" for share in shares)), tuple(lines))


def grid_notes(found: EarlyDevs) -> tuple[str, ...]:
    """Return what stands below the grid."""
    undefined = any(point.correlation is None for row in found.rows for point in row.points)
    numbers = " to ".join(map(str, dict.fromkeys(f(row.num_seeds for row in found.rows) for f in (min, max))))
    return (f"{WHAT.format(numbers)}.", *([f"{MISSING} Undefined."] if undefined else []), *found.notes)


def csv_early_dev(found: EarlyDevs) -> str:
    """Return a line for each row and each step at which dev was scored."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(FIELDS)
    for row in found.rows:
        axis = "; ".join(f"{name}={value}" for name, value in row.axes)
        for point in row.points:
            value = "" if point.correlation is None else f"{point.correlation:.6f}"
            writer.writerow([row.variant, axis, point.step, f"{point.share:.6f}", value, row.num_seeds])
    return text.getvalue()
