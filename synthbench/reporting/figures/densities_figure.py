"""Distributions of scores as a figure: a line for each data set, the reference as an area."""

import math
from typing import TYPE_CHECKING

from synthbench.reporting.figures.densities import Densities, DensityPanel, grid_notes
from synthbench.reporting.figures.panels import Texts, look, panels_figure
from synthbench.reporting.statistics.histograms import FINE_BINS, density, scott_bandwidth

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

REFERENCE_COLOUR, REFERENCE_EDGE = "#D0D0D0", "#707070"
HIGHEST = 3.0  # times the highest density of the reference
KERNELS = "Gaussian kernel densities, reflected at 0 and 1, of Scott's bandwidth"
NARROWEST = 1 / FINE_BINS


def densities_figure(found: Densities) -> "Figure":
    """Return kernel densities of scores in [0, 1]; call it within `figure_style`."""
    looks = {label: look(number) for number, label in enumerate(found.labels)}
    handles = [of.handle(label, has_marker=False) for label, of in looks.items()]
    reference = next((panel.reference for panel in found.panels if panel.reference), None)
    if reference is not None:
        handles.insert(0, _reference_handle(reference.label))
    titles = [panel.title for panel in found.panels]
    notes = (f"{KERNELS}{_widened(found)}.", *_divergences(found), *grid_notes(found), *_cut_off(found))
    figure, panels = panels_figure(Texts(found.caption, titles, "score", "density", notes), handles)
    for axes, panel in zip(panels, found.panels, strict=True):
        _draw_reference(axes, panel)
        for each in panel.sets:
            of = looks[each.label]
            axes.plot(*density(each.counts), color=of.colour, linestyle=of.dashes, linewidth=1.3)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, _height(found))
    return figure


def peaks(panel: DensityPanel) -> list[float]:
    """Return the highest density of each set, and of the reference."""
    shown = (*panel.sets, *([panel.reference] if panel.reference else []))
    return [float(density(each.counts)[1].max()) for each in shown]


def _height(found: Densities) -> float:
    """Return the density up to which all panels go, so that areas can be compared."""
    return max(min(1.05 * max(peaks(panel)), _most(panel)) for panel in found.panels)


def _most(panel: DensityPanel) -> float:
    """Return the highest density that is shown, beside which the reference can still be seen."""
    return math.inf if panel.reference is None else HIGHEST * peaks(panel)[-1]


def _cut_off(found: Densities) -> list[str]:
    """Say which lines go beyond the panel, and how high."""
    texts = [
        f"{f'{panel.title}: ' if panel.title else ''}{each.label} (up to {peak:.1f})"
        for panel in found.panels
        for each, peak in zip(panel.sets, peaks(panel), strict=False)
        if peak > _height(found)
    ]
    return [f"Cut off above: {', '.join(texts)}."] if texts else []


def _widened(found: Densities) -> str:
    """Name the sets whose kernels would be narrower than the bins in which scores are kept."""
    names = dict.fromkeys(
        each.label
        for panel in found.panels
        for each in (*([panel.reference] if panel.reference else []), *panel.sets)
        if scott_bandwidth(each.counts) < NARROWEST
    )
    return f"; of {NARROWEST:g} where that is narrower: {', '.join(names)}" if names else ""


def _draw_reference(axes: "Axes", panel: DensityPanel) -> None:
    if panel.reference is not None:
        places, values = density(panel.reference.counts)
        axes.fill_between(places, values, color=REFERENCE_COLOUR, linewidth=0)
        axes.plot(places, values, color=REFERENCE_EDGE, linewidth=0.8)


def _reference_handle(label: str) -> "Line2D":
    from matplotlib.lines import Line2D

    return Line2D([], [], color=REFERENCE_COLOUR, linewidth=6, label=label)


def _divergences(found: Densities) -> list[str]:
    """Say how far each set is from the reference, a line for each panel."""
    lines = []
    for panel in found.panels:
        values = [(each.label, panel.divergence(each)) for each in panel.sets]
        texts = [f"{label} {value:.2f}" for label, value in values if value is not None]
        if panel.reference is not None and texts:
            of = f"{panel.title}: " if panel.title else ""
            lines.append(f"{of}KL from {panel.reference.label}: {', '.join(texts)}.")
    return lines
