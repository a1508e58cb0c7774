"""The files of a table's figures, and their output on a terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest
from report_texts import PREAMBLE, text_of
from rich.console import Console

from synthbench.reporting.files import write_report
from synthbench.reporting.render.terminal import terminal_report
from synthbench.reporting.report import Report
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult
from synthbench.statistics.histograms import score_counts

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
FIGURES = {
    "curves": {"axis": "size"},
    "densities": {"parts": ["gold"]},
    "early_dev": True,
}
FILES = {
    *(f"curves.{ending}" for ending in ("csv", "pdf", "png")),
    *(
        f"{name}.{ending}"
        for name in ("densities", "early_dev")
        for ending in ("csv", "md", "tex", "pdf", "png")
    ),
}


@pytest.fixture
def study(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    """One row at two sizes, with all that figures are drawn of."""

    def complete(run: RunResult) -> RunResult:
        scores = (0.1, 0.4, 0.4, 1.0)
        data = DatasetSummary(
            part="gold",
            kind="scored_pair",
            num_records=4,
            score_counts=score_counts(scores),
            content_hash="h",
            stage="s",
        )
        history = tuple((step, "dev_score", (run.seed * step) % 7 / 7) for step in (1, 2, 3))
        return run.model_copy(update={"datasets": (data,), "history": history})

    rows = [make_runs("gold_only", {"A": (0.5, 0.6, 0.7)}, size=size) for size in ("100", "200")]
    return make_result(*(tuple(map(complete, row)) for row in rows), figures=FIGURES)


def test_a_tracked_result_gives_the_same_files_of_each_figure(
    study: ExperimentResult, tmp_path: Path
) -> None:
    kept = ExperimentResult.model_validate_json(study.model_dump_json())
    for folder, result in (("now", study), ("later", kept)):
        write_report(result, tmp_path / folder)
    names = {file.name for file in (tmp_path / "now").iterdir()}
    assert names >= FILES
    for name in names:
        assert (tmp_path / "now" / name).read_bytes() == (tmp_path / "later" / name).read_bytes()


@pytest.mark.usefixtures("sketched_figures")
def test_files_of_figures_no_longer_requested_are_removed(study: ExperimentResult, tmp_path: Path) -> None:
    write_report(study, tmp_path)
    write_report(study.model_copy(update={"table": {}}), tmp_path)
    assert not {file.name for file in tmp_path.iterdir()} & FILES


@pytest.mark.usefixtures("sketched_figures")
def test_an_experiment_without_training_has_no_score_table(study: ExperimentResult, tmp_path: Path) -> None:
    runs = tuple(run.model_copy(update={"scores": (), "history": ()}) for run in study.runs)
    alone = study.model_copy(update={"runs": runs, "tasks": ()})

    write_report(alone, tmp_path)

    densities = {name for name in FILES if name.startswith("densities")}
    assert {file.name for file in tmp_path.glob("[!.]*")} == {*densities, "report.html"}
    assert "scores of" in shown(alone)


def test_without_scores_a_terminal_shows_divergences_and_correlations(
    study: ExperimentResult,
) -> None:
    text = shown(study)
    assert "scores of" in text
    assert "Spearman's rank correlation over 3 seeds" in text
    assert "scores of" not in shown(study.model_copy(update={"tasks": ("STSb",)}))


def shown(result: ExperimentResult) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(terminal_report(Report(result), console).renderable)
    return captured.get()


def test_the_latex_compiles(study: ExperimentResult, compile_latex: Callable[[str], str]) -> None:
    documents = [text_of(study, f"{name}.tex") for name in ("densities", "early_dev")]
    assert all(documents)
    compile_latex(PREAMBLE + "\n".join(documents) + r"\end{document}")
