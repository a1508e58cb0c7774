"""A figure of the score distributions of each row's training pairs, against a reference."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from synthbench.config.coordinates import Coordinates, values_text
from synthbench.reporting.figures.panels import MOST_PANELS, PanelTexts, look, panels_figure
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.experiment_notes import notes_without_scores
from synthbench.reporting.model.sections import MOST_NOTES, Block, CsvTable, Grid, Line, ReportSection
from synthbench.reporting.model.table import MISSING
from synthbench.reporting.results import RunResult
from synthbench.statistics.histograms import (
    BINS,
    FINE_BINS,
    coarse,
    density,
    divergence,
    levels,
    scott_bandwidth,
)

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from numpy.typing import NDArray

FIELDS = ("panel", "data", "n_records", "kl_nats", "bin_from", "bin_to", "count")
REFERENCE_COLOUR, REFERENCE_EDGE = "#D0D0D0", "#707070"
HIGHEST = 3.0  # highest density shown, in multiples of the reference's peak
KERNELS = "Gaussian kernel densities, reflected at 0 and 1, of Scott's bandwidth"
NARROWEST = 1 / FINE_BINS


@dataclass(frozen=True)
class ScoreSet:
    """The scores of one data set, or of all seeds' data sets together."""

    label: str
    counts: tuple[int, ...]

    @property
    def num_records(self) -> int:
        """The number of scores."""
        return sum(self.counts)

    @cached_property
    def density(self) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """The kernel density, as (scores, densities)."""
        return density(self.counts)

    @property
    def peak(self) -> float:
        """The highest density."""
        return float(self.density[1].max())


@dataclass(frozen=True)
class DensityPanel:
    """A panel of score sets: those at one point of the grid, or at several points with equal sets."""

    title: str
    reference: ScoreSet | None
    sets: tuple[ScoreSet, ...]

    @property
    def shown(self) -> tuple[ScoreSet, ...]:
        """The reference, if any, followed by all other sets."""
        return ((self.reference,) if self.reference else ()) + self.sets

    @property
    def prefix(self) -> str:
        """The panel's title and a colon, to go before the name of a set; "" without a title."""
        return f"{self.title}: " if self.title else ""

    def divergence(self, scores: ScoreSet) -> float | None:
        """Return a set's KL divergence from the reference in nats.

        None for the reference itself, or if the panel has no reference.
        """
        if self.reference is None or scores is self.reference:
            return None
        return divergence(scores.counts, self.reference.counts)


@dataclass(frozen=True)
class Densities:
    """All panels, and the notes beside them."""

    name: ClassVar = "densities"
    title: ClassVar = "Distribution of training pairs' scores"
    caption: str
    panels: tuple[DensityPanel, ...]
    notes: tuple[str, ...]

    @cached_property
    def section(self) -> ReportSection:
        """The sets as a table; the CSV file has a line per set and bin."""
        notes = (*_bin_notes(self), *self.notes)
        return ReportSection(
            self.name, CsvTable(FIELDS, list(_csv_lines(self))), (Block(self.caption, (_grid(self),)),), notes
        )

    @property
    def parts(self) -> "tuple[Densities, ...]":
        """The figure in parts that fit a page each."""
        starts = range(0, len(self.panels), MOST_PANELS)
        return tuple(replace(self, panels=self.panels[start : start + MOST_PANELS]) for start in starts)

    def draw(self, *, has_caption: bool = True) -> "Figure":
        """Return a figure of kernel densities of scores in [0, 1]; call it within `figure_style`."""
        labels = dict.fromkeys(each.label for panel in self.panels for each in panel.sets)
        looks = {label: look(number) for number, label in enumerate(labels)}
        handles = [of.handle(label, has_marker=False) for label, of in looks.items()]
        reference = _reference(self)
        if reference is not None:
            handles.insert(0, _reference_handle(reference.label))
        notes = (f"{KERNELS}{_widened(self)}.", *_cut_off(self), *_divergences(self))[:MOST_NOTES]
        texts = PanelTexts(
            self.caption if has_caption else "",
            [panel.title for panel in self.panels],
            "score",
            "density",
            notes,
        )
        figure, panels = panels_figure(texts, handles)
        for axes, panel in zip(panels, self.panels, strict=True):
            if panel.reference is not None:
                axes.fill_between(*panel.reference.density, color=REFERENCE_COLOUR, linewidth=0)
                axes.plot(*panel.reference.density, color=REFERENCE_EDGE, linewidth=0.8)
            for each in panel.sets:
                of = looks[each.label]
                axes.plot(*each.density, color=of.colour, linestyle=of.dashes, linewidth=1.3)
            axes.set_xlim(0, 1)
            axes.set_ylim(0, _height(self))
        return figure


def densities(analysis: Analysis) -> Densities | None:
    """Return the densities that `table.figures.densities` asks for; None if unset or without scores."""
    wanted, result = analysis.options.figures.densities, analysis.result
    if wanted is None:
        return None
    points: dict[Coordinates, dict[str, tuple[RunResult, ...]]] = {}
    for key, runs in analysis.grid_rows.items():
        points.setdefault(key.axes, {})[key.variant] = runs
    titles: dict[tuple[ScoreSet | None, tuple[ScoreSet, ...]], list[str]] = {}
    for coordinates, rows in points.items():
        everyone = [run for runs in rows.values() for run in runs]
        reference = _pooled(wanted.reference, everyone, wanted.reference) if wanted.reference else None
        sets = tuple(_sets(rows, wanted.parts))
        if sets:
            titles.setdefault((reference, sets), []).append(values_text(coordinates))
    panels = tuple(
        DensityPanel("" if len(titles) == 1 else ", ".join(of), *content) for content, of in titles.items()
    )
    caption = f"{Densities.title}: {result.description or result.experiment}"
    return Densities(caption, panels, notes_without_scores(analysis)) if panels else None


def _sets(rows: Mapping[str, Sequence[RunResult]], parts: Sequence[str]) -> Iterator[ScoreSet]:
    """Yield the scores of each row's training data; rows with equal scores share one set, named after all."""
    labels: dict[tuple[int, ...], list[str]] = {}
    for variant, runs in rows.items():
        for part in parts:
            label = variant if len(parts) == 1 else f"{variant}: {part}"
            found = _pooled(part, runs, label, untrained=False)
            if found is not None:
                labels.setdefault(found.counts, []).append(label)
    return (ScoreSet(", ".join(names), counts) for counts, names in labels.items())


def _pooled(part: str, runs: Sequence[RunResult], label: str, *, untrained: bool = True) -> ScoreSet | None:
    """Return all scores of a part, counting data shared by several runs once; None if there are none.

    Data that are not used for training count only with `untrained`.
    """
    distinct = {
        data.content_hash: data.score_counts
        for run in runs
        for data in run.datasets
        if data.part == part and data.score_counts and (untrained or data.trained_on)
    }
    counts = tuple(sum(column) for column in zip(*distinct.values(), strict=True))
    return ScoreSet(label, counts) if sum(counts) else None


def _reference(found: Densities) -> ScoreSet | None:
    return next((panel.reference for panel in found.panels if panel.reference), None)


def _grid(found: Densities) -> Grid:
    """Return a table of the sets: number of scores, divergence from the reference."""
    reference = _reference(found)
    lines: list[Line] = []
    for panel in found.panels:
        for each in panel.shown:
            value = panel.divergence(each)
            text = () if reference is None else (MISSING if value is None else f"{value:.3f}",)
            lines.append((panel.prefix + each.label, f"{each.num_records:,}", *text))
    divergence_title = () if reference is None else (f"KL from {reference.label}",)
    return Grid(("scores of", "records", *divergence_title), tuple(lines))


def _bin_notes(found: Densities) -> list[str]:
    """Return a note on the bins of the divergences; [] without a reference.

    The note names the panels that have a bin for each score of the reference.
    """
    titles: dict[int, list[str]] = {}
    for panel in found.panels:
        if panel.reference:
            titles.setdefault(len(levels(panel.reference.counts)), []).append(panel.title or "here")
    if not titles:
        return []
    others = [f"{', '.join(of)} {num}" for num, of in titles.items() if num]
    classes = f" ({'; '.join(others)}: one for each score of the reference)" if others else ""
    bins = f"over {BINS} bins{classes} with half a count added to each of the reference's"
    return [f"KL: Kullback-Leibler divergence in nats, {bins}."]


def _csv_lines(found: Densities) -> Iterator[list[object]]:
    for panel in found.panels:
        for each in panel.shown:
            value = panel.divergence(each)
            distance = "" if value is None else f"{value:.6f}"
            of_set = [panel.title, each.label, each.num_records, distance]
            for number, count in enumerate(coarse(each.counts)):
                yield [*of_set, f"{number / BINS:.2f}", f"{(number + 1) / BINS:.2f}", count]


def _height(found: Densities) -> float:
    """Return the top of the density axis of all panels, shared so that areas can be compared.

    At most `HIGHEST` times the reference's peak, so that the reference remains visible.
    """
    return max(
        min(
            1.05 * max(each.peak for each in panel.shown),
            math.inf if panel.reference is None else HIGHEST * panel.reference.peak,
        )
        for panel in found.panels
    )


def _cut_off(found: Densities) -> list[str]:
    """Return a note that names the curves higher than the panel and their peaks; [] if there are none."""
    height = _height(found)
    texts = [
        f"{panel.prefix}{each.label} (up to {each.peak:.1f})"
        for panel in found.panels
        for each in panel.sets
        if each.peak > height
    ]
    return [f"Cut off above: {', '.join(texts)}."] if texts else []


def _widened(found: Densities) -> str:
    """Return text that names the sets with widened kernels; "" if there are none.

    Scott's rule makes their kernels narrower than a bin of the stored scores.
    """
    names = dict.fromkeys(
        each.label
        for panel in found.panels
        for each in panel.shown
        if scott_bandwidth(each.counts) < NARROWEST
    )
    return f"; of {NARROWEST:g} where that is narrower: {', '.join(names)}" if names else ""


def _reference_handle(label: str) -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], color=REFERENCE_COLOUR, linewidth=6, label=label)


def _divergences(found: Densities) -> Iterator[str]:
    """Yield a line for each panel: the sets' divergences from the reference."""
    for panel in found.panels:
        values = [(each.label, panel.divergence(each)) for each in panel.sets]
        texts = [f"{label} {value:.2f}" for label, value in values if value is not None]
        if panel.reference is not None and texts:
            yield f"{panel.prefix}KL from {panel.reference.label}: {', '.join(texts)}."
