"""The style of all figures, and their files: equal figures give byte-equal files."""

import base64
import io
import logging
import math
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("pdf", "png")
FONT_SIZE = 8.0
SMALL_FONT_SIZE = 7.0
GUIDE_COLOUR, GUIDE_WIDTH = "#DDDDDD", 0.5
# Okabe and Ito's colours, distinct for the colour-blind; in grey print, markers and dashes differ.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "v", "P", "X", "p")
DASHES: tuple[Literal["-", "--", "-.", ":"], ...] = ("-", "--", "-.", ":")
CEILING_COLOUR, CEILING_MARKER = "#333333", "D"
TEXT_COLOUR = "#555555"
NARROWEST, WIDEST, HIGHEST = 3.4, 6.9, 9.0  # inches: a paper's column, its text, and the height of a page
SCORE = "score × 100"
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # part of matplotlib, so every machine has it
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.titlepad": 3.0,
    "axes.labelsize": SMALL_FONT_SIZE,
    "xtick.labelsize": SMALL_FONT_SIZE,
    "ytick.labelsize": FONT_SIZE,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "grid.color": GUIDE_COLOUR,
    "grid.linewidth": GUIDE_WIDTH,
    "axes.formatter.useoffset": False,
    "text.parse_math": False,  # names are plain text, dollar signs included
    "svg.hashsalt": "synthbench",  # ids are random without it
    "pdf.fonttype": 42,  # TrueType: publishers refuse matplotlib's Type 3
    "savefig.dpi": 200,
}
# Without dates, equal figures have equal bytes; the metadata still have matplotlib's version.
METADATA = {"pdf": {"CreationDate": None}, "png": {}, "svg": {"Date": None}}


def equal_ranges(
    limits: Sequence[tuple[float, float]], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> list[tuple[float, float]]:
    """Widen all ranges about their middles to the width of the widest, within `bounds` if possible.

    So a difference has the same length in all panels of a figure.
    """
    span = max((high - low for low, high in limits), default=0.0)
    lows = (min((low + high - span) / 2, bounds[1] - span) for low, high in limits)
    starts = [max(low, bounds[0]) for low in lows]
    return [(start, start + span) for start in starts]


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw and save figures in one style, independent of the user's settings, which are restored afterwards.

    Matplotlib's messages on font caches and missing characters are suppressed.
    """
    import matplotlib.style

    logger = logging.getLogger("matplotlib")
    level = logger.level
    with matplotlib.style.context(STYLE, after_reset=True), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def figure_files(name: str, figure: "Figure") -> dict[str, bytes]:
    """Return a figure's files, name -> content; call it within `figure_style`.

    Saving uses matplotlib's file backends, so it needs no display.
    """
    return {f"{name}.{extension}": _saved(figure, extension) for extension in FORMATS}


def image_address(figure: "Figure", png: bytes) -> str:
    """Return a `data:` URL that holds the figure: as SVG or, if smaller, the given PNG.

    Call it within `figure_style`.
    """
    contents = {"image/svg+xml": _saved(figure, "svg"), "image/png": png}
    kind = min(contents, key=lambda kind: len(contents[kind]))
    return f"data:{kind};base64,{base64.b64encode(contents[kind]).decode()}"


def _saved(figure: "Figure", extension: str) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=extension, metadata=METADATA[extension])
    return content.getvalue()


POINTS_PER_INCH = 72
LINE_HEIGHT = 1.3  # in font sizes
LINE_FILL = 0.94  # average fill of wrapped lines, whose widths vary


@dataclass(frozen=True)
class Frame:
    """The title above a figure and the notes below it, wrapped; both are empty without a caption."""

    title: str
    notes: str

    @property
    def height(self) -> float:
        """The height of title and notes together, in inches."""
        return text_height(self.title) + text_height(self.notes, SMALL_FONT_SIZE)

    def draw(self, figure: "Figure") -> None:
        """Write title and notes, if any."""
        if self.title:
            figure.suptitle(self.title, x=0.01, horizontalalignment="left", size=FONT_SIZE)
        if self.notes:
            figure.supxlabel(
                self.notes, x=0.01, horizontalalignment="left", size=SMALL_FONT_SIZE, color=TEXT_COLOUR
            )


def framed(caption: str, notes: Iterable[str], width: float) -> Frame:
    """Return title and notes for a figure `width` inches wide; without a caption, no notes."""
    listed = (wrapped(note, width, SMALL_FONT_SIZE) for note in notes if caption)
    return Frame(wrapped(caption, width) if caption else "", "\n".join(listed))


def wrapped(text: str, inches: float, font_size: float = FONT_SIZE) -> str:
    """Return the text wrapped to lines of about this width in inches."""
    letters = LINE_FILL * inches * len(text) / max(text_width(text, font_size), font_size / POINTS_PER_INCH)
    return "\n".join(textwrap.wrap(text, max(int(letters), 1)))


def write_at_right(
    axes: "Axes", text: str, height: float, gap: float, color: str | None = None, weight: str = "normal"
) -> None:
    """Write a text right of the axes; `height` is a y value, `gap` is in points (1/72 inch)."""
    axes.annotate(
        text,
        (1.0, height),
        xycoords=("axes fraction", "data"),
        xytext=(gap, 0),
        textcoords="offset points",
        va="center",
        size=SMALL_FONT_SIZE,
        color=color,
        fontweight=weight,
    )


def folded(label: str, letters: int) -> str:
    """Return a label broken into lines of at most `letters` characters."""
    return "\n".join(textwrap.wrap(label, letters))


def text_width(text: str, font_size: float = FONT_SIZE) -> float:
    """Return a line's width in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points, _, _ = text_to_path.get_text_width_height_descent(
        text, FontProperties(size=font_size), ismath=False
    )
    return float(points) / POINTS_PER_INCH


def text_height(text: str, font_size: float = FONT_SIZE) -> float:
    """Return the height of a text's lines in inches."""
    return len(text.splitlines()) * LINE_HEIGHT * font_size / POINTS_PER_INCH
