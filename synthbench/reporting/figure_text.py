"""How much room texts take in figures."""

import textwrap

from synthbench.reporting.figure_files import FONT_SIZE

POINTS_PER_INCH = 72
LINE_HEIGHT = 1.3  # of the font's size
LINE_FILL = 0.94  # lines of a wrapped text differ in width, its average must leave them room


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
