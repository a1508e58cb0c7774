"""Write names beside a panel's points so that they hide neither each other nor a point."""

import math
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
"""Directions from a point to its name, best first: right, left, above, below, corners."""
DISTANCES = (GAP, 10.0, 17.0, 25.0, 34.0, 44.0, 55.0)
"""Distances of a name from its point; from the second on, a line connects them."""
LEADER_COLOUR, LEADER_WIDTH, LEADER_STEP = "#888888", 0.4, 1.5


@dataclass(frozen=True)
class Box:
    """A rectangle, in points."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: "Box") -> float:
        """Return the area of the intersection."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(width, 0.0) * max(height, 0.0)

    @property
    def area(self) -> float:
        """Width times height."""
        return (self.right - self.left) * (self.top - self.bottom)


@dataclass(frozen=True)
class Named:
    """A point with its interval, in data coordinates, and its name."""

    text: str
    x: float
    y: float
    half_width: float


@dataclass(frozen=True)
class _Position:
    """A position of a name: direction and distance (points) from its point."""

    side: tuple[int, int]
    distance: float

    @property
    def offset(self) -> tuple[float, float]:
        """The distance to the text's edge in x and y; at corners, y is smaller."""
        across, up = self.side
        is_near_corner = across != 0 and not self.has_leader
        return across * self.distance, up * (0.5 if is_near_corner else self.distance)

    @property
    def has_leader(self) -> bool:
        """Whether a line connects the point and its name."""
        return self.distance > GAP


def label_points(
    panel: "Axes",
    points: Sequence[Named],
    line: Sequence[tuple[float, float]] = (),
    *,
    with_leaders: bool = False,
) -> float:
    """Write the names beside their points; return the area that they hide, in square points.

    The figure must have been laid out; names do not change its layout. Names are placed one after the other,
    each where it hides least of points, intervals, earlier names, and `line`, given by its corners, whose
    pieces are horizontal or vertical. `with_leaders`: names may be farther away, connected by a thin line.
    """
    scale = POINTS_PER_INCH / panel.get_figure(root=True).dpi  # type: ignore[union-attr]
    room = Box(*(float(end) * scale for end in panel.get_window_extent().extents))
    corners = [tuple(panel.transData.transform(corner) * scale) for corner in line]
    taken = [_piece(*ends) for ends in pairwise(corners)]
    taken += [box for point in points for box in _drawn(panel, point, scale)]
    names: list[Box] = []
    hidden = 0.0
    for point in points:
        x, y = (float(value) * scale for value in panel.transData.transform((point.x, point.y)))
        loss, place, boxes = _best_position(
            point.text, (x, y), (room, taken, names), with_leaders=with_leaders
        )
        hidden += loss
        names.append(boxes[0])
        taken += boxes
        _write(panel, point, place)
    return hidden


def _best_position(
    text: str, at: tuple[float, float], among: tuple[Box, Sequence[Box], Sequence[Box]], *, with_leaders: bool
) -> tuple[float, _Position, list[Box]]:
    """Return the position that hides least: the hidden area, the position, the boxes of text and leader.

    Among equally good positions the nearest is chosen. Leaders may cross points and lines, but no name.
    """
    room, taken, names = among
    size = (
        text_width(text, SMALL_FONT_SIZE) * POINTS_PER_INCH,
        text_height(text, SMALL_FONT_SIZE) * POINTS_PER_INCH,
    )
    found: list[tuple[float, _Position, list[Box]]] = []
    for distance in DISTANCES if with_leaders else (GAP,):
        for place in (_Position(side, distance) for side in SIDES):
            box, leader = _beside(at, size, place), _leader(at, place)
            loss = box.area - box.overlap(room) + sum(box.overlap(other) for other in taken)
            loss += sum(piece.overlap(name) for piece in leader for name in names)
            found.append((loss, place, [box, *leader]))
        if min(found, key=_loss)[0] == 0.0:
            break
    return min(found, key=_loss)


def _loss(found: tuple[float, _Position, list[Box]]) -> float:
    return round(found[0], 6)


def _leader(at: tuple[float, float], place: _Position) -> list[Box]:
    """Return small boxes along the leader, [] without one."""
    if not place.has_leader:
        return []
    across, up = place.offset
    steps = int(math.hypot(across, up) / LEADER_STEP)
    pieces = ((at[0] + across * n / steps, at[1] + up * n / steps) for n in range(2, steps))
    return [Box(x - 0.5, y - 0.5, x + 0.5, y + 0.5) for x, y in pieces]


def _drawn(panel: "Axes", point: Named, scale: float) -> list[Box]:
    """Return the boxes of marker and interval."""
    x, low = (float(v) * scale for v in panel.transData.transform((point.x, point.y - point.half_width)))
    _, high = (float(v) * scale for v in panel.transData.transform((point.x, point.y + point.half_width)))
    middle, half = (low + high) / 2, MARKER / 2
    marker = Box(x - half, middle - half, x + half, middle + half)
    return [marker, Box(x - 0.5, low, x + 0.5, high)]


def _piece(one: tuple[float, float], other: tuple[float, float]) -> Box:
    """Return the box of a horizontal or vertical piece of a line, a point wide."""
    (left, right), (bottom, top) = (sorted(map(float, ends)) for ends in zip(one, other, strict=True))
    return Box(left - 0.5, bottom - 0.5, right + 0.5, top + 0.5)


def _beside(at: tuple[float, float], size: tuple[float, float], place: _Position) -> Box:
    """Return the box of a text of this size at this position."""
    (width, height), (across, up) = size, place.side
    to_side, upwards = place.offset
    left = at[0] + to_side - (0, width, width / 2)[(across < 0) + 2 * (across == 0)]
    bottom = at[1] + upwards - (0, height, height / 2)[(up < 0) + 2 * (up == 0)]
    return Box(left, bottom, left + width, bottom + height)


def _write(panel: "Axes", point: Named, place: _Position) -> None:
    across, up = place.side
    leader = {
        "arrowstyle": "-",
        "color": LEADER_COLOUR,
        "linewidth": LEADER_WIDTH,
        "shrinkA": 0,
        "shrinkB": 0,
    }
    text = panel.annotate(
        point.text,
        (point.x, point.y),
        xytext=place.offset,
        textcoords="offset points",
        ha=("left", "right", "center")[(across < 0) + 2 * (across == 0)],
        va=("bottom", "top", "center")[(up < 0) + 2 * (up == 0)],
        size=SMALL_FONT_SIZE,
        arrowprops=leader if place.has_leader else None,
    )
    text.set_in_layout(False)
