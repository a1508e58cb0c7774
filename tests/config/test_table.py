"""The table section: valid names, and scores that must not be mixed."""

from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.config.load import load_experiment

HEADER = "paper,table,row,encoder,generator,column,metric,split,aggregation,n,value,sd,flag\n"
LINE = "Doe 2021,2,{row},roberta-base,,{column},spearman,{split},all,,76.09,,\n"
COLUMNS = {"STSb": "test", "dev": "dev"}


@pytest.fixture
def study(experiment: ExperimentFile) -> ExperimentFile:
    """An experiment with a published table beside it."""
    rows = (LINE.format(row="full", column=column, split=split) for column, split in COLUMNS.items())
    (experiment.folder / "doe.csv").write_text(HEADER + "".join(rows), encoding="utf-8")
    return experiment


def with_table(study: ExperimentFile, *lines: str) -> ExperimentFile:
    return study.change("  columns: [test]\n", "".join(f"  {line}\n" for line in lines))


def test_a_family_may_name_rows_at_a_point_of_the_grid(study: ExperimentFile) -> None:
    study.append("grid:\n  strength: {low: {train.strength: 0.1}, high: {train.strength: 0.9}}\n")
    with_table(
        study,
        "compare_to: {plain: [silver], silver: []}",
        "family: {plain: ['silver [strength=low]'], silver: [plain]}",
    )
    family = study.load().table.family
    assert family == {"plain": ("silver [strength=low]",), "silver": ("plain",)}


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (
            ["compare_to: {plain: [silver]}", "family: {silver: []}"],
            "table.family.silver: no row is compared with 'silver' (`table.compare_to`, `baseline`)",
        ),
        (
            ["compare_to: {silver: [plain, silver]}"],
            "table.compare_to.silver: 'silver' is compared with itself",
        ),
        (
            ["compare_to: {plain: [silver], silver: []}", "ceiling: [plain]", "family: {silver: [plain]}"],
            "table.family.silver.0: 'plain' is not compared with 'silver' (`table.compare_to`)",
        ),
        (
            ["ceiling: [silver]", "family: {plain: [silver]}"],
            "table.family.plain.0: 'silver' is not compared with 'plain' (`table.compare_to`)",
        ),
        (
            ["columns: [test]", "averages: {Mean: [test]}", "primary: [Mean, Maen]"],
            "table.primary.1: no column of the table is called 'Maen'; did you mean 'Mean'?",
        ),
        (["primary: []"], "table.primary: must not be empty"),
        (["best: 1"], "table.best: must be true or false, is 1"),
    ],
)
def test_a_family_names_comparisons_and_columns_that_exist(
    study: ExperimentFile, lines: list[str], fault: str
) -> None:
    (found,) = with_table(study, *lines).faults()
    assert found.endswith(fault)


def test_published_figures_are_read_with_the_file(study: ExperimentFile) -> None:
    published = "published: {file: doe.csv, rows: {silver: full}, columns: {test: STSb}}"
    (first, second) = with_table(study, published).load().published
    assert (first.value, first.column, second.column) == ("76.09", "STSb", "dev")


def test_published_figures_may_be_in_several_files(study: ExperimentFile) -> None:
    lines = (study.folder / "doe.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    for name, line in (("one.csv", lines[1]), ("two.csv", lines[2])):
        (study.folder / name).write_text(lines[0] + line, encoding="utf-8")
    published = "published: {file: [one.csv, two.csv], rows: {silver: full}, columns: {test: STSb}}"
    assert [value.column for value in with_table(study, published).load().published] == ["STSb", "dev"]


@pytest.mark.parametrize(
    ("published", "faults"),
    [
        (
            "{file: none.csv, rows: {silver: full}}",
            ["study.yaml:25: table.published: none.csv: no such file"],
        ),
        (
            "{file: doe.csv, rows: {silvr: full}, columns: {tst: STSb}}",
            [
                "study.yaml:25: table.published.rows.silvr: no variant is called 'silvr'; "
                "did you mean 'silver'?",
                "study.yaml:25: table.published.columns.tst: no test set or average is called 'tst'; "
                "did you mean 'test'?",
                "study.yaml:25: table.published: doe.csv has none of the table's columns",
            ],
        ),
        (
            "{file: doe.csv, rows: {silver: ful}}",
            ["study.yaml:25: table.published: rows.silver: no 'ful'; did you mean 'full'?"],
        ),
        (
            "{file: doe.csv, rows: {silver: full}, columns: {test: dev}}",
            ["study.yaml:25: table.published: 'test' is of the split test, published is dev"],
        ),
    ],
)
def test_a_missing_published_table_is_a_fault(
    study: ExperimentFile, published: str, faults: list[str]
) -> None:
    found = with_table(study, f"published: {published}").faults()
    assert [fault.partition(":")[2].partition(":")[2] for fault in found] == [
        fault.partition(":")[2].partition(":")[2] for fault in faults
    ]


def test_the_table_may_name_a_removed_row(study: ExperimentFile) -> None:
    with_table(study, "published: {file: doe.csv, rows: {silver: full}, columns: {test: STSb}}")
    assert study.faults(variants=("plain",)) == []


def test_an_average_has_a_unique_name_and_may_be_a_column(study: ExperimentFile) -> None:
    with_table(study, "averages: {both: [test]}", "columns: [both, test]")
    assert study.faults() == []
    study.change("{both: [test]}", "{test: [test]}").change("[both, test]", "[test]")
    (fault,) = study.faults()
    assert fault.endswith("table.averages.test: 'test' is a test set; an average needs a name of its own")


MIXED = """\
experiment: mixed
sources:
  A: {{sandbox: pairs, split: test, size: 10}}
  B: {{sandbox: pairs, split: test, size: 10, seed: 1}}
defaults:
  train: {{trainer: none, base: {{model: sandbox/encoder}}}}
  evaluate:
    a: {{evaluator: sts, tasks: [A]}}
    b: {{evaluator: sts, tasks: [B], aggregation: {aggregation}}}
baseline: plain
variants: {variants}
table: {{averages: {{both: [A, B]}}}}
"""


@pytest.mark.parametrize(
    ("aggregation", "variants", "column"),
    [("mean", "{}", "both"), ("all", "{other: {evaluate.a.aggregation: mean}}", "A")],
)
def test_two_aggregations_are_never_mixed_in_a_column(
    tmp_path: Path, aggregation: str, variants: str, column: str
) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(MIXED.format(aggregation=aggregation, variants=variants), encoding="utf-8")
    with pytest.raises(UserError) as raised:
        load_experiment(file)
    assert f"column '{column}' would mix spearman_all and spearman_mean" in raised.value.messages[0]


def test_measures_of_two_kinds_have_no_mean_in_a_cost_figure(tmp_path: Path) -> None:
    file = tmp_path / "mixed.yaml"
    mixed = MIXED.format(aggregation="mean", variants="{}")
    asking = mixed.replace("{averages: {both: [A, B]}}", "{figures: {frontier: {costs: seconds}}}")
    file.write_text(asking, encoding="utf-8")
    with refused("spearman_all", "spearman_mean"):
        load_experiment(file)
    file.write_text(asking.replace("costs: seconds", "costs: seconds, score: A"), encoding="utf-8")
    assert load_experiment(file).table.figures.frontier is not None


def test_a_sentence_on_a_row_needs_an_existing_row(study: ExperimentFile) -> None:
    shows = "shows: {plain: What gold is worth., silver: Whether silver adds to it.}"
    table = with_table(study, shows).load().table
    assert table.shows == {"plain": "What gold is worth.", "silver": "Whether silver adds to it."}
    study.change("silver: Whether", "silvr: Whether")
    worded(study.faults(), "study.yaml:27", "table.shows.silvr", "'silvr'", "'silver'")


@pytest.mark.parametrize(
    ("sentence", "fault"),
    [
        ("' '", "must be a sentence on one line"),
        ('"one\\ntwo"', "must be a sentence on one line"),
        ("x" * 201, "has 201 characters; at most 200, what is longer is a note"),
    ],
)
def test_a_sentence_on_a_row_is_short(study: ExperimentFile, sentence: str, fault: str) -> None:
    (message,) = with_table(study, f"shows: {{plain: {sentence}}}").faults()
    assert message.startswith("study.yaml:27: table.shows.plain: ")
    assert fault in message


def test_sentences_on_rows_change_no_identity(study: ExperimentFile) -> None:
    before = study.load().variants
    assert with_table(study, "shows: {plain: What gold is worth.}").load().variants == before
