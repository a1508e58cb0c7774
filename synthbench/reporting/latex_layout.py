"""What all LaTeX tables share: the packages that they need, their width, and what stands below."""

from collections.abc import Iterable, Sequence

from synthbench.reporting.latex_text import escape

PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper, landscape, margin=15mm]{geometry}
\usepackage{booktabs, graphicx, siunitx}
\begin{document}
"""
ORIGIN = (
    r"% Needs \usepackage{booktabs, graphicx, siunitx}. Written by synthbench; the next run writes it anew."
)


def opened(caption: str) -> list[str]:
    """Return the lines that begin a `table` environment."""
    return [
        r"\begin{table}",
        r"\centering",
        r"\small",
        r"\setlength{\tabcolsep}{4pt}",
        # LaTeX's own classes leave no space between a caption and the table below it.
        r"\setlength{\belowcaptionskip}{6pt}",
        rf"\caption{{{escape(caption)}}}",
    ]


def fitted(tabular: Sequence[str]) -> list[str]:
    """Return the lines that set a `tabular`, made smaller where it is wider than the text."""
    *lines, end = tabular
    return [
        r"\sbox{0}{%",
        *lines,
        f"{end}}}%",
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox{0}}\else\usebox{0}\fi",
    ]


def closed(notes: Iterable[str]) -> list[str]:
    """Return the lines that set the notes below a table, a line each, and end its environment."""
    listed = r" \\".join(f"\n{escape(note)}" for note in notes)
    foot = [r"\par\medskip", rf"\begin{{minipage}}{{\linewidth}}\footnotesize{listed}", r"\end{minipage}"]
    return [*(foot if listed else ()), r"\end{table}"]
