"""What all LaTeX tables share: packages, label, size on the page, and the notes below."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from synthbench.reporting.model.notes import data_notes
from synthbench.reporting.options import LatexOptions, TableOptions
from synthbench.reporting.render.latex_text import escape
from synthbench.reporting.results import ExperimentResult

PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper, landscape, margin=15mm]{geometry}
\usepackage{booktabs, graphicx, siunitx}
\begin{document}
"""
ORIGIN = (
    r"% Needs \usepackage{booktabs, graphicx, siunitx}. Written by synthbench; the next run writes it anew."
)


MOST_LINES = 40
"""Lines of a part: a longer table goes on in another `table` environment, since none is broken by LaTeX."""
RULES = (r"\midrule", r"\cmidrule")
TALLEST = 0.8
"""Share of the page's height that a part takes; the caption needs the rest."""


@dataclass(frozen=True)
class Layout:
    """How one file's tables are set; `more_notes` are those that `notes: short` leaves out."""

    options: LatexOptions
    label: str
    more_notes: frozenset[str] = frozenset()

    def named(self, name: object) -> "Layout":
        """Return the layout of one of several tables of a file."""
        return Layout(self.options, f"{self.label}-{name}", self.more_notes)

    def notes(self, notes: Iterable[str]) -> tuple[str, ...]:
        """Return the notes that are wanted."""
        if self.options.notes == "none":
            return ()
        is_short = self.options.notes == "short"
        return tuple(note for note in notes if not (is_short and note in self.more_notes))

    def environments(self, caption: str, parts: Sequence[Sequence[str]], notes: Iterable[str]) -> list[str]:
        """Return a `table` environment for each part, the notes below the last; none higher than the page."""
        lines: list[str] = []
        for number, part in enumerate(parts):
            goes_on = " (continued)" if number else ""
            is_last = number == len(parts) - 1
            label = "" if number else rf"\label{{{self.label}}}"
            lines += self._environment(
                f"{caption}{goes_on}", label, [*part, *(_listed(self.notes(notes)) if is_last else ())]
            )
        return lines

    def _environment(self, caption: str, label: str, content: Sequence[str]) -> Iterator[str]:
        name = "table*" if self.options.wide else "table"
        yield rf"\begin{{{name}}}"
        yield from (r"\centering", r"\small", r"\setlength{\tabcolsep}{4pt}")
        # LaTeX's own classes leave no space between a caption and the table below it.
        yield r"\setlength{\belowcaptionskip}{6pt}"
        yield rf"\caption{{{escape(caption)}}}{label}"
        yield from (r"\sbox{2}{\begin{minipage}{\linewidth}\centering\small", *content, r"\end{minipage}}%")
        yield rf"\ifdim\dimexpr\ht2+\dp2\relax>{TALLEST}\textheight"
        yield rf"\resizebox*{{!}}{{{TALLEST}\textheight}}{{\usebox{{2}}}}\else\usebox{{2}}\fi"
        yield rf"\end{{{name}}}"


def layout_of(result: ExperimentResult, file: str = "") -> Layout:
    """Return how a result's file of that name ("comparisons", "" for the table of scores) is set."""
    options = TableOptions.model_validate(result.table).latex
    label = options.label or "tab:" + re.sub(r"[^A-Za-z0-9:._-]+", "-", result.experiment)
    return Layout(options, f"{label}-{file}" if file else label, frozenset(data_notes(result)))


def split(lines: Sequence[str]) -> list[Sequence[str]]:
    """Return the lines of a table's body in parts of about equal length, one at least."""
    num_parts = max(1, -(-len(lines) // MOST_LINES))
    length = max(1, -(-len(lines) // num_parts))
    parts = [lines[start : start + length] for start in range(0, len(lines), length)] or [lines]
    return [part[1:] if part and part[0].startswith(RULES) else part for part in parts]


def fitted(tabular: Sequence[str]) -> list[str]:
    """Return the lines that set a `tabular`, made smaller where it is wider than the text."""
    *lines, end = tabular
    return [
        r"\sbox{0}{%",
        *lines,
        f"{end}}}%",
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox{0}}\else\usebox{0}\fi",
    ]


def _listed(notes: Sequence[str]) -> list[str]:
    """Return the lines that set notes below a table, a line each."""
    listed = r" \\".join(f"\n{escape(note)}" for note in notes)
    return (
        [r"\par\medskip", rf"\begin{{minipage}}{{\linewidth}}\footnotesize{listed}", r"\end{minipage}"]
        if listed
        else []
    )
