"""How well dev scores on the way rank the seeds: against their dev scores in the end."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from synthbench.escaping import CsvWriter
from synthbench.reporting.model.grids import Grid
from synthbench.reporting.model.notes import data_notes
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.options import TableOptions
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.reporting.statistics import aggregate

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
    """All rows that were scored on dev several times, with three seeds or more; the others by name."""

    caption: str
    rows: tuple[EarlyDev, ...]
    left_out: tuple[str, ...]
    notes: tuple[str, ...]


def early_dev(result: ExperimentResult) -> EarlyDevs | None:
    """Return what `table.figures.early_dev` asks for, None if it asks for nothing or no row has it.

    Seeds with an undefined dev score do not count. Rows with seed optimisation have none: of their seeds only
    the best on dev went on.
    """
    options = TableOptions.model_validate(result.table)
    if not options.figures.early_dev:
        return None
    keys = aggregate.rows(result)
    found = {key: points for key, runs in keys.items() if (points := _points(runs))}
    names = _names(list(found))
    rows = tuple(
        EarlyDev(key.variant, key.axes, name, num_seeds, points)
        for (key, (num_seeds, points)), name in zip(found.items(), names, strict=True)
    )
    caption = f"How dev scores on the way rank the seeds: {result.description or result.experiment}"
    left_out = tuple(key.label for key in keys if key not in found)
    return EarlyDevs(caption, rows, left_out, data_notes(result)) if rows else None


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
        texts = (MISSING if (value := at.get(share)) is None else _signed(value) for share in shares)
        lines.append((row.label, str(row.num_seeds), *texts))
    return Grid(found.caption, ("", "seeds", *(f"{share} %" for share in shares)), tuple(lines))


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def grid_notes(found: EarlyDevs) -> tuple[str, ...]:
    """Return what stands below the grid."""
    nums = sorted({row.num_seeds for row in found.rows})
    limits = (
        ", ".join(f"{_limit(num):.2f} ({num})" for num in nums) if len(nums) > 1 else f"{_limit(nums[0]):.2f}"
    )
    notes = [
        f"{WHAT.format(' to '.join(map(str, dict.fromkeys((nums[0], nums[-1])))))}.",
        f"With so many seeds chance alone gives a correlation beyond ±{limits} in one case of twenty.",
    ]
    if any(point.correlation is None for row in found.rows for point in row.points):
        notes.append(f"{MISSING} Undefined.")
    if found.left_out:
        why = "fewer than three seeds, no dev scores on the way, or starts of which the best alone went on"
        notes.append(f"Left out ({why}): {', '.join(found.left_out)}.")
    return (*notes, *found.notes)


def _limit(num_seeds: int) -> float:
    """Return the correlation that passes the 5 % by Student's t, two-sided."""
    from scipy.stats import t

    quantile = float(t.ppf(0.975, num_seeds - 2))
    return quantile / math.sqrt(num_seeds - 2 + quantile**2)


def csv_early_dev(found: EarlyDevs) -> str:
    """Return a line for each row and each step at which dev was scored."""
    text = io.StringIO()
    writer = CsvWriter(text)
    writer.writerow(FIELDS)
    for row in found.rows:
        axis = "; ".join(f"{name}={value}" for name, value in row.axes)
        for point in row.points:
            value = "" if point.correlation is None else f"{point.correlation:.6f}"
            writer.writerow([row.variant, axis, point.step, f"{point.share:.6f}", value, row.num_seeds])
    return text.getvalue()
