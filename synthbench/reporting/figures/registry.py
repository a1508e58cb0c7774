"""The figures that `table.figures` asks for, with the numbers behind them in every format; that of audits."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from synthbench.reporting.figures.confusion import confusion_figure
from synthbench.reporting.figures.curves import csv_curves, curves
from synthbench.reporting.figures.curves_figure import curves_figure
from synthbench.reporting.figures.densities import csv_densities, densities, density_grid
from synthbench.reporting.figures.densities import grid_notes as density_notes
from synthbench.reporting.figures.densities_figure import densities_figure
from synthbench.reporting.figures.early_dev import csv_early_dev, early_dev, early_dev_grid
from synthbench.reporting.figures.early_dev import grid_notes as early_dev_notes
from synthbench.reporting.figures.early_dev_figure import early_dev_figure
from synthbench.reporting.figures.frontier import csv_frontier, frontier
from synthbench.reporting.figures.frontier_figure import frontier_figure
from synthbench.reporting.model.grids import Grid, latex_document, markdown_document, terminal_grid
from synthbench.reporting.render.latex_layout import layout_of
from synthbench.reporting.results import ExperimentResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType

FIGURES = ("curves", "densities", "early_dev", "frontier", "confusion")
TABLES = (
    "curves.csv",
    "frontier.csv",
    *(f"{name}.{ending}" for name in ("densities", "early_dev") for ending in ("tex", "md", "csv")),
)


def study_tables(result: ExperimentResult) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of the tables."""
    found_curves = curves(result)
    if found_curves is not None:
        yield "curves.csv", csv_curves(found_curves)
    found_frontier = frontier(result)
    if found_frontier is not None:
        yield "frontier.csv", csv_frontier(found_frontier)
    found_densities, found_early = densities(result), early_dev(result)
    for name, grid, notes in study_grids(result):
        yield f"{name}.tex", latex_document(grid, notes, layout_of(result, name))
        yield f"{name}.md", markdown_document(grid, notes)
    if found_densities is not None:
        yield "densities.csv", csv_densities(found_densities)
    if found_early is not None:
        yield "early_dev.csv", csv_early_dev(found_early)


def study_figures(result: ExperimentResult, *, has_caption: bool) -> "Iterator[tuple[str, Figure]]":
    """Yield the figures by name, with title and notes or without; call it within `figure_style`."""

    def titled(caption: str) -> str:
        return caption if has_caption else ""

    found_curves, found_densities, found_early = curves(result), densities(result), early_dev(result)
    if found_curves is not None:
        yield "curves", curves_figure(replace(found_curves, caption=titled(found_curves.caption)))
    if found_densities is not None:
        yield "densities", densities_figure(replace(found_densities, caption=titled(found_densities.caption)))
    if found_early is not None:
        yield "early_dev", early_dev_figure(replace(found_early, caption=titled(found_early.caption)))
    found_frontier = frontier(result)
    if found_frontier is not None and found_frontier.has_points:
        yield "frontier", frontier_figure(replace(found_frontier, caption=titled(found_frontier.caption)))
    found_confusion = confusion_figure(result, has_caption=has_caption)
    if found_confusion is not None:
        yield "confusion", found_confusion


def terminal_studies(result: ExperimentResult) -> "Iterator[RenderableType]":
    """Yield what rich prints of the tables."""
    return (terminal_grid(grid, notes) for _, grid, notes in study_grids(result))


def study_grids(result: ExperimentResult) -> Iterator[tuple[str, Grid, tuple[str, ...]]]:
    """Yield the tables that printers share: name, grid and what must be known beside it."""
    found_densities, found_early = densities(result), early_dev(result)
    if found_densities is not None:
        yield "densities", density_grid(found_densities), density_notes(found_densities)
    if found_early is not None:
        yield "early_dev", early_dev_grid(found_early), early_dev_notes(found_early)
