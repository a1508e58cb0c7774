"""How much room texts take in figures."""

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from synthbench.reporting.figures.style import FONT_SIZE, SMALL_FONT_SIZE, TEXT_COLOUR

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS_PER_INCH = 72
LINE_HEIGHT = 1.3  # of the font's size
LINE_FILL = 0.94  # lines of a wrapped text differ in width, its average must leave them room


@dataclass(frozen=True)
class Frame:
    """The title above a figure and the notes below, wrapped; both empty in a figure without a title."""

    title: str
    notes: str

    @property
    def height(self) -> float:
        """The inches that both take."""
        return text_height(self.title) + text_height(self.notes, SMALL_FONT_SIZE)

    def draw(self, figure: "Figure") -> None:
        """Write title and notes, if there are any."""
        if self.title:
            figure.suptitle(self.title, x=0.01, horizontalalignment="left", size=FONT_SIZE)
        if self.notes:
            figure.supxlabel(
                self.notes, x=0.01, horizontalalignment="left", size=SMALL_FONT_SIZE, color=TEXT_COLOUR
            )


def framed(caption: str, notes: Iterable[str], width: float) -> Frame:
    """Return title and notes for a figure of this width in inches; without a caption there are no notes."""
    listed = (wrapped(note, width, SMALL_FONT_SIZE) for note in notes if caption)
    return Frame(wrapped(caption, width) if caption else "", "\n".join(listed))


def wrapped(text: str, inches: float, font_size: float = FONT_SIZE) -> str:
    """Return the text on lines of at most this width, about."""
    letters = LINE_FILL * inches * len(text) / max(text_width(text, font_size), font_size / POINTS_PER_INCH)
    return "\n".join(textwrap.wrap(text, max(int(letters), 1)))


def text_width(text: str, font_size: float = FONT_SIZE) -> float:
    """Return the inches that a line takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=font_size), ismath=False
    )
    return float(points) / POINTS_PER_INCH


def text_height(text: str, font_size: float = FONT_SIZE) -> float:
    """Return the inches that lines take."""
    return len(text.splitlines()) * LINE_HEIGHT * font_size / POINTS_PER_INCH
