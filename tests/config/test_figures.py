"""Settings of figures: valid names and values."""

from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from wording import refused

from synthbench.config.load import load_experiment

SIZES = """
grid:
  size:
    "{0}": {{data.gold.prepare: [{{step: sample, size: 1}}]}}
    "{1}": {{data.gold.prepare: [{{step: sample, size: 2}}]}}
"""


def with_figures(experiment: ExperimentFile, figures: str, *values: str) -> ExperimentFile:
    experiment.change("  columns: [test]\n", f"  figures: {figures}\n")
    return experiment.append(SIZES.format(*(values or ("100", "2000"))))


@pytest.mark.parametrize(
    "figures",
    [
        "{curves: {axis: size}}",
        "{curves: {records: [gold, silver]}}",
        "{densities: {parts: [silver], reference: gold}}",
        "{frontier: {costs: [dollars, tokens, seconds], score: test}}",
        "{frontier: {costs: seconds}}",
        "{curves: null, densities: null, early_dev: false, frontier: null}",
    ],
)
def test_valid_figures_are_accepted(experiment: ExperimentFile, figures: str) -> None:
    assert with_figures(experiment, figures).faults() == []


@pytest.mark.parametrize(
    ("figures", "fault"),
    [
        (
            "{curves: {axis: sizes}}",
            "curves.axis: no axis of the grid is called 'sizes'; did you mean 'size'?",
        ),
        ("{curves: {}}", "curves: needs `axis:`, `records:` or both"),
        (
            "{curves: {records: [silvr]}}",
            "curves.records: no part of `data` is called 'silvr'; did you mean 'silver'?",
        ),
        (
            "{densities: {parts: [silver], reference: golden}}",
            "densities.reference: no part of `data` is called 'golden'; did you mean 'gold'?",
        ),
        (
            "{frontier: {costs: [seconds], score: tset}}",
            "frontier.score: no test set or average is called 'tset'; did you mean 'test'?",
        ),
        ("{frontier: {}}", "frontier.costs: missing; it has no default"),
        ("{early_dev: true}", "early_dev: ranks seeds; needs at least 3, there are 2"),
    ],
)
def test_invalid_figures_are_reported(experiment: ExperimentFile, figures: str, fault: str) -> None:
    (found,) = with_figures(experiment, figures).faults()
    assert found.endswith(f"table.figures.{fault}")


def test_curves_over_a_non_numeric_axis_need_records(experiment: ExperimentFile) -> None:
    with_figures(experiment, "{curves: {axis: size}}", "few", "2000")
    (found,) = experiment.faults()
    assert found.endswith(
        "curves.axis: 'few' is no amount; a curve needs numbers as values of its axis, or `records:`"
    )

    experiment.change("{axis: size}", "{axis: size, records: [gold]}")
    assert experiment.faults() == []


def test_early_dev_scores_need_a_selection(experiment: ExperimentFile) -> None:
    with_figures(experiment, "{early_dev: true}").change("seeds: [0, 1]", "seeds: [0, 1, 2]")
    assert experiment.faults() == []
    assert experiment.faults("seeds=[0]", variants=("plain",)) == []

    experiment.change("    selection: {evaluator: fake, sources: [dev]}\n", "")
    assert "needs train.selection" in experiment.faults()[0]


def test_a_row_that_ignores_the_axis_has_a_point_at_each_amount(experiment: ExperimentFile) -> None:
    experiment.change(
        "variants:\n", "variants:\n  other:\n    data.gold: null\n    data.alone: {source: gold}\n"
    )
    with_figures(experiment, "{curves: {axis: size}}")
    labels = [variant.label for variant in experiment.load().variants]
    assert [label for label in labels if label.startswith("other")] == [
        "other [size=100]",
        "other [size=2000]",
    ]


ALONE = """\
experiment: drawn
sources:
  gold: {sandbox: pairs, split: train, size: 10}
variants:
  first: {data.gold: {source: gold}}
table: {figures: {densities: {parts: [gold]}}}
"""


def test_data_in_a_figure_need_no_training(tmp_path: Path) -> None:
    file = tmp_path / "drawn.yaml"
    file.write_text(ALONE, encoding="utf-8")
    assert load_experiment(file).tasks == ()

    file.write_text(ALONE.replace("table:", "# table:"), encoding="utf-8")
    with refused("train"):
        load_experiment(file)
