r"""LaTeX floats that fit papers of one or two columns unchanged.

LaTeX measures each float's content, and sets it in one column, else across both, else on its side. It scales
down content that is too wide; tables that would need a scale below `SMALLEST` are split.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from synthbench.config.table_options import LatexOptions
from synthbench.reporting.model.sections import MOST_NOTES
from synthbench.reporting.render.latex_text import escape, estimated_width

ORIGIN = (
    r"% Needs \usepackage{booktabs, graphicx, siunitx}. Written by synthbench; the next run writes it anew."
)
MACRO = r"""\ifdefined\synthbenchfloat\else
\newsavebox{\synthbenchbox}
% A float around the box: #1 table or figure, #2 widest box for one column, #3 caption, #4 notes.
\newcommand{\synthbenchfloat}[4]{\def\synthbenchname{#1}%
\ifdim\wd\synthbenchbox>#2\def\synthbenchname{#1*}\fi
\expandafter\begin\expandafter{\synthbenchname}\centering
\ifdim\wd\synthbenchbox>1.25\linewidth
\rotatebox{90}{\begin{minipage}{\textheight}\synthbenchcontent{#3}{#4}\end{minipage}}%
\else\synthbenchcontent{#3}{#4}\fi
\expandafter\end\expandafter{\synthbenchname}}
% The standard classes leave no space between a caption and the table below it.
\newcommand{\synthbenchcontent}[2]{\centering\setlength{\belowcaptionskip}{6pt}#1\par
\ifdim\wd\synthbenchbox>\linewidth\resizebox{\linewidth}{!}{\usebox{\synthbenchbox}}%
\else\usebox{\synthbenchbox}\fi\par\medskip
\begin{minipage}{\linewidth}\footnotesize #2\end{minipage}}
\fi"""
FONTS = r"\sisetup{detect-weight=true, detect-shape=true, detect-family=true, mode=text}"
"""Make siunitx use the surrounding font: bold, or italics for published numbers."""
SMALLEST = 0.8
"""The smallest scale of a table; what is wider is split."""
COLUMN, PAGE = 219.0, 434.0
"""The widths of a column and of both in the narrowest usual two-column paper, in points.

Both columns take 455, but estimated widths are up to 5 % too small.
"""
NARROW_PAGE = 345.0
"""The width of LaTeX's own one-column article, in points."""
WIDEST = PAGE / SMALLEST
"""The widest table in `FONT_SIZE`, in points; a wider one is printed in `NOTE_SIZE`, and split if needed."""
FONT_SIZE, NOTE_SIZE, LINE_HEIGHT, NOTE_HEIGHT = 9.0, 8.0, 11.4, 9.5
"""Font sizes and line heights of tables and of their notes, in points."""
MOST_LINES, MOST_LINES_ON_ITS_SIDE = 32, 22
"""Tables with more lines are split, since LaTeX never breaks a float."""

Notes = Sequence[Sequence[str]]
"""Notes, each a few sentences; the first sentences are the most important."""


@dataclass(frozen=True)
class Typeset:
    """LaTeX lines for one float, with estimated width and height in points."""

    lines: Sequence[str]
    width: float
    height: float


@dataclass(frozen=True)
class Floats:
    """Writes the LaTeX floats of one file, without notes if `options.notes` is none."""

    options: LatexOptions
    label: str

    def named(self, name: object) -> "Floats":
        """Return the `Floats` for one of several tables, with the label LABEL-NAME."""
        return replace(self, label=f"{self.label}-{name}")

    def lines(self, caption: str, parts: Sequence[Typeset], notes: Notes = ()) -> Iterator[str]:
        """Yield the lines of a float for each part, with notes below the last one."""
        for number, part in enumerate(parts):
            goes_on = " (continued)" if number else ""
            label = "" if number else rf"\label{{{self.label}}}"
            below = self.below(part, notes) if number == len(parts) - 1 else ()
            yield from self._float(rf"\caption{{{escape(caption + goes_on)}}}{label}", part, below)

    def below(self, part: Typeset, notes: Notes) -> tuple[str, ...]:
        """Return the notes that fit below a part: together they are at most as high as the part.

        The first sentences of all notes are taken before the second sentence of any.
        """
        if self.options.notes == "none":
            return ()
        width = COLUMN if part.width <= COLUMN / SMALLEST and not self.options.wide else PAGE
        shown: list[list[str]] = [[] for _ in notes[:MOST_NOTES]]
        for depth in range(max(map(len, notes[:MOST_NOTES]), default=0)):
            for note, sentences in zip(shown, notes, strict=False):
                if depth < len(sentences):
                    note.append(sentences[depth])
                    if sum(_height(" ".join(each), width) for each in shown) > part.height:
                        note.pop()
        return tuple(" ".join(each) for each in shown if each)

    def _float(self, caption: str, part: Typeset, notes: Iterable[str]) -> Iterator[str]:
        size = r"\footnotesize" if part.width > WIDEST else r"\small"
        yield rf"{{{size}\setlength{{\tabcolsep}}{{4pt}}{FONTS}"
        yield r"\global\setbox\synthbenchbox\hbox{%"
        yield from part.lines
        yield "}}"
        limit = "0pt" if self.options.wide else rf"{1 / SMALLEST:g}\columnwidth"
        yield rf"\synthbenchfloat{{table}}{{{limit}}}{{{caption}}}{{%"
        yield r" \\".join(f"\n{escape(note)}" for note in notes).strip() + "}"


def _height(note: str, width: float) -> float:
    return NOTE_HEIGHT * math.ceil(estimated_width(note, NOTE_SIZE) / width)


def fits(part: Typeset) -> bool:
    """Return whether a part's height fits on a page; a wide part is set on its side, with fewer lines."""
    return part.height <= LINE_HEIGHT * _most_lines(part.width)


def _most_lines(width: float) -> int:
    is_on_its_side = width > NARROW_PAGE / SMALLEST
    return MOST_LINES_ON_ITS_SIDE if is_on_its_side else MOST_LINES


def split(lines: Sequence[str], width: float, rules: tuple[str, ...]) -> list[Sequence[str]]:
    """Split a table's lines into one or more parts of about equal length; none begins with a rule."""
    num_parts = max(1, -(-len(lines) // _most_lines(width)))
    length = max(1, -(-len(lines) // num_parts))
    parts = [lines[start : start + length] for start in range(0, len(lines), length)] or [lines]
    return [part[1:] if part and part[0].startswith(rules) else part for part in parts]


def chunks(names: float, columns: Sequence[float]) -> list[range]:
    """Return each table part's column indices: as many as fit beside the row names, at least one."""
    parts, start, width = [], 0, names
    for number, each in enumerate(columns):
        if number > start and width + each > WIDEST * FONT_SIZE / NOTE_SIZE:
            parts.append(range(start, number))
            start, width = number, names
        width += each
    return [*parts, range(start, len(columns))]
