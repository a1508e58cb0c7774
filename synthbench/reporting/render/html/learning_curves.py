"""Learning curves on the page: each row's dev scores and losses by step, a curve per seed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from synthbench.config.coordinates import values_text
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.results import RunResult

WIDTH, HEIGHT = 300.0, 130.0
LEFT, RIGHT, TOP, BOTTOM = 60.0, 8.0, 10.0, 22.0
FEWEST_POINTS = 3
MOST_HINTS = 40
"""A curve with more points has no tooltips."""
QUANTITIES = (("dev_score", "dev score × 100", 100.0), ("loss", "training loss", 1.0))


@dataclass(frozen=True)
class SeedCurve:
    """One seed's curve: its points in the format of an SVG polyline, and dots as (x, y, tooltip)."""

    name: str
    points: str
    dots: tuple[tuple[float, float, str], ...]


@dataclass(frozen=True)
class Chart:
    """One quantity of one row; `bottom` and `top` label the ends of the vertical axis.

    `left_out`: the seeds without a curve, since a value is NaN or infinite.
    """

    title: str
    bottom: str
    top: str
    last_step: str
    curves: tuple[SeedCurve, ...]
    left_out: tuple[int, ...]


def learning_curves(analysis: Analysis) -> tuple[tuple[str, tuple[Chart, ...]], ...]:
    """Return (row, charts) for each row that has a learning curve of at least three points.

    A seed with a value that is NaN or infinite has no curve; the chart names it.
    """
    found = (
        (values_text((("", key.variant), *key.axes)), tuple(_charts(runs)))
        for key, runs in analysis.grid_rows.items()
    )
    return tuple((row, charts) for row, charts in found if charts)


def _charts(runs: Sequence[RunResult]) -> Iterator[Chart]:
    for name, title, factor in QUANTITIES:
        paths = {
            run.seed: [(step, factor * value) for step, each, value in run.history if each == name]
            for run in runs
        }
        paths = {seed: path for seed, path in paths.items() if len(path) >= FEWEST_POINTS}
        drawn = {seed: path for seed, path in paths.items() if all(math.isfinite(value) for _, value in path)}
        values = [value for path in drawn.values() for _, value in path]
        if paths:
            low, high = min(values, default=math.nan), max(values, default=math.nan)
            last = max(step for path in paths.values() for step, _ in path)
            yield Chart(
                title=title,
                bottom=f"{low:.3g}",
                top=f"{high:.3g}",
                last_step=f"{last:,}",
                curves=tuple(_curve(seed, path, (low, high), last) for seed, path in drawn.items()),
                left_out=tuple(seed for seed in paths if seed not in drawn),
            )


def _curve(seed: int, path: Sequence[tuple[int, float]], ends: tuple[float, float], last: int) -> SeedCurve:
    low, high = ends

    def place(step: int, value: float) -> tuple[float, float]:
        share = (value - low) / (high - low) if high > low else 0.5
        x = LEFT + (WIDTH - LEFT - RIGHT) * step / last
        return round(x, 1), round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)

    placed = [place(*point) for point in path]
    hints = [f"seed {seed}, step {step:,}: {value:.4g}" for step, value in path]
    dots = tuple((x, y, hint) for (x, y), hint in zip(placed, hints, strict=True))
    return SeedCurve(
        name=f"seed {seed}",
        points=" ".join(f"{x},{y}" for x, y in placed),
        dots=dots if len(dots) <= MOST_HINTS else (),
    )
