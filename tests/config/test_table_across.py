"""Which names a table may have for its columns where it goes across an axis."""

from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from wording import worded

from synthbench.base.errors import UserError
from synthbench.config.load import load_experiment

SIZES = """
grid:
  size:
    few: {data.gold.prepare: [{step: sample, size: 1}]}
    many: {data.gold.prepare: [{step: sample, size: 2}]}
"""


@pytest.fixture
def sizes(experiment: ExperimentFile) -> ExperimentFile:
    """The valid file at two amounts of gold, with a row for which they make no difference."""
    experiment.change(
        "variants:\n", "variants:\n  untrained:\n    data.gold: null\n    data.other: {source: gold}\n"
    )
    return experiment.append(SIZES)


def with_table(experiment: ExperimentFile, *lines: str) -> ExperimentFile:
    return experiment.change("  columns: [test]\n", "".join(f"  {line}\n" for line in lines))


def test_rows_that_ignore_the_axis_have_a_cell_in_each_column(sizes: ExperimentFile) -> None:
    labels = [variant.label for variant in sizes.load().variants]
    assert labels[-1] == "untrained"

    with_table(sizes, "across: size")

    labels = [variant.label for variant in sizes.load().variants]
    assert [label for label in labels if label.startswith("untrained")] == [
        "untrained [size=few]",
        "untrained [size=many]",
    ]


def test_columns_and_averages_may_name_values_and_test_sets(sizes: ExperimentFile) -> None:
    with_table(
        sizes, "across: [size]", "columns: [few, 'many: test', test, both]", "averages: {both: [few, many]}"
    )
    assert sizes.faults() == []


def test_published_columns_may_name_values_that_an_override_removed(sizes: ExperimentFile) -> None:
    header = "paper,table,row,encoder,generator,column,metric,split,aggregation,n,value,sd,flag"
    lines = [f"Doe 2021,2,own,,,{column},spearman,test,all,,76.09,," for column in ("A", "B")]
    (sizes.folder / "doe.csv").write_text("\n".join([header, *lines, ""]), encoding="utf-8")
    published = "published: {file: doe.csv, rows: {silver: own}, columns: {few: A, many: B}}"
    with_table(sizes, "across: size", published)
    assert sizes.faults("grid.size.few=null") == []


def test_unknown_names_are_reported(sizes: ExperimentFile) -> None:
    with_table(sizes, "across: sise", "columns: [fewer]")
    worded(
        sizes.faults(),
        "study.yaml:31",
        "table.columns.0",
        "test",
        "'fewer'",
        "study.yaml:30",
        "table.across",
        "'sise'",
        "'size'",
    )


MIXED = """\
experiment: mixed
sources:
  A: {sandbox: pairs, split: test, size: 10}
defaults:
  train: {trainer: none, base: {model: sandbox/encoder}}
  evaluate.main: {evaluator: sts, tasks: [A]}
grid:
  aggregation:
    over-all: {evaluate.main.aggregation: all}
    over-subsets: {evaluate.main.aggregation: mean}
table: TABLE
"""


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("{}", "A"),
        ("{across: aggregation}", ""),
        ("{across: aggregation, averages: {both: [A]}}", "both"),
        ("{across: aggregation, averages: {one: [over-all]}}", ""),
    ],
)
def test_two_scores_have_separate_columns(tmp_path: Path, table: str, column: str) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(MIXED.replace("TABLE", table), encoding="utf-8")
    if not column:
        assert load_experiment(file).table.across == ("aggregation",)
        return
    with pytest.raises(UserError) as raised:
        load_experiment(file)
    assert f"column '{column}' would mix spearman_all and spearman_mean" in raised.value.messages[0]


def test_an_average_is_no_axis_value(sizes: ExperimentFile) -> None:
    with_table(sizes, "across: size", "averages: {few: [many]}")
    (fault,) = sizes.faults()
    assert fault.endswith("averages.few: 'few' is a value of the grid; an average needs a name of its own")
