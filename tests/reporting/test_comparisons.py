"""Comparisons of a result: values and output."""

import csv
import io
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from report_texts import PREAMBLE, text_of
from scipy.stats import t, ttest_ind, ttest_rel

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.comparisons import Comparison
from synthbench.reporting.model.verdicts import verdict
from synthbench.reporting.results import DatasetSummary, ExperimentResult, Ingredient, RunResult
from synthbench.statistics.item_noise import ItemNoise

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]

GOLD, SILVER = (0.70, 0.71, 0.73), (0.74, 0.73, 0.78)


@pytest.fixture
def make(make_runs: MakeRuns, make_result: MakeResult) -> Callable[..., ExperimentResult]:
    """Return a result with these rows' scores on A; keywords set options, baseline and item noise."""

    def made(
        rows: dict[str, Sequence[float]],
        *,
        baseline: str = "gold",
        item_noise: Sequence[ItemNoise] = (),
        **options: Any,
    ) -> ExperimentResult:
        result = make_result(*(make_runs(name, {"A": values}) for name, values in rows.items()), **options)
        return result.model_copy(update={"baseline": baseline, "item_noise": tuple(item_noise)})

    return made


def noise(*squared_errors: float, variants: Sequence[str] = ("gold", "silver"), **changes: Any) -> ItemNoise:
    known: dict[str, Any] = {"axes": {}, "task": "A", "evaluator": "sts", "num_items": 100}
    return ItemNoise(**{**known, **changes}, variants=tuple(variants), squared_errors=squared_errors)


def notes_of_comparisons(result: ExperimentResult) -> tuple[str, ...]:
    section = comparison_section(Analysis(result))
    assert section is not None
    return section.notes


def why_nothing_is_claimed(result: ExperimentResult) -> str:
    (first,) = [
        sentence for sentence in verdict(Analysis(result)) if sentence.startswith("Nothing is claimed")
    ]
    return first.removeprefix("Nothing is claimed: ")


def only(result: ExperimentResult, column: int = 0) -> Comparison:
    (found,) = Analysis(result).comparisons[column].comparisons
    return found


def test_every_row_is_compared_with_the_experiments_baseline(make: MakeResult) -> None:
    result = make({"silver": SILVER, "gold": GOLD, "random": GOLD})

    found = [
        (each.row.variant, each.baseline.variant) for each in Analysis(result).comparisons[0].comparisons
    ]

    assert found == [("silver", "gold"), ("random", "gold")]
    assert Analysis(result.model_copy(update={"baseline": ""})).comparisons == ()


def test_the_file_may_name_other_baselines_and_the_rows_compared_with_each(make: MakeResult) -> None:
    rows = {"gold": GOLD, "silver": SILVER, "random": GOLD, "top": SILVER}

    def pairs(**options: Any) -> list[tuple[str, str]]:
        found = Analysis(make(rows, **options)).comparisons[0].comparisons
        return [(each.row.variant, each.baseline.variant) for each in found]

    assert pairs(compare_to="random", ceiling=["top"]) == [("gold", "random"), ("silver", "random")]
    several = {"gold": ["silver"], "silver": ["gold", "random"]}
    assert pairs(compare_to=several) == [("silver", "gold"), ("gold", "silver"), ("random", "silver")]


def test_rows_are_compared_at_the_same_grid_point(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [
        make_runs(name, {"A": GOLD}, base=base) for base in ("small", "large") for name in ("gold", "silver")
    ]
    elsewhere = make_runs("untrained", {"A": GOLD})

    result = make_result(*rows, elsewhere, compare_to="gold")

    found = [(each.row.axes, each.baseline.axes) for each in Analysis(result).comparisons[0].comparisons]
    assert found == [((("base", base),), (("base", base),)) for base in ("small", "large")]


def test_a_baseline_that_ignores_the_grid_is_compared_at_every_grid_point(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs("silver", {"A": SILVER}, base=base) for base in ("small", "large")]

    result = make_result(*rows, make_runs("gold", {"A": GOLD}), compare_to="gold")

    found = Analysis(result).comparisons[0].comparisons
    assert [(each.row.axes, each.baseline.axes) for each in found] == [
        ((("base", base),), ()) for base in ("small", "large")
    ]


def drawn(result: ExperimentResult, stage: str) -> ExperimentResult:
    """Give all rows data that were made of a sample: with {seed} in its name, drawn anew for every seed."""
    runs = []
    for run in result.runs:
        sample = Ingredient(role="gold", kind="prepare", name="sample", stage=stage.format(seed=run.seed))
        data = DatasetSummary(
            part="x",
            kind="scored_pair",
            num_records=1,
            content_hash="h",
            stage=run.identity,
            made_of=(sample,),
        )
        runs.append(run.model_copy(update={"datasets": (data,)}))
    return result.model_copy(update={"runs": tuple(runs)})


def test_rows_are_paired_only_if_seeds_redraw_data_that_both_use(make: MakeResult) -> None:
    rows = {"gold": GOLD, "silver": SILVER}
    paired = only(drawn(make(rows), "sample-{seed}"))
    made_once = only(drawn(make(rows), "sample"))
    seeds_differ = only(drawn(make({"gold": GOLD, "silver": SILVER[:2]}), "sample-{seed}"))

    assert paired.over_seeds is not None and made_once.over_seeds is not None
    assert seeds_differ.over_seeds is not None
    assert paired.over_seeds.p_value == pytest.approx(ttest_rel(SILVER, GOLD).pvalue)
    welch = ttest_ind(SILVER, GOLD, equal_var=False)
    assert made_once.over_seeds.p_value == pytest.approx(welch.pvalue)
    assert seeds_differ.over_seeds.p_value == pytest.approx(
        ttest_ind(SILVER[:2], GOLD, equal_var=False).pvalue
    )


def test_a_note_says_how_rows_are_tested(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER})

    def test_of(result: ExperimentResult) -> str:
        (note,) = [each for each in build_table(Analysis(result)).notes if each.startswith("Primary: ")]
        return note.split("; ")[1]

    assert test_of(result) == "Welch's t-test"
    assert test_of(drawn(result, "sample")) == "Welch's t-test"
    assert (
        test_of(drawn(result, "sample-{seed}"))
        == "t-test paired by seed, since seeds redraw data that both rows use"
    )


def test_item_noise_is_added_to_seed_noise(make: MakeResult) -> None:
    found = only(make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0004)]))

    variances = [statistics.variance(values) / 3 for values in (GOLD, SILVER)]
    of_seeds = sum(variances)
    whole = of_seeds + 0.0004
    freedom = whole**2 / (sum(each**2 / 2 for each in variances) + 0.0004**2 / 99)
    assert found.over_items is not None
    assert found.over_items.half_width == pytest.approx(t.ppf(0.975, freedom) * math.sqrt(whole))


@pytest.mark.parametrize("changes", [{"task": "B"}, {"evaluator": "pairs"}, {"axes": {"base": "small"}}])
def test_noise_of_different_items_is_not_used(make: MakeResult, changes: dict[str, Any]) -> None:
    found = only(make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0004, **changes)]))

    assert found.over_seeds is not None
    assert found.over_items is None


def test_an_average_includes_the_item_noise_of_all_its_test_sets(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs(name, {"A": values, "B": values}) for name, values in (("gold", GOLD), ("top", SILVER))]
    known = [noise(0.0004, variants=("gold", "top")), noise(0.0008, variants=("gold", "top"), task="B")]
    result = make_result(*rows, averages={"Average": ["A", "B"]}, compare_to="gold")

    found = only(result.model_copy(update={"item_noise": tuple(known)}), column=2)

    assert found.over_items is not None
    (items,) = found.over_items.noise[1:]
    assert (items.squared_error, items.degrees_of_freedom) == pytest.approx((0.0003, 99 * 9 / 5))


def test_a_test_set_averaged_over_axis_values_has_the_same_items(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    """Another draw of the items of A moves both scores at once: 0.02 and 0.01, together (0.03 / 3)^2."""
    rows = [
        make_runs(name, {"A": values, "B": values} if base == "small" else {"A": values}, base=base)
        for name, values in (("gold", GOLD), ("top", SILVER))
        for base in ("small", "large")
    ]
    known = [
        noise(error, variants=("gold", "top"), task=task, axes={"base": base})
        for task, base, error in (("A", "small", 0.0004), ("B", "small", 0.0008), ("A", "large", 0.0001))
    ]
    result = make_result(*rows, averages={"Average": ["A", "B"]}, across=["base"], compare_to="gold")

    found = only(result.model_copy(update={"item_noise": tuple(known)}), column=3)

    assert found.over_items is not None
    assert found.over_items.noise[1].squared_error == pytest.approx(0.0009 / 9 + 0.0008 / 9)


def test_rows_with_other_test_items_have_their_own_item_noise(make: MakeResult) -> None:
    rows = {"gold": GOLD, "silver": SILVER, "random": (0.60, 0.62, 0.61)}
    known = [noise(0.0004), noise(0.0001, variants=("gold", "random"), num_items=90)]

    silver, random = Analysis(make(rows, item_noise=known)).comparisons[0].comparisons

    assert silver.over_items is not None and random.over_items is not None
    assert silver.over_items.noise[1].degrees_of_freedom == 99
    assert random.over_items.noise[1].degrees_of_freedom == 89


def test_rows_without_seeds_differ_only_by_item_noise(make: MakeResult) -> None:
    result = make({"gold": (0.7,), "silver": (0.8,)}, item_noise=[noise(0.0004)])
    runs = tuple(run.model_copy(update={"is_seeded": False}) for run in result.runs)

    found = only(result.model_copy(update={"runs": runs}))

    assert found.over_seeds is None
    assert found.over_items is not None
    assert found.over_items.half_width == pytest.approx(t.ppf(0.975, 99) * 0.02)


def test_a_single_seed_gives_a_difference_without_interval_and_a_note(make: MakeResult) -> None:
    result = make({"gold": (0.7,), "silver": (0.8,)}, item_noise=[noise(0.0004)])

    assert "| silver − gold | +10.00 | – | – | – | – | – |" in text_of(result, "comparisons.md")
    assert notes_of_comparisons(result) == ()
    assert why_nothing_is_claimed(result) == "an interval needs two seeds or more, and a row has one."


def test_unknown_noise_has_a_reason(make: MakeResult, make_runs: MakeRuns) -> None:
    """Equal scores tell nothing of the noise: t would be infinite, and p 0 however many rows there are."""
    equal = make({"gold": (0.70, 0.70), "silver": (0.73, 0.73)}, item_noise=[noise(0.0004)])
    gains = drawn(make({"gold": (0.70, 0.72), "silver": (0.73, 0.75)}), "sample-{seed}")
    broken = make({"gold": GOLD, "silver": (0.7, math.nan, 0.8)})
    unseeded = make({"gold": (0.7,), "silver": (0.8,)})
    runs = tuple(run.model_copy(update={"is_seeded": False}) for run in unseeded.runs)
    several = make({"gold": GOLD, "silver": SILVER, "same": (0.7, 0.7), "single": (0.7,)})

    assert "| silver − gold | +3.00 | – | – | – | – | – |" in text_of(equal, "comparisons.md")
    assert why_nothing_is_claimed(equal) == "equal scores for all seeds do not show the noise."
    assert why_nothing_is_claimed(gains) == "equal differences for all seeds do not show the noise."
    assert why_nothing_is_claimed(broken) == "rows can't be compared."
    assert notes_of_comparisons(broken) == ("A: silver − gold: not compared: a score is NaN.",)
    assert why_nothing_is_claimed(unseeded.model_copy(update={"runs": runs})) == (
        "no seed changes these rows, and the noise of the test items is unknown."
    )
    assert (
        "– No interval: the noise of the test items is unknown;"
        " an interval needs two seeds or more, and a row has one."
    ) in " ".join(notes_of_comparisons(several))


def test_a_row_without_seeds_says_why_it_has_no_interval_over_seeds(make: MakeResult) -> None:
    rows = {"gold": (0.7,), "silver": (0.8,), "seeded": SILVER}
    result = make(rows, item_noise=[noise(0.0004)])
    runs = tuple(run.model_copy(update={"is_seeded": run.variant == "seeded"}) for run in result.runs)

    notes = notes_of_comparisons(result.model_copy(update={"runs": runs}))

    unknown = "– No interval: no seed changes these rows; the noise of the test items is unknown."
    assert unknown in " ".join(notes)


def test_nan_scores_are_not_compared_and_affect_no_other_comparison(make: MakeResult) -> None:
    result = make({"gold": GOLD, "broken": (0.7, math.nan, 0.8), "silver": SILVER})

    text = text_of(result, "comparisons.md")

    assert "| broken − gold | – | – | – | – | – | – |" in text
    assert "- A: broken − gold: not compared: a score is NaN." in text
    first, second = Analysis(result).comparisons[0].comparisons
    assert first.over_seeds is None
    assert second.over_seeds is not None
    assert second.finding is not None
    assert second.finding.p_value == pytest.approx(second.over_seeds.p_value)


def test_rows_scored_on_different_items_are_not_compared(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs("gold", {"A": GOLD}), make_runs("silver", {"A": SILVER}, items=99)]

    text = text_of(make_result(*rows, compare_to="gold"), "comparisons.md")

    assert "- A: silver − gold: not compared: scored on different items or by different metrics." in text


def test_a_missing_cell_is_left_out(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = [make_runs("gold", {"A": GOLD, "B": GOLD}), make_runs("silver", {"B": SILVER})]

    (column,) = Analysis(make_result(*rows, compare_to="gold")).comparisons

    assert column.column.title == "B"


def test_the_markdown_page_lists_all_comparisons(make: MakeResult) -> None:
    """Variances 2.33 and 7 over three seeds: error 1.76, 3.2 degrees of freedom, 3.07 x 1.76 = 5.42.

    With items sqrt(1.76^2 + 2^2) = 2.67 and 15.9 degrees of freedom: 2.12 x 2.67 = 5.66, p = 0.188. A family
    of one is not adjusted.
    """
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0004)])

    assert text_of(result, "comparisons.md") == (
        "**A: differences × 100, primary**\n"
        "\n"
        "|  | difference | seeds: 95 % | seeds and items: 95 % | family: 95 % | family: p | g |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| silver − gold | +3.67 | −1.75 to +9.09 | −1.99 to +9.32 | −1.99 to +9.32 | 0.188 | +1.4 |\n"
        "\n"
    ) + "".join(f"- {note}\n" for note in notes_of_comparisons(result)).replace("*", "\\*")


def test_notes_explain_intervals_and_minimum_detectable_differences(make: MakeResult) -> None:
    notes = notes_of_comparisons(make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0001)]))

    stars, columns, least = notes
    assert stars.startswith("*: significant at 5 %. family: simultaneous 95 % interval and adjusted p;")
    assert columns.startswith("seeds: generalises to other seeds on the same test items")
    assert "seeds and items: generalises to other seeds and other test items of the same kind." in columns
    assert least.startswith("Minimum detectable difference with 3 seeds ")
    assert "; over test items, too: " in least


def test_comparisons_and_table_share_no_note(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0001)])

    of_table = set(build_table(Analysis(result)).notes)
    assert not any(sentence in note for sentence in of_table for note in notes_of_comparisons(result))


def test_bold_includes_item_noise_if_known(make: MakeResult) -> None:
    rows = {"gold": (0.70, 0.71, 0.72), "silver": (0.75, 0.761, 0.77)}

    def bold(squared_error: float) -> list[str]:
        table = build_table(Analysis(make(rows, item_noise=[noise(squared_error)])))
        return [row.variant for row in table.rows for cell in row.cells if cell is not None and cell.is_bold]

    assert bold(0.0004) == ["silver"]
    assert bold(0.0007) == []


def test_a_note_says_where_claims_ignore_item_noise(make_runs: MakeRuns, make_result: MakeResult) -> None:
    """A plug-in's evaluator need not report how items influence its score."""
    rows = [make_runs(name, {"A": values, "B": values}) for name, values in (("gold", GOLD), ("top", SILVER))]
    of_both = [noise(0.0004, variants=("gold", "top"), task=task) for task in ("A", "B")]

    def notes(*known: ItemNoise) -> str:
        result = make_result(*rows, compare_to="gold").model_copy(update={"item_noise": known})
        return "\n".join(build_table(Analysis(result)).notes)

    assert "on A, B, over seeds and test items;" in notes(*of_both)
    assert "on A, B, over seeds and, where known, test items;" in notes(of_both[0])


def test_a_tracked_result_gives_the_same_bytes_again(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.000123457)])

    again = ExperimentResult.model_validate_json(result.model_dump_json())

    for ending in ("md", "tex", "csv"):
        name = f"comparisons.{ending}"
        assert text_of(again, name) == text_of(result, name) != ""


def test_csv_has_a_line_for_each_comparison(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0001)])

    (line,) = csv.DictReader(io.StringIO(text_of(result, "comparisons.csv")))

    assert (line["row"], line["against"], line["column"], line["paired"]) == ("silver", "gold", "A", "false")
    assert float(line["difference"]) == pytest.approx(11 / 3, abs=1e-6)
    assert float(line["seeds_p"]) == pytest.approx(ttest_ind(SILVER, GOLD, equal_var=False).pvalue, rel=1e-5)
    assert (line["family"], line["significant"]) == ("primary", "false")
    assert float(line["family_p"]) == pytest.approx(float(line["items_p"]), rel=1e-4)
    assert float(line["family_low"]) == pytest.approx(float(line["items_low"]), rel=1e-4)
    # Sample deviation 2.646 over three seeds: 4.303 x 1.5275 to either side of 75.
    assert float(line["mean_low"]) == pytest.approx(75 - 4.302653 * 2.645751 / 3**0.5, abs=1e-5)


def test_equal_scores_have_no_interval_in_the_csv(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": (0.7, 0.7, 0.7)})

    (line,) = csv.DictReader(io.StringIO(text_of(result, "comparisons.csv")))

    assert [line[name] for name in ("mean", "mean_low", "mean_high")] == ["70.000000", "", ""]


def test_the_latex_compiles(make: MakeResult, compile_latex: Callable[[str], str]) -> None:
    result = make({"gold_1": GOLD, "silver & more": SILVER}, baseline="gold_1")
    body = text_of(result, "comparisons.tex")

    compile_latex(PREAMBLE + body + r"\end{document}")


def test_with_few_items_no_difference_is_detectable(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.5)])

    (note,) = [note for note in notes_of_comparisons(result) if "detectable" in note]

    assert note.startswith("Minimum detectable difference with 3 seeds")
    assert " (A). With 3 seeds and this noise, no difference is detectable over test items on A." in note


def test_with_noise_wider_than_the_scale_no_difference_is_detectable(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = {"gold": {"A": (0.70, 0.71), "B": (0.1, 0.9)}, "silver": {"A": (0.74, 0.76), "B": (0.8, 0.2)}}
    runs = (make_runs(name, scores) for name, scores in rows.items())
    result = make_result(*runs).model_copy(update={"baseline": "gold"})

    (note,) = [note for note in notes_of_comparisons(result) if "detectable" in note]

    assert note.endswith(" (A). With 2 seeds and this noise, no difference is detectable on B.")
    assert "(B)" not in note
