"""A table whose columns are the values of an axis: each cell comes from the runs of its value."""

import csv
import io
from collections.abc import Callable

import pytest

from synthbench.config.published_tables import PublishedValue
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.table import Table
from synthbench.reporting.render.csv_files import csv_table
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.results import DatasetSummary, ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]


@pytest.fixture
def two_sets(make_runs: MakeRuns, make_result: MakeResult) -> Callable[..., ExperimentResult]:
    """Two rows on two data sets: MRPC has a test set of its own, and so has STSb."""

    def made(**options: object) -> ExperimentResult:
        return make_result(
            make_runs("gold", {"MRPC": (0.70, 0.72, 0.71)}, data_set="mrpc", items=7),
            make_runs("silver", {"MRPC": (0.80, 0.81, 0.82)}, data_set="mrpc", items=7),
            make_runs("gold", {"STSb": (0.50, 0.51, 0.52)}, data_set="stsb", items=9, dropped=2),
            make_runs("silver", {"STSb": (0.50, 0.52, 0.54)}, data_set="stsb", items=9, dropped=2),
            tasks=("MRPC", "STSb"),
            **{"across": ["data_set"], **options},
        )

    return made


def means(table: Table) -> dict[str, list[float | None]]:
    return {
        row.label: [None if cell is None else round(cell.mean, 6) for cell in row.cells] for row in table.rows
    }


def test_a_row_spans_all_axis_values(two_sets: Callable[..., ExperimentResult]) -> None:
    table = build_table(Analysis(two_sets(compare_to="gold")))

    assert table.header == ("variant", "MRPC", "STSb")
    assert means(table) == {"gold": [71.0, 51.0], "silver": [81.0, 52.0]}
    assert [[cell.is_bold for cell in row.cells if cell] for row in table.rows] == [
        [False] * 2,
        [True, False],
    ]
    assert "Items scored: MRPC 7, STSb 9 (2 dropped as leaks)." in table.notes


def test_without_across_the_table_has_a_group_for_each_value(
    two_sets: Callable[..., ExperimentResult],
) -> None:
    table = build_table(Analysis(two_sets(across=[])))

    assert table.header == ("data_set", "variant", "MRPC", "STSb")
    assert len(table.groups) == 2


def test_averages_are_taken_over_columns_for_each_seed(two_sets: Callable[..., ExperimentResult]) -> None:
    # Seed by seed (0.8 + 0.5) / 2 = 0.65, 0.665, 0.68.
    table = build_table(Analysis(two_sets(averages={"Average": ["mrpc", "STSb"]})))

    average = table.rows[1].cells[2]
    assert average is not None
    assert (average.mean, average.standard_deviation) == pytest.approx((66.5, 1.5))


def test_a_column_is_named_by_its_value_if_the_test_set_is_common(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    runs = [make_runs("gold", {"STSb": (value,)}, size=size) for size, value in (("500", 0.5), ("1000", 0.6))]

    table = build_table(Analysis(make_result(*runs, across="size")))

    assert table.header == ("variant", "500", "1000")
    assert means(table) == {"gold": [50.0, 60.0]}


def test_a_value_with_several_test_sets_precedes_their_names(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    table = build_table(
        Analysis(
            make_result(
                make_runs("gold", {"STSb": (0.5,), "SICK-R": (0.4,)}, size="500"),
                make_runs("gold", {"STSb": (0.6,), "MRPC": (0.3,)}, size="1000"),
                across=["size"],
            )
        )
    )

    assert table.header == ("variant", "500: STSb", "SICK-R", "1000: STSb", "MRPC")
    assert means(table) == {"gold": [50.0, 40.0, 60.0, 30.0]}


def test_columns_may_be_chosen_by_value_by_test_set_and_by_both(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    scores = {"STSb": (0.5,), "SICK-R": (0.4,)}
    runs = [make_runs("gold", scores, size=size) for size in ("500", "1000", "2000")]

    def header(*columns: str) -> tuple[str, ...]:
        return build_table(Analysis(make_result(*runs, across=["size"], columns=list(columns)))).header[1:]

    assert header("1000") == ("1000: STSb", "1000: SICK-R")
    assert header("STSb") == ("500: STSb", "1000: STSb", "2000: STSb")
    assert header("2000: SICK-R", "500", "500: STSb") == ("2000: SICK-R", "500: STSb", "500: SICK-R")


def test_other_axes_still_form_groups_and_several_axes_can_go_across_together(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    runs = [
        make_runs("gold", {"STSb": (0.5,)}, base=base, language=language, size=size)
        for base in ("small", "large")
        for language in ("en", "es")
        for size in ("1", "2")
    ]

    table = build_table(Analysis(make_result(*runs, across=["language", "size"])))

    assert table.header == ("base", "variant", "en, 1", "en, 2", "es, 1", "es, 2")
    assert len(table.groups) == 2


def test_a_missing_score_is_an_empty_cell(two_sets: Callable[..., ExperimentResult]) -> None:
    result = two_sets()
    runs = tuple(run for run in result.runs if (run.variant, run.axes["data_set"]) != ("gold", "stsb"))

    table = build_table(Analysis(result.model_copy(update={"runs": runs})))

    assert means(table) == {"gold": [71.0, None], "silver": [81.0, 52.0]}
    assert "– Not scored." in table.notes


def test_settings_chosen_on_dev_are_named_with_the_axis_value(
    two_sets: Callable[..., ExperimentResult],
) -> None:
    result = two_sets()
    runs = tuple(run.model_copy(update={"chosen": {"k": 5}}) for run in result.runs if run.seed == 0)

    notes = build_table(Analysis(result.model_copy(update={"runs": runs}))).notes

    assert "Chosen on dev: silver (stsb): k = 5 for seed 0." in notes


def test_columns_of_different_measures_are_side_by_side(two_sets: Callable[..., ExperimentResult]) -> None:
    result = two_sets()
    runs = tuple(
        run.model_copy(
            update={
                "scores": tuple(
                    score.model_copy(update={"main_score": "f1", "scores": {"f1": 0.5}})
                    if score.task == "MRPC"
                    else score
                    for score in run.scores
                )
            }
        )
        for run in result.runs
    )

    table = build_table(Analysis(result.model_copy(update={"runs": runs})))

    assert [column.metric for column in table.columns] == ["f1", "cosine_spearman"]
    assert "Scores × 100: MRPC: f1; STSb: cosine_spearman." in table.notes
    assert not [note for note in table.notes if "not comparable" in note]


def test_published_figures_are_below_their_columns(two_sets: Callable[..., ExperimentResult]) -> None:
    values = tuple(
        PublishedValue.model_validate(
            {
                "paper": "Doe 2021", "table": "5", "row": "SBERT", "encoder": encoder, "generator": "",
                "column": column, "metric": "cosine", "split": "test", "aggregation": "none", "n": n,
                "value": value, "sd": "", "flag": "",
            }
        )
        for column, encoder, n, value in (
            ("Paraphrases", "bert", "7", "70.1"),
            ("STSb", "mbert", "8", "60.2"),
        )
    )  # fmt: skip
    published = {
        "file": "doe.csv",
        "rows": {"gold": "SBERT"},
        "columns": {"mrpc": "Paraphrases"},
        "encoders": {"mrpc": "bert", "stsb": "mbert"},
    }
    result = two_sets(published=published).model_copy(update={"published": values})

    table = build_table(Analysis(result))

    assert table.rows[0].published_line == ("published", "70.1", "60.2‡")
    assert "‡ Measured differently: STSb: 8 items published, 9 here." in table.notes


def test_published_amounts_of_data_are_beside_ours(two_sets: Callable[..., ExperimentResult]) -> None:
    """A column called "SET #PART" is of how many records the part had for the test set."""
    values = tuple(
        PublishedValue.model_validate(
            {
                "paper": "Doe 2021", "table": "11", "row": row, "encoder": "", "generator": "",
                "column": column, "metric": "count", "split": "", "aggregation": "none", "n": "",
                "value": value, "sd": "", "flag": "",
            }
        )
        for row, column, value in (
            ("BM25", "Paraphrases #silver", "10637"),
            ("BM25", "STSb #silver", "3964"),
            ("BM25", "STSb #bronze", "5"),
            ("BM25", "STSb #more", "1,000 or so"),
            ("KDE", "STSb #silver", "6"),
        )
    )  # fmt: skip
    options = {"file": "doe.csv", "rows": {"gold": "BM25"}, "columns": {"mrpc": "Paraphrases"}}
    result = two_sets(published=options).model_copy(update={"published": values})
    amounts = {("mrpc", 0): 9_000, ("mrpc", 1): 11_000, ("mrpc", 2): 10_001}

    def with_silver(run: RunResult) -> RunResult:
        number = amounts.get((run.axes["data_set"], run.seed), 4_000)
        silver = DatasetSummary(
            part="silver", kind="scored_pair", num_records=number, content_hash="", stage=""
        )
        more = silver.model_copy(update={"part": "more"})
        return run.model_copy(update={"datasets": (silver, more)})

    table = build_table(Analysis(result.model_copy(update={"runs": tuple(map(with_silver, result.runs))})))

    told = (
        "Number of records of silver, published in brackets: gold: MRPC 10,000 (10,637), STSb 4,000 (3,964)."
    )
    as_printed = "Number of records of more, published in brackets: gold: STSb 4,000 (1,000 or so)."
    assert [note for note in table.notes if note.startswith("Number of records of")] == [told, as_printed]
    assert not any(note.startswith("Number of records of") for note in build_table(Analysis(result)).notes)


def test_every_format_shows_the_columns(two_sets: Callable[..., ExperimentResult]) -> None:
    table = build_table(Analysis(two_sets()))

    assert "| variant | MRPC | STSb |" in markdown_table(table)
    lines = list(csv.DictReader(io.StringIO(csv_table(table))))
    assert [(line["row"], line["axis"], line["column"], line["mean"]) for line in lines[:2]] == [
        ("gold", "", "MRPC", "71.000000"),
        ("gold", "", "STSb", "51.000000"),
    ]
