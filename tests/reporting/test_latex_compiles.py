"""A real pdflatex sets the table; `make check-latex` installs it."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from report_texts import PREAMBLE

from synthbench.reporting.files import text_files
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.sections import Block, CsvTable, Grid, ReportSection
from synthbench.reporting.render.latex import latex_section, latex_table
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

NASTY = r"""50 % _ & # $x$ ~ ^ \ { } [x] * <a|b> "q" 'r' `s` a--b é ï ş ő – — λ Ω ± × ≤ … 漢"""

ROOT = Path(__file__).parents[2]
LISTED = subprocess.run(
    ["git", "ls-files", "reports/*.tex"], cwd=ROOT, capture_output=True, text=True, check=True
)
TABLES = [ROOT / name for name in LISTED.stdout.split()]

Compile = Callable[[str], str]


def document(result: ExperimentResult) -> str:
    return PREAMBLE + latex_table(build_table(Analysis(result)), Analysis(result)) + r"\end{document}"


@pytest.mark.experiments
@pytest.mark.parametrize("file", TABLES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_every_table_of_the_reports_fits_the_page(file: Path, compile_latex: Compile) -> None:
    log = compile_latex(PREAMBLE + file.read_text(encoding="utf-8") + r"\end{document}")

    assert "Overfull" not in log
    assert "Float too large" not in log


def test_a_table_with_bold_ceiling_and_missing_cells_compiles(
    small_result: ExperimentResult, compile_latex: Compile
) -> None:
    log = compile_latex(document(small_result))

    assert "Overfull" not in log


def test_special_characters_compile_everywhere(
    make_runs: Callable[..., tuple[RunResult, ...]],
    make_result: Callable[..., ExperimentResult],
    compile_latex: Compile,
) -> None:
    rows = [
        make_runs(f"{start}{NASTY}", {"A_%": (0.5, 0.6)}, **{"base_&": f"{start}{NASTY}"})
        for start in ("", "[", "*", "(")
    ]
    result = make_result(*rows, caption=NASTY, ceiling=[f"({NASTY}"])
    noted = result.model_copy(
        update={"notes": (NASTY, "[note]", ""), "failures": (NASTY,), "tasks": ("A_%", NASTY)}
    )

    compile_latex(document(noted))


def test_a_table_as_wide_as_the_sts_suite_fits_the_page(
    make_runs: Callable[..., tuple[RunResult, ...]],
    make_result: Callable[..., ExperimentResult],
    compile_latex: Compile,
) -> None:
    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R")
    scores = dict.fromkeys(tasks, (0.71, 0.72, 0.73))
    rows = [make_runs(name, scores, base="MiniLM-2") for name in ("gold only", "AugSBERT-BM25")]

    log = compile_latex(document(make_result(*rows, averages={"Average": list(tasks)})))

    assert "Overfull" not in log


def test_a_long_table_with_many_notes_fits_the_page(
    make_runs: Callable[..., tuple[RunResult, ...]],
    make_result: Callable[..., ExperimentResult],
    compile_latex: Compile,
) -> None:
    rows = [make_runs(f"row {number}", {"STSb": (0.5, 0.6)}) for number in range(95)]
    notes = tuple(f"Note {number} says something of the data." for number in range(60))
    long = make_result(*rows).model_copy(update={"notes": notes})

    log = compile_latex(document(long))

    assert "Overfull" not in log
    assert "Float too large" not in log


TWO_COLUMNS = r"""\documentclass[twocolumn]{article}
\usepackage[letterpaper, textwidth=6.3in, textheight=9.7in, columnsep=0.24in]{geometry}
\usepackage{booktabs, graphicx, siunitx}
"""
ONE_COLUMN = r"""\documentclass{article}
\usepackage{booktabs, graphicx, siunitx}
"""
# Says by how much each table is scaled.
MEASURED = r"""\let\scaled\resizebox
\renewcommand\resizebox[3]{\setbox8\hbox{#3}\typeout{SCALED \the\wd8 to \the\linewidth}\scaled{#1}{#2}{#3}}
\begin{document}
"""


@pytest.mark.parametrize("paper", [TWO_COLUMNS, ONE_COLUMN])
@pytest.mark.parametrize("number", [1, 4, 7, 14, 24])
def test_a_paper_takes_tables_of_any_width_unscaled_or_by_four_fifths_at_least(
    make_runs: Callable[..., tuple[RunResult, ...]],
    make_result: Callable[..., ExperimentResult],
    compile_latex: Compile,
    paper: str,
    number: int,
) -> None:
    tasks = [f"STS-{index}" for index in range(number)]
    rows = [
        make_runs(name, dict.fromkeys(tasks, (0.71, 0.72 + shift, 0.73)), base="MiniLM-2")
        for shift, name in enumerate(("gold-only", "llama-3-then-gold", "augsbert-bm25"))
    ]
    report = Report(make_result(*rows, compare_to="gold-only", averages={"Average": tasks}))
    texts = [text for name, text in text_files(report) if name.endswith(".tex")]

    log = compile_latex(paper + MEASURED + "".join(texts) + r"\end{document}")

    scales = re.findall(r"SCALED ([\d.]+)pt ?to ([\d.]+)pt", log.replace("\n", ""))
    assert all(float(width) / float(box) >= 0.8 for box, width in scales), scales
    assert "Float too large" not in log


def test_grids_stand_below_each_other_as_long_as_they_fit_on_a_page(
    small_result: ExperimentResult, compile_latex: Compile
) -> None:
    grids = [
        Grid(("labels", "kappa"), tuple((f"judge {row}", "0.50") for row in range(9)), title=title)
        for title in ("agreement", "biases", "costs", "each other")
    ]
    section = ReportSection("labels", CsvTable((), ()), (Block("Labels", tuple(grids)),))

    text = latex_section(section, Analysis(small_result))
    log = compile_latex(PREAMBLE + text + r"\end{document}")

    assert re.findall(r"caption{(.*?)}", text) == ["Labels: agreement", "Labels: costs"]
    assert "Float too large" not in log


def test_an_empty_table_compiles(
    make_result: Callable[..., ExperimentResult], compile_latex: Compile
) -> None:
    compile_latex(document(make_result()))
