"""A real pdflatex sets the table; `make check-latex` installs it."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from synthbench.reporting.build import build_table
from synthbench.reporting.latex import latex_document
from synthbench.reporting.results import ExperimentResult, RunResult

PDFLATEX = shutil.which("pdflatex")
NASTY = r"""50 % _ & # $x$ ~ ^ \ { } [x] * <a|b> "q" 'r' `s` a--b é ï ş ő – — λ Ω ± × ≤ … 漢"""

pytestmark = pytest.mark.skipif(
    PDFLATEX is None, reason="pdflatex is not installed; make check-latex does that"
)


def compile_latex(document: str, folder: Path) -> str:
    (folder / "document.tex").write_text(document, encoding="utf-8")
    command = [str(PDFLATEX), "-halt-on-error", "-interaction=nonstopmode", "document.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "document.pdf").stat().st_size > 1000
    return done.stdout


def test_table_with_bold_ceiling_and_missing_cells(small_result: ExperimentResult, tmp_path: Path) -> None:
    log = compile_latex(latex_document(build_table(small_result)), tmp_path)

    assert "Overfull" not in log


def test_nasty_characters_everywhere(
    make_runs: Callable[..., tuple[RunResult, ...]],
    make_result: Callable[..., ExperimentResult],
    tmp_path: Path,
) -> None:
    rows = [
        make_runs(f"{start}{NASTY}", {"A_%": (0.5, 0.6)}, **{"base_&": f"{start}{NASTY}"})
        for start in ("", "[", "*", "(")
    ]
    result = make_result(*rows, caption=NASTY, ceiling=[f"({NASTY}"])
    noted = result.model_copy(
        update={"notes": (NASTY, "[note]", ""), "failures": (NASTY,), "tasks": ("A_%", NASTY)}
    )

    compile_latex(latex_document(build_table(noted)), tmp_path)


def test_a_table_as_wide_as_the_sts_suite_fits_the_page(
    make_runs: Callable[..., tuple[RunResult, ...]],
    make_result: Callable[..., ExperimentResult],
    tmp_path: Path,
) -> None:
    tasks = ("STS12", "STS13", "STS14", "STS15", "STS16", "STSb", "SICK-R")
    scores = dict.fromkeys(tasks, (0.71, 0.72, 0.73))
    rows = [make_runs(name, scores, base="MiniLM-2") for name in ("gold only", "AugSBERT-BM25")]

    log = compile_latex(
        latex_document(build_table(make_result(*rows, averages={"Average": list(tasks)}))), tmp_path
    )

    assert "Overfull" not in log


def test_an_empty_table(make_result: Callable[..., ExperimentResult], tmp_path: Path) -> None:
    compile_latex(latex_document(build_table(make_result())), tmp_path)
