"""The comparison at equal cost: fairness, and a reduced run with the report's findings."""

import csv
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from shipped_files import EXPERIMENTS, SHIPPED
from small_experiment import Project, finished

from synthbench.config.experiment import Experiment, Variant
from synthbench.config.load import load_experiment

ROOT = Path(__file__).parents[2]
REPORTS = ROOT / "reports"
REPORT, RECIPES_REPORT = REPORTS / "which_method", REPORTS / "which_method_recipes"
STUDY, RECIPES = SHIPPED["which_method"], SHIPPED["which_method_recipes"]
BUDGETS = {"1-cent": 0.01, "10-cents": 0.1, "1-dollar": 1.0}
"""Dollars by name."""
ASK_AN_LLM = ("syncse", "claif", "multicsr", "brainstorm", "gpl-queries")
LOCAL = ("gold-only", "dino", "dino-gold", "augsbert-gold")
REDUCED = ("untrained", "syncse", "gpl-queries")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    return load_experiment(STUDY)


@pytest.fixture(scope="module")
def recipes() -> Experiment:
    return load_experiment(RECIPES)


def rows(experiment: Experiment, budget: str) -> Iterator[Variant]:
    """Yield the rows of a budget that are trained."""
    for variant in experiment.variants:
        if variant.axes == {"budget": budget} and variant.name != "untrained":
            yield variant


@pytest.mark.parametrize("budget", BUDGETS)
def test_all_rows_of_a_budget_differ_only_in_loss_and_learning_rate(
    experiment: Experiment, budget: str
) -> None:
    trainings = {
        tuple(row.parameters[f"train.{key}"] for key in ("max_steps", "batch_size", "max_length"))
        for row in rows(experiment, budget)
        if budget != "1-cent" or row.name not in ASK_AN_LLM
    }
    assert len(trainings) == 1


def test_rows_with_few_llm_records_train_for_fewer_steps(experiment: Experiment) -> None:
    steps = {row.name: row.parameters["train.max_steps"] for row in rows(experiment, "1-cent")}
    assert {steps[name] for name in ASK_AN_LLM} == {20}
    assert {number for name, number in steps.items() if name not in ASK_AN_LLM} == {40}


def test_recipes_were_chosen_in_other_domains_and_with_other_seeds(
    experiment: Experiment, recipes: Experiment
) -> None:
    domains, of_recipes = domains_of(STUDY), domains_of(RECIPES)
    assert (len(domains), len(of_recipes)) == (3, 3)
    assert domains.isdisjoint(of_recipes)
    assert {*experiment.seeds}.isdisjoint(recipes.seeds)


def domains_of(file: Path) -> set[str]:
    """Return the domains of all sources."""
    sources = yaml.safe_load(file.read_text(encoding="utf-8"))["sources"]
    return {domain for source in sources.values() for domain in source["domains"]}


def test_every_row_chose_among_the_same_recipes(experiment: Experiment, recipes: Experiment) -> None:
    menu: dict[str, set[str]] = defaultdict(set)
    for variant in recipes.variants:
        menu[variant.name].add(variant.axes["recipe"])
    assert len({frozenset(each) for each in menu.values()}) == 1
    assert menu.keys() == {row.name for row in rows(experiment, "10-cents")}


@pytest.mark.parametrize("budget", BUDGETS)
def test_every_row_trains_by_the_recipe_that_the_rule_chooses(experiment: Experiment, budget: str) -> None:
    chosen = chosen_recipes()
    found = {row.name: recipe_of(row.parameters) for row in rows(experiment, budget)}
    assert found == chosen


def chosen_recipes() -> dict[str, str]:
    """The rule: the highest mean of `similarity`, of equal ones the first."""
    best: dict[str, tuple[float, str]] = {}
    for line in lines(RECIPES_REPORT / "table.csv"):
        found = (float(line["mean"]), line["axis"].removeprefix("recipe="))
        if line["column"] == "similarity" and found[0] > best.get(line["row"], (float("-inf"), ""))[0]:
            best[line["row"]] = found
    return {row: recipe for row, (_, recipe) in best.items()}


def recipe_of(parameters: dict[str, Any]) -> str:
    """Return the name of the recipe in the menu."""
    if parameters["train.trainer"] == "bi-encoder":
        loss = parameters["train.loss.name"]
    else:
        loss = f"{parameters['train.learns_from']}s"
    return f"{loss}-{parameters['train.learning_rate']:.0e}".replace("e-0", "e-")


def test_each_average_has_nine_planned_comparisons(experiment: Experiment) -> None:
    table = experiment.table
    assert table.columns == ("similarity", "retrieval")
    assert len(BUDGETS) * sum(map(len, table.compare_to.values())) == 9
    compared = {(line["row"], line["against"], line["column"]) for line in lines(REPORT / "comparisons.csv")}
    assert len(compared) == 6


def test_budgets_share_no_llm_answers(experiment: Experiment) -> None:
    seeds = [{row.name: seeds_of_methods(row) for row in rows(experiment, budget)} for budget in BUDGETS]
    for one, other in combinations(seeds, 2):
        for name in one.keys() - {*LOCAL}:
            assert one[name].isdisjoint(other[name]), name


def seeds_of_methods(row: Variant) -> set[int]:
    """Return the seeds of the row's methods; one that is not named is 0."""
    named = {
        path.split(".")[1]: value
        for path, value in row.parameters.items()
        if path.count(".") == 2 and path.startswith("data.") and path.endswith(".seed")
    }
    return set(named.values()) or {0}


def test_rows_with_an_llm_spend_the_budget_within_15_percent() -> None:
    totals = [line for line in lines(REPORT / "frontier.csv") if line["cost"] == "total"]
    spent = [line for line in totals if line["row"] not in (*LOCAL, "untrained")]
    assert len(spent) == len(BUDGETS) * 2 * len(ASK_AN_LLM)
    for line in spent:
        budget = BUDGETS[line["axis"].removeprefix("budget=")]
        assert float(line["amount"]) == pytest.approx(budget, rel=0.15), cell(line)


@pytest.mark.experiments
def test_a_reduced_run_has_the_scores_and_costs_of_the_report(tmp_path: Path) -> None:
    project, reports = Project(EXPERIMENTS, tmp_path / "home"), tmp_path / "reports"
    named = [text for row in REDUCED for text in ("--variant", row)]
    called = finished(project.start("run", STUDY, *named, "--seeds", "200", "--output", str(reports)))
    assert (called.code, called.errors) == (0, [])
    (folder,) = (file.parent for file in reports.glob("*/*/table.csv"))
    recorded = {cell(line): line for line in lines(REPORT / "table.csv")}
    for line in lines(folder / "table.csv"):
        expected = recorded[cell(line)]
        tolerance = 1 + 5 * float(expected["sd"] or 0)
        assert float(line["mean"]) == pytest.approx(float(expected["mean"]), abs=tolerance), cell(line)
    for line in lines(folder / "frontier.csv"):
        if line["cost"] == "total" and line["row"] != "untrained":
            budget = BUDGETS[line["axis"].removeprefix("budget=")]
            assert float(line["amount"]) == pytest.approx(budget, rel=0.3), cell(line)


def lines(table: Path) -> list[dict[str, str]]:
    with table.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def cell(line: dict[str, str]) -> tuple[str, str, str]:
    return line["row"], line["axis"], line.get("column", "")
