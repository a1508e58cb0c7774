"""All figures beside that of the scores."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar, Protocol

from synthbench.reporting.figures.confusion import confusions
from synthbench.reporting.figures.curves import curves
from synthbench.reporting.figures.densities import densities
from synthbench.reporting.figures.early_dev import early_dev
from synthbench.reporting.figures.frontier import frontier
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.sections import Section

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Study(Protocol):
    """What a figure shows, with the numbers behind it."""

    name: ClassVar[str]
    """The name of its files."""
    title: ClassVar[str]

    @property
    def section(self) -> Section | None:
        """Its numbers as tables, if it has any."""

    def draw(self, *, has_caption: bool = True) -> "Figure | None":
        """Return the figure, if there is anything to draw; without its caption it has no notes either."""


FIND: Mapping[str, Callable[[Analysis], Study | None]] = {
    "curves": curves,
    "densities": densities,
    "early_dev": early_dev,
    "frontier": frontier,
    "confusion": confusions,
}
"""Name of a figure -> finds what it shows; None where it is not asked for."""


def studies(analysis: Analysis) -> tuple[Study, ...]:
    """Return what the figures of a report show."""
    found = (find(analysis) for find in FIND.values())
    return tuple(study for study in found if study is not None)
