"""Two studies on real data, each with one seed: every row has the scores that its report has, nearly."""

import csv
from pathlib import Path

import pytest
from shipped_files import EXPERIMENTS, SHIPPED
from small_experiment import Project, finished

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"
STUDIES = ("generators_real_layer", "word_vectors_real")
"""The quickest two, with texts by LLMs and with word vectors; another takes up to 14 minutes."""

pytestmark = pytest.mark.experiments


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_runs_completely_with_one_seed(study: str, tmp_path: Path, real_data: Path) -> None:
    project = Project(EXPERIMENTS, tmp_path / "home")
    arguments = ["--seeds", "0", "--data", str(real_data), "--set", "runtime.threads=1"]
    called = finished(project.start("run", SHIPPED[study], *arguments, "--output", str(tmp_path / "reports")))
    assert (called.code, called.errors) == (0, [])
    (table,) = (tmp_path / "reports").glob("*/*/table.csv")
    found, recorded = (_scores(file) for file in (table, REPORTS / study / "table.csv"))
    assert found.keys() == recorded.keys()
    for cell, (mean, sd) in recorded.items():
        assert abs(found[cell][0] - mean) <= 1 + 5 * sd, cell


def _scores(table: Path) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return mean and standard deviation of each cell with a score, by row, axis values and column."""
    with table.open(encoding="utf-8", newline="") as stream:
        return {
            (row["row"], row["axis"], row["column"]): (float(row["mean"]), float(row["sd"] or 0))
            for row in csv.DictReader(stream)
            if row["mean"]
        }
