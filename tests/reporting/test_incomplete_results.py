"""Incomplete results: missing values are named, and none is invented."""

import csv
import io
from collections.abc import Callable

from report_texts import text_of

from synthbench.reporting.figures.curves import curves
from synthbench.reporting.figures.frontier import frontier
from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.notes import warnings
from synthbench.reporting.render.csv_files import csv_table, csv_text
from synthbench.reporting.render.latex import latex_table
from synthbench.reporting.render.markdown import markdown_table
from synthbench.reporting.results import ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
GOLD = (0.5, 0.6, 0.7)
NAN = float("nan")
UNDEFINED = "nan: undefined score, so no mean over the seeds: silver on A (seed 1)."


def printed(result: ExperimentResult) -> dict[str, list[str]]:
    """The cells of each row, and the sentences of the notes below the table and in the file of notes."""
    table = build_table(Analysis(result))
    lines = markdown_table(table).replace("\\", "").splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    below = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    assert below == list(table.below)
    notes = [sentence for note in table.first_notes for sentence in note] + list(table.further_notes)
    return {**{row: texts for row, *texts in cells}, "notes": notes}


def values(result: ExperimentResult, row: str) -> dict[str, str]:
    lines = [
        line for line in csv_table(build_table(Analysis(result))).splitlines() if not line.startswith("#")
    ]
    return next(line for line in csv.DictReader(io.StringIO("\n".join(lines))) if line["row"] == row)


def test_one_seed_has_a_difference_without_interval_or_test(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = (make_runs("gold", {"A": (0.5,)}), make_runs("silver", {"A": (0.6,)}))
    result = make_result(*rows, compare_to="gold", figures={"frontier": {"costs": "dollars"}})
    found = printed(result)
    assert found["silver"] == ["60.00"]
    assert "One seed (0): the noise between seeds is unknown, so nothing is claimed." in found["notes"]
    assert values(result, "silver")["sd"] == ""
    notes = build_table(Analysis(result)).figure_notes
    assert "One seed (0): the noise between seeds is unknown, so there are no intervals." in notes[0]
    compared = text_of(result, "comparisons.md")
    assert "| silver − gold | +10.00 | – | – | – | – | – |" in compared
    bought = frontier(Analysis(result))
    assert bought is not None
    (line, _) = csv.DictReader(io.StringIO(csv_text(bought.section.csv)))
    assert [line[name] for name in ("mean", "low", "high", "sd", "n_seeds")] == ["50.000000", "", "", "", "1"]


def test_a_row_with_one_seed_never_leads_rows_with_three(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    result = make_result(make_runs("gold", {"A": GOLD}), make_runs("silver", {"A": (0.99,)}))
    found = printed(result)
    assert found["silver"] == ["99.00 [n=1]"]
    assert "[n=...]: another number of seeds." in found["notes"]
    assert "Hollow: no interval, since there is one value." in build_table(Analysis(result)).figure_notes[0]


def test_a_missing_cell_and_every_average_over_it_are_a_dash(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = (make_runs("gold", {"A": GOLD, "B": GOLD}), make_runs("silver", {"A": GOLD}))
    result = make_result(*rows, compare_to="gold", averages={"Both": ["A", "B"]})
    found = printed(result)
    assert found["silver"] == ["60.00 ± 10.00", "–", "–"]
    assert "– Not scored." in found["notes"]
    assert "**B: differences × 100**" not in text_of(result, "comparisons.md")


def test_a_failed_seed_is_left_out_counted_and_named(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = (make_runs("gold", {"A": GOLD}), make_runs("silver", {"A": (0.6, 0.7)}))
    failures = ("train silver seed 2: it broke", "silver seed 2 is not finished")
    result = make_result(*rows, compare_to="gold").model_copy(update={"failures": failures})
    found = printed(result)
    assert found["silver"] == ["65.00 ± 7.07 [n=2]"]
    assert [note for note in found["notes"] if note.startswith("Failed")] == [
        f"Failed: {failure}" for failure in failures
    ]
    notes = build_table(Analysis(result)).figure_notes
    assert notes[-1] == "Incomplete (2 failed): the notes name what is missing."
    # Seeds can no longer be paired.
    assert "Welch's" in text_of(result, "comparisons.md")


def test_an_unfinished_baseline_is_named_and_no_row_compared(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    failures = tuple(f"gold seed {seed} is not finished" for seed in range(3))
    result = make_result(make_runs("silver", {"A": GOLD}), compare_to="gold")
    result = result.model_copy(update={"failures": failures})
    found = printed(result)
    assert found.keys() == {"variant", "---", "silver", "notes"}
    assert "Failed: gold seed 0 is not finished" in found["notes"]
    assert "differences" not in text_of(result, "comparisons.md")


def test_an_undefined_score_of_one_seed_is_named_and_leaves_the_mean_undefined(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = (make_runs("gold", {"A": GOLD, "B": GOLD}), make_runs("silver", {"A": (0.6, NAN, 0.8), "B": GOLD}))
    result = make_result(*rows, compare_to="gold", averages={"Both": ["A", "B"]})
    found = printed(result)
    assert found["silver"] == ["nan", "60.00 ± 10.00", "nan"]
    assert UNDEFINED in found["notes"]
    assert UNDEFINED in build_table(Analysis(result)).figure_notes
    assert values(result, "silver")["mean"] == "nan"
    assert "nan" in latex_table(build_table(Analysis(result)), Analysis(result))
    assert r"$\pm$ nan" not in latex_table(build_table(Analysis(result)), Analysis(result))
    assert "A: silver − gold: not compared: a score is NaN." in text_of(result, "comparisons.md")


def test_undefined_scores_in_hidden_columns_are_not_named(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = (make_runs("gold", {"A": GOLD, "B": (0.1, NAN, 0.2)}),)
    assert not any(note.startswith("nan") for note in printed(make_result(*rows, columns=["A"]))["notes"])


def test_rows_with_other_items_below_an_average_are_not_comparable(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = (make_runs("gold", {"A": GOLD, "B": GOLD}), make_runs("silver", {"A": GOLD, "B": GOLD}, items=80))
    averaged = make_result(*rows, columns=["Both"], averages={"Both": ["A", "B"]})
    warned = [f"{name}: rows are not comparable: scored on 100 and 80 items." for name in "AB"]
    assert [note for note in printed(averaged)["notes"] if "not comparable" in note] == warned
    analysis = Analysis(averaged)
    assert set(warned) <= set(warnings(build_table(analysis), analysis))


def test_a_curve_has_no_point_but_a_note_for_an_undefined_score(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [
        make_runs("gold", {"A": values}, size=size)
        for size, values in (("5", GOLD), ("6", (NAN, 0.5, 0.5)), ("7", GOLD))
    ]
    found = curves(Analysis(make_result(*rows, figures={"curves": {"axis": "size"}})))
    assert found is not None
    assert [point.x for point in found.lines[0].points] == [5, 7]
    assert ("nan: undefined score, so no mean over the seeds: gold [size=6] on A (seed 0).") in found.notes
