"""Comparisons of a result: values and output."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from report_texts import text_of
from scipy.stats import t, ttest_ind, ttest_rel

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.comparisons import Comparison
from synthbench.reporting.render.latex import PREAMBLE
from synthbench.reporting.results import ExperimentResult, RunResult
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


def test_rows_are_paired_only_if_their_seeds_are_equal(make: MakeResult) -> None:
    paired = only(make({"gold": GOLD, "silver": SILVER}))
    unpaired = only(make({"gold": GOLD, "silver": (*SILVER, 0.75)}))

    assert paired.over_seeds is not None and unpaired.over_seeds is not None
    assert paired.over_seeds.difference.p_value == pytest.approx(ttest_rel(SILVER, GOLD).pvalue)
    welch = ttest_ind((*SILVER, 0.75), GOLD, equal_var=False)
    assert unpaired.over_seeds.difference.p_value == pytest.approx(welch.pvalue)


def test_p_values_are_adjusted_for_all_comparisons_of_the_column(make: MakeResult) -> None:
    one, other = (
        Analysis(make({"gold": GOLD, "silver": SILVER, "random": (0.60, 0.62, 0.61)}))
        .comparisons[0]
        .comparisons
    )

    p_values = [ttest_rel(values, GOLD).pvalue for values in (SILVER, (0.60, 0.62, 0.61))]
    assert one.over_seeds is not None and other.over_seeds is not None
    assert one.over_seeds.adjusted_p == pytest.approx(max(p_values[0], 2 * p_values[1]))
    assert other.over_seeds.adjusted_p == pytest.approx(2 * p_values[1])


def test_item_noise_is_added_to_seed_noise(make: MakeResult) -> None:
    found = only(make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0004)]))

    gains = [after - before for before, after in zip(GOLD, SILVER, strict=True)]
    mean = sum(gains) / 3
    of_seeds = sum((gain - mean) ** 2 for gain in gains) / 2 / 3
    whole = of_seeds + 0.0004
    freedom = whole**2 / (of_seeds**2 / 2 + 0.0004**2 / 99)
    assert found.over_items is not None
    assert found.over_items.difference.half_width == pytest.approx(t.ppf(0.975, freedom) * math.sqrt(whole))


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
    (items,) = found.over_items.difference.noise[1:]
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
    assert found.over_items.difference.noise[1].squared_error == pytest.approx(0.0009 / 9 + 0.0008 / 9)


def test_rows_with_other_test_items_have_their_own_item_noise(make: MakeResult) -> None:
    rows = {"gold": GOLD, "silver": SILVER, "random": (0.60, 0.62, 0.61)}
    known = [noise(0.0004), noise(0.0001, variants=("gold", "random"), num_items=90)]

    silver, random = Analysis(make(rows, item_noise=known)).comparisons[0].comparisons

    assert silver.over_items is not None and random.over_items is not None
    assert silver.over_items.difference.noise[1].degrees_of_freedom == 99
    assert random.over_items.difference.noise[1].degrees_of_freedom == 89


def test_rows_without_seeds_differ_only_by_item_noise(make: MakeResult) -> None:
    result = make({"gold": (0.7,), "silver": (0.8,)}, item_noise=[noise(0.0004)])
    runs = tuple(run.model_copy(update={"is_seeded": False}) for run in result.runs)

    found = only(result.model_copy(update={"runs": runs}))

    assert found.over_seeds is None
    assert found.over_items is not None
    assert found.over_items.difference.half_width == pytest.approx(t.ppf(0.975, 99) * 0.02)


def test_a_single_seed_gives_a_difference_without_interval_and_a_note(make: MakeResult) -> None:
    result = make({"gold": (0.7,), "silver": (0.8,)}, item_noise=[noise(0.0004)])

    assert "| silver − gold | +10.00 | – | – | – | – | – |" in text_of(result, "comparisons.md")
    assert notes_of_comparisons(result) == (
        "No intervals and p values: with a single seed the noise is unknown.",
    )


def test_unknown_noise_has_a_reason(make: MakeResult, make_runs: MakeRuns) -> None:
    """Equal gains tell nothing of the noise: t would be infinite, and p 0 however many rows there are."""
    equal = make({"gold": (0.70, 0.72), "silver": (0.73, 0.75)}, item_noise=[noise(0.0004)])
    broken = make({"gold": GOLD, "silver": (0.7, math.nan, 0.8)})
    unseeded = make({"gold": (0.7,), "silver": (0.8,)})
    runs = tuple(run.model_copy(update={"is_seeded": False}) for run in unseeded.runs)
    several = make({"gold": GOLD, "silver": SILVER, "same": GOLD, "single": (0.7,)})

    assert "| silver − gold | +3.00 | – | – | – | – | +1.2 |" in text_of(equal, "comparisons.md")
    assert notes_of_comparisons(equal)[0] == (
        "No intervals and p values: equal differences for all seeds do not show the noise."
    )
    assert notes_of_comparisons(broken) == ("A: silver − gold: not compared: a score is NaN.",)
    assert notes_of_comparisons(unseeded.model_copy(update={"runs": runs})) == (
        "No intervals and p values: no seed changes these rows, and the noise of the test items is unknown.",
    )
    assert (
        "– Unknown: the noise of the test items is unknown; equal differences for all seeds"
        " do not show the noise; with a single seed the noise is unknown."
    ) in notes_of_comparisons(several)


def test_a_row_without_seeds_says_why_it_has_no_interval_over_seeds(make: MakeResult) -> None:
    rows = {"gold": (0.7,), "silver": (0.8,), "seeded": SILVER}
    result = make(rows, item_noise=[noise(0.0004)])
    runs = tuple(run.model_copy(update={"is_seeded": run.variant == "seeded"}) for run in result.runs)

    notes = notes_of_comparisons(result.model_copy(update={"runs": runs}))

    assert ("– Unknown: no seed changes these rows; the noise of the test items is unknown.") in notes


def test_nan_scores_are_not_compared_and_affect_no_other_comparison(make: MakeResult) -> None:
    result = make({"gold": GOLD, "broken": (0.7, math.nan, 0.8), "silver": SILVER})

    text = text_of(result, "comparisons.md")

    assert "| broken − gold | – | – | – | – | – | – |" in text
    assert "- A: broken − gold: not compared: a score is NaN." in text
    first, second = Analysis(result).comparisons[0].comparisons
    assert first.over_seeds is None
    assert second.over_seeds is not None
    assert second.over_seeds.adjusted_p == second.over_seeds.difference.p_value


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
    """Paired differences 4, 2, 5: mean 3.67, sd 1.53, so 4.30 x 0.88 = 3.79 to either side, p = 0.053.

    With items sqrt(0.88^2 + 2^2) = 2.19 and 49.2 degrees of freedom: 2.01 x 2.19 = 4.39, p = 0.100.
    """
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0004)])

    assert text_of(result, "comparisons.md") == (
        "**A: differences × 100**\n"
        "\n"
        "|  | difference | seeds: 95 % | p | seeds and items: 95 % | p | g |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| silver − gold | +3.67 | −0.13 to +7.46 | 0.053 | −0.73 to +8.06 | 0.100 | +1.4 |\n"
        "\n"
    ) + "".join(f"- {note}\n" for note in notes_of_comparisons(result))


def test_notes_explain_intervals_and_minimum_detectable_differences(make: MakeResult) -> None:
    notes = notes_of_comparisons(make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0001)]))

    assert notes[0].startswith(
        "seeds: generalises to other seeds on the same test items; paired t-test by seed."
    )
    assert notes[1].startswith(
        "seeds and items: generalises to other seeds and other test items of the same kind."
    )
    assert notes[2].endswith(
        "adjusted by Holm over all comparisons of the column; the intervals are not adjusted."
    )
    assert any(note.startswith("Minimum detectable difference with 3 seeds ") for note in notes)


def test_the_table_has_the_minimum_detectable_differences(make: MakeResult) -> None:
    notes = build_table(Analysis(make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0001)]))).notes

    (least,) = [note for note in notes if note.startswith("Minimum detectable difference with 3 seeds")]
    assert "; over test items, too: " in least
    assert least.endswith(" (comparisons.* has all comparisons with a baseline.)")


def test_bold_includes_item_noise_if_known(make: MakeResult) -> None:
    rows = {"gold": (0.70, 0.71, 0.72), "silver": (0.75, 0.761, 0.77)}

    def bold(squared_error: float) -> list[str]:
        table = build_table(Analysis(make(rows, item_noise=[noise(squared_error)])))
        return [row.variant for row in table.rows for cell in row.cells if cell is not None and cell.is_bold]

    assert bold(0.0004) == ["silver"]
    assert bold(0.0007) == []


def test_a_note_says_where_bold_ignores_item_noise(make_runs: MakeRuns, make_result: MakeResult) -> None:
    """A plug-in's evaluator need not report how items influence its score."""
    rows = [make_runs(name, {"A": values, "B": values}) for name, values in (("gold", GOLD), ("top", SILVER))]
    of_both = [noise(0.0004, variants=("gold", "top"), task=task) for task in ("A", "B")]

    def notes(*known: ItemNoise) -> str:
        result = make_result(*rows).model_copy(update={"item_noise": known})
        return "\n".join(build_table(Analysis(result)).notes)

    assert "more than the noise of seeds and test items (" in notes(*of_both)
    assert "more than the noise of seeds and, where known, of test items (" in notes(of_both[0])


def test_a_tracked_result_gives_the_same_bytes_again(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.000123457)])

    again = ExperimentResult.model_validate_json(result.model_dump_json())

    for ending in ("md", "tex", "csv"):
        name = f"comparisons.{ending}"
        assert text_of(again, name) == text_of(result, name) != ""


def test_csv_has_a_line_for_each_comparison(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.0001)])

    (line,) = csv.DictReader(io.StringIO(text_of(result, "comparisons.csv")))

    assert (line["row"], line["against"], line["column"], line["paired"]) == ("silver", "gold", "A", "true")
    assert float(line["difference"]) == pytest.approx(11 / 3, abs=1e-6)
    assert float(line["seeds_p"]) == pytest.approx(ttest_rel(SILVER, GOLD).pvalue, rel=1e-5)
    # Sample deviation 2.646 over three seeds: 4.303 x 1.5275 to either side of 75.
    assert float(line["mean_low"]) == pytest.approx(75 - 4.302653 * 2.645751 / 3**0.5, abs=1e-5)


def test_the_latex_compiles(make: MakeResult, compile_latex: Callable[[str], str]) -> None:
    result = make({"gold_1": GOLD, "silver & more": SILVER}, baseline="gold_1")
    body = text_of(result, "comparisons.tex")

    compile_latex(PREAMBLE + body + r"\end{document}")


def test_with_few_items_no_difference_is_detectable(make: MakeResult) -> None:
    result = make({"gold": GOLD, "silver": SILVER}, item_noise=[noise(0.5)])

    notes = [note for note in notes_of_comparisons(result) if "detectable" in note]

    assert notes[0].startswith("Minimum detectable difference with 3 seeds")
    assert notes[0].endswith(" (A).")
    assert notes[1] == "With 3 seeds and this noise, no difference is detectable over test items on A."


def test_with_noise_wider_than_the_scale_no_difference_is_detectable(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = {"gold": {"A": (0.70, 0.71), "B": (0.1, 0.9)}, "silver": {"A": (0.74, 0.76), "B": (0.8, 0.2)}}
    runs = (make_runs(name, scores) for name, scores in rows.items())
    result = make_result(*runs).model_copy(update={"baseline": "gold"})

    notes = [note for note in notes_of_comparisons(result) if "detectable" in note]

    assert len(notes) == 2
    assert notes[0].endswith(" (A).")
    assert "(B)" not in notes[0]
    assert notes[1] == "With 2 seeds and this noise, no difference is detectable on B."
