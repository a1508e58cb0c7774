"""Put names beside the points of a panel so that they hide neither each other nor a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from synthbench.reporting.figures.style import POINTS_PER_INCH, SMALL_FONT_SIZE, text_height, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Points.
GAP, MARKER = 3.5, 5.0
SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
"""Sides of a point for its name, the best first: right, left, above, below, and the corners."""


@dataclass(frozen=True)
class Box:
    """A rectangle, in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: "Box") -> float:
        """Return the common area."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    @property
    def area(self) -> float:
        """Width times height."""
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class Named:
    """A point with its interval, in the panel's data."""

    text: str
    x: float
    y: float
    half_width: float


def label_points(panel: "Axes", points: Sequence[Named], line: Sequence[tuple[float, float]] = ()) -> float:
    """Write the names beside their points and return the area of what is hidden, in square points.

    The figure must have been laid out; names change nothing of that. Points are named one after the other,
    each where it hides the least of points, intervals, names before it, and of a line of level and upright
    pieces from corner to corner.
    """
    scale = POINTS_PER_INCH / panel.get_figure(root=True).dpi  # type: ignore[union-attr]
    room = Box(*(float(end) * scale for end in panel.get_window_extent().extents))
    corners = [tuple(panel.transData.transform(corner) * scale) for corner in line]
    taken = [_piece(*ends) for ends in pairwise(corners)]
    taken += [box for point in points for box in _drawn(panel, point, scale)]
    hidden = 0.0
    for point in points:
        x, y = (float(value) * scale for value in panel.transData.transform((point.x, point.y)))
        width = text_width(point.text, SMALL_FONT_SIZE) * POINTS_PER_INCH
        height = text_height(point.text, SMALL_FONT_SIZE) * POINTS_PER_INCH
        boxes = [_beside(x, y, (width, height), side) for side in SIDES]
        losses = [box.area - box.overlap(room) + sum(box.overlap(other) for other in taken) for box in boxes]
        best = min(range(len(SIDES)), key=losses.__getitem__)
        hidden += losses[best]
        taken.append(boxes[best])
        _write(panel, point, SIDES[best])
    return hidden


def _drawn(panel: "Axes", point: Named, scale: float) -> list[Box]:
    """Return what marker and interval take."""
    x, low = (float(v) * scale for v in panel.transData.transform((point.x, point.y - point.half_width)))
    _, high = (float(v) * scale for v in panel.transData.transform((point.x, point.y + point.half_width)))
    middle, half = (low + high) / 2, MARKER / 2
    marker = Box(x - half, middle - half, x + half, middle + half)
    return [marker, Box(x - 0.5, low, x + 0.5, high)]


def _piece(one: tuple[float, float], other: tuple[float, float]) -> Box:
    """Return what a level or upright piece of a line takes, a point wide."""
    (left, right), (bottom, top) = (sorted(map(float, ends)) for ends in zip(one, other, strict=True))
    return Box(left - 0.5, bottom - 0.5, right + 0.5, top + 0.5)


def _beside(x: float, y: float, size: tuple[float, float], side: tuple[int, int]) -> Box:
    """Return the box of a text of this size on a side of a point."""
    width, height = size
    to_side, up = _offset(side)
    left = x + to_side - (0, width, width / 2)[(side[0] < 0) + 2 * (side[0] == 0)]
    bottom = y + up - (0, height, height / 2)[(side[1] < 0) + 2 * (side[1] == 0)]
    return Box(left, bottom, left + width, bottom + height)


def _offset(side: tuple[int, int]) -> tuple[float, float]:
    """Return how far off a text begins; in a corner it may come nearer in height."""
    across, up = side
    return across * GAP, up * (GAP if across == 0 else 0.5)


def _write(panel: "Axes", point: Named, side: tuple[int, int]) -> None:
    text = panel.annotate(
        point.text,
        (point.x, point.y),
        xytext=_offset(side),
        textcoords="offset points",
        ha=("left", "right", "center")[(side[0] < 0) + 2 * (side[0] == 0)],
        va=("bottom", "top", "center")[(side[1] < 0) + 2 * (side[1] == 0)],
        size=SMALL_FONT_SIZE,
    )
    text.set_in_layout(False)
