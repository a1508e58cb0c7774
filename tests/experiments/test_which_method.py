"""The comparison at equal cost: what makes it fair, and a reduced run that finds what the report has."""

import csv
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from small_experiment import Project, finished

from synthbench.config.experiment import Experiment, Variant
from synthbench.config.load import load_experiment

ROOT = Path(__file__).parents[2]
EXPERIMENTS, REPORT = ROOT / "experiments", ROOT / "reports" / "which_method"
BUDGETS = ("10", "100", "1000")
REDUCED = ("untrained", "syncse", "gpl-queries")
TRAINING = ("max_steps", "batch_size", "learning_rate", "max_length")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return load_experiment(EXPERIMENTS / "which_method.yaml")


def rows(experiment: Experiment, budget: str) -> Iterator[Variant]:
    """Yield the rows of a budget that are trained."""
    for variant in experiment.variants:
        if variant.axes == {"budget": budget} and variant.name != "untrained":
            yield variant


@pytest.mark.parametrize("budget", BUDGETS)
def test_all_rows_of_a_budget_train_for_as_many_steps_of_as_many_records(
    experiment: Experiment, budget: str
) -> None:
    trainings = {
        tuple(row.parameters[f"train.{key}"] for key in TRAINING) for row in rows(experiment, budget)
    }
    assert len(trainings) == 1


def test_no_budgets_data_are_paid_by_another_budgets_answers(experiment: Experiment) -> None:
    seeds = [{row.name: seeds_of_methods(row) for row in rows(experiment, budget)} for budget in BUDGETS]
    for one, other in combinations(seeds, 2):
        for name in one.keys() - {"gold-only"}:
            assert one[name].isdisjoint(other[name]), name


def seeds_of_methods(row: Variant) -> set[int]:
    """Return the seeds of the row's methods; one that is not named is 0."""
    named = {
        path.split(".")[1]: value
        for path, value in row.parameters.items()
        if path.count(".") == 2 and path.startswith("data.") and path.endswith(".seed")
    }
    return set(named.values()) or {0}


@pytest.mark.experiments
def test_a_reduced_run_has_the_reports_scores_and_pays_what_the_budgets_say(tmp_path: Path) -> None:
    project, reports = Project(EXPERIMENTS, tmp_path / "home"), tmp_path / "reports"
    named = [text for row in REDUCED for text in ("--variant", row)]
    called = finished(
        project.start("run", "which_method.yaml", *named, "--seeds", "0", "--output", str(reports))
    )
    assert (called.code, called.errors) == (0, [])
    (folder,) = (file.parent for file in reports.glob("*/*/table.csv"))
    recorded = {cell(line): line for line in lines(REPORT / "table.csv")}
    for line in lines(folder / "table.csv"):
        expected = recorded[cell(line)]
        tolerance = 1 + 5 * float(expected["sd"] or 0)
        assert float(line["mean"]) == pytest.approx(float(expected["mean"]), abs=tolerance), cell(line)
    for line in lines(folder / "frontier.csv"):
        if line["cost"] == "dollars" and line["row"] != "untrained":
            budget = float(line["axis"].removeprefix("budget="))
            assert float(line["amount"]) == pytest.approx(0.8 * budget, rel=0.35), cell(line)


def lines(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def cell(line: dict[str, str]) -> tuple[str, str, str]:
    return line["row"], line["axis"], line.get("column", "")
