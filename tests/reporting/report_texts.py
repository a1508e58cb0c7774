"""The text files of a report, without its figures and page."""

from synthbench.reporting.files import text_files
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult

PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper, landscape, margin=15mm]{geometry}
\usepackage{booktabs, graphicx, siunitx}
\begin{document}
"""


def text_of(result: ExperimentResult, name: str) -> str:
    """Return the content of a file of that name; empty if the report has none."""
    return dict(text_files(Report(result))).get(name, "")
