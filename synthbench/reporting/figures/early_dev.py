"""A figure of the rank correlation between seeds' early and final dev scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from synthbench.config.coordinates import RowKey, values_text
from synthbench.config.table_options import FEWEST_SEEDS
from synthbench.reporting.figures.panels import PanelTexts, look, panels_figure
from synthbench.reporting.figures.style import TEXT_COLOUR, write_at_right
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import notes_without_scores
from synthbench.reporting.model.sections import Block, CsvTable, Grid, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import RunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEV_SCORE = "dev_score"
FIELDS = ("row", "axis", "step", "share_of_steps", "rank_correlation", "n_seeds")
# AugSBERT's paper reports a correlation of over 0.8 at about 20 % of the steps.
EARLY_PERCENT, HIGH_CORRELATION = 20, 0.8
WHAT = (
    "Spearman's rank correlation over {} seeds of dev scores after a share of the steps with the final ones"
)


@dataclass(frozen=True)
class EarlyPoint:
    """The correlation, over seeds, of dev scores after a step with final dev scores.

    `correlation` is None if all seeds have the same score after the step or at the end. `share`: the step as
    a share of all steps, in (0, 1].
    """

    step: int
    share: float
    correlation: float | None


@dataclass(frozen=True)
class EarlyDev:
    """A row's correlations, up to the last step."""

    key: RowKey
    label: str
    num_seeds: int
    points: tuple[EarlyPoint, ...]


@dataclass(frozen=True)
class EarlyDevs:
    """The rows with three or more seeds and several dev scores each; `left_out` names the other rows.

    `uneven` names the rows left out since fewer than three seeds have a defined dev score at every step.
    """

    name: ClassVar = "early_dev"
    title: ClassVar = "Early dev scores"
    caption: str
    rows: tuple[EarlyDev, ...]
    left_out: tuple[str, ...]
    uneven: tuple[str, ...]
    notes: tuple[str, ...]

    @cached_property
    def section(self) -> ReportSection:
        """The correlations as a table, rows by share of the steps; the CSV file has a line for each point."""
        lines = [
            [
                *(row.key.variant, row.key.csv_axes, point.step, f"{point.share:.6f}"),
                "" if point.correlation is None else f"{point.correlation:.6f}",
                row.num_seeds,
            ]
            for row in self.rows
            for point in row.points
        ]
        notes = (*_notes(self), *self.notes)
        return ReportSection(
            self.name, CsvTable(FIELDS, lines), (Block(self.caption, (_grid(self),)),), notes
        )

    @property
    def parts(self) -> "tuple[EarlyDevs]":
        """The figure alone, since it fits a page."""
        return (self,)

    def draw(self, *, has_caption: bool = True) -> "Figure":
        """Return a figure: correlation of early and final dev scores; call it within `figure_style`."""
        looks = [look(number) for number in range(len(self.rows))]
        handles = [of.handle(_label(row, self)) for row, of in zip(self.rows, looks, strict=True)]
        texts = PanelTexts(
            self.caption if has_caption else "",
            [""],
            "% of the steps",
            "rank correlation",
            self.section.first_notes,
        )
        figure, (panel,) = panels_figure(texts, handles)
        _draw_guides(panel)
        for row, of in zip(self.rows, looks, strict=True):
            points = [point for point in row.points if point.correlation is not None]
            panel.plot(
                [100 * point.share for point in points],
                [point.correlation for point in points],  # type: ignore[arg-type]
                color=of.colour,
                marker=of.marker,
                markersize=3.5,
                linestyle=of.dashes,
                linewidth=1.1,
            )
        panel.set_xlim(0, 102)
        panel.set_xticks(range(0, 101, 20))
        panel.set_ylim(top=1.04)
        return figure


def early_dev(analysis: Analysis) -> EarlyDevs | None:
    """Return the correlations that `table.figures.early_dev` asks for; None if unset or if no row has any.

    A seed counts only if it has a defined dev score at every step at which any seed of its row has a score.
    Rows with seed optimisation have no correlations, since only the best training of each seed was finished.
    """
    if not analysis.options.figures.early_dev:
        return None
    keys, result = analysis.grid_rows, analysis.result
    found = {key: points for key, runs in keys.items() if (points := _points(runs))}
    names = _names(list(found))
    rows = tuple(
        EarlyDev(key, name, num_seeds, points)
        for (key, (num_seeds, points)), name in zip(found.items(), names, strict=True)
    )
    caption = f"How early dev scores rank the seeds: {result.description or result.experiment}"
    uneven = tuple(key.label for key in keys if key not in found and _is_uneven(keys[key]))
    left_out = tuple(key.label for key in keys if key not in found and key.label not in uneven)
    return EarlyDevs(caption, rows, left_out, uneven, notes_without_scores(analysis)) if rows else None


def _names(keys: Sequence[RowKey]) -> list[str]:
    """Name rows by their differences: coordinates, variant or both."""
    has_variants = len({key.variant for key in keys}) > 1
    return [key.title if has_variants else values_text(key.axes) or key.variant for key in keys]


def _points(runs: Sequence[RunResult]) -> tuple[int, tuple[EarlyPoint, ...]] | None:
    """Return the number of seeds and the correlations; None if nothing can be correlated."""
    steps = sorted({step for run in runs for step in _dev_scores(run)})
    curves = [scores for run in runs if _is_complete(scores := _dev_scores(run), steps)]
    if len(curves) < FEWEST_SEEDS or len(steps) < 2 or any(run.num_starts > 1 for run in runs):
        return None
    end = [scores[steps[-1]] for scores in curves]
    return len(curves), tuple(
        EarlyPoint(step, step / steps[-1], _correlation([scores[step] for scores in curves], end))
        for step in steps
    )


def _is_uneven(runs: Sequence[RunResult]) -> bool:
    """Return whether enough seeds have several dev scores each, without seed optimisation.

    If such a row has no correlations, too few of its seeds have a defined dev score at every step.
    """
    curves = [scores for run in runs if len(scores := _dev_scores(run)) > 1]
    return len(curves) >= FEWEST_SEEDS and not any(run.num_starts > 1 for run in runs)


def _dev_scores(run: RunResult) -> dict[int, float]:
    return {step: value for step, name, value in run.history if name == DEV_SCORE}


def _is_complete(scores: Mapping[int, float], steps: Sequence[int]) -> bool:
    return all(math.isfinite(scores.get(step, math.nan)) for step in steps)


def _correlation(scores: Sequence[float], end: Sequence[float]) -> float | None:
    from scipy.stats import spearmanr

    if len(set(scores)) == 1 or len(set(end)) == 1:
        return None
    return float(spearmanr(scores, end).statistic)


def _grid(found: EarlyDevs) -> Grid:
    """Return a table: a line per row, a column per share of the steps, in percent with enough digits."""
    digits = 0
    while any(len({_percent(point, digits) for point in row.points}) < len(row.points) for row in found.rows):
        digits += 1
    shares = sorted({_percent(point, digits) for row in found.rows for point in row.points})
    lines = []
    for row in found.rows:
        at = {_percent(point, digits): point.correlation for point in row.points}
        texts = (MISSING if (value := at.get(share)) is None else _signed(value) for share in shares)
        lines.append((row.label, str(row.num_seeds), *texts))
    return Grid(("", "seeds", *(f"{share:.{digits}f} %" for share in shares)), tuple(lines))


def _percent(point: EarlyPoint, digits: int) -> float:
    return round(100 * point.share, digits)


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _notes(found: EarlyDevs) -> list[str]:
    nums = sorted({row.num_seeds for row in found.rows})
    limits = (
        ", ".join(f"{_limit(num):.2f} ({num})" for num in nums) if len(nums) > 1 else f"{_limit(nums[0]):.2f}"
    )
    notes = [
        f"{WHAT.format(' to '.join(map(str, dict.fromkeys((nums[0], nums[-1])))))}.",
        f"Chance alone gives a correlation beyond ±{limits} in one case of twenty.",
    ]
    if any(point.correlation is None for row in found.rows for point in row.points):
        notes.append(f"{MISSING} Undefined.")
    if found.left_out:
        why = "fewer than three seeds, no early dev scores, or seed optimisation"
        notes.append(f"Left out ({why}): {', '.join(found.left_out)}.")
    if found.uneven:
        why = "fewer than three seeds with a defined dev score at every step of the row"
        notes.append(f"Left out ({why}): {', '.join(found.uneven)}.")
    return notes


def _limit(num_seeds: int) -> float:
    """Return the smallest correlation that is significant at 5 % by Student's t, two-sided."""
    from scipy.stats import t

    quantile = float(t.ppf(0.975, num_seeds - 2))
    return quantile / math.sqrt(num_seeds - 2 + quantile**2)


def _label(row: EarlyDev, found: EarlyDevs) -> str:
    is_same = len({each.num_seeds for each in found.rows}) == 1
    return row.label if is_same else f"{row.label} (n = {row.num_seeds})"


def _draw_guides(panel: "Axes") -> None:
    """Draw lines for the finding of AugSBERT's paper: a correlation of over 0.8 at 20 % of the steps."""
    panel.axvline(EARLY_PERCENT, color=TEXT_COLOUR, linewidth=0.9, linestyle=(0, (1, 1)))
    panel.axhline(HIGH_CORRELATION, color=TEXT_COLOUR, linewidth=0.9, linestyle=(0, (1, 1)))
    write_at_right(panel, f"{HIGH_CORRELATION}", HIGH_CORRELATION, 2, TEXT_COLOUR)
