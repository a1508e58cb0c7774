"""The summary in words states only findings that the comparisons support."""

from collections.abc import Callable

import pytest

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.render.html.summary import Summary, summarize
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.statistics.item_noise import ItemNoise

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
BASE = {"A": (0.600, 0.611, 0.622), "B": (0.50, 0.51, 0.52), "C": (0.70, 0.71, 0.72)}
OURS = {"A": (0.700, 0.712, 0.721), "B": (0.51, 0.48, 0.55), "C": (0.60, 0.61, 0.621)}


def summary(result: ExperimentResult) -> Summary:
    return summarize(Analysis(result))


@pytest.fixture
def compared(make_runs: MakeRuns, make_result: MakeResult) -> ExperimentResult:
    return make_result(make_runs("base", BASE), make_runs("ours", OURS), compare_to="base", decimals=1)


def test_the_summary_states_differences_with_sizes_and_columns_without_differences(
    compared: ExperimentResult,
) -> None:
    ((about, text),) = summary(compared).findings
    assert about == "ours against base"
    assert text == ("higher on A by 10.0 ± 3.5; lower on C by 10.0 ± 3.3; no difference found on B.")


def test_the_summary_says_whether_differences_generalise_to_other_items(
    compared: ExperimentResult,
) -> None:
    (remark,) = [text for text in summary(compared).remarks if "significant" in text]
    assert "at 5 % over seeds, on these test items." in remark
    noise = tuple(
        ItemNoise(
            task=task,
            evaluator="sts",
            axes={},
            variants=("base", "ours"),
            squared_errors=(1e-8,),
            num_items=100,
        )
        for task in ("A", "B", "C")
    )
    known = compared.model_copy(update={"item_noise": noise})
    (remark,) = [text for text in summary(known).remarks if "significant" in text]
    assert "at 5 % over seeds and test items." in remark
    partly = compared.model_copy(update={"item_noise": noise[:1]})
    (remark,) = [text for text in summary(partly).remarks if "significant" in text]
    assert "over seeds and, where known, test items." in remark


def test_findings_are_adjusted_for_the_whole_family(make_runs: MakeRuns, make_result: MakeResult) -> None:
    def of_others(number: int) -> Summary:
        others = [make_runs(f"other{n}", {"A": (0.60, 0.612, 0.621)}) for n in range(number)]
        ours = make_runs("ours", {"A": (0.640, 0.653, 0.660)})
        return summary(make_result(make_runs("base", {"A": BASE["A"]}), ours, *others, compare_to="base"))

    assert [about for about, _ in of_others(0).findings] == ["ours against base"]
    assert of_others(40).findings == ()


def test_a_missing_difference_is_not_called_equality(make_runs: MakeRuns, make_result: MakeResult) -> None:
    same = make_runs("same", {"A": (0.61, 0.60, 0.63)})
    found = summary(make_result(make_runs("base", {"A": BASE["A"]}), same, compare_to="base"))
    assert found.findings == ()
    assert found.remarks == ("No difference found, which does not prove equality: same against base.",)


def test_a_single_seed_gives_no_finding_and_no_remark(make_runs: MakeRuns, make_result: MakeResult) -> None:
    rows = make_runs("base", {"A": (0.1,)}), make_runs("ours", {"A": (0.9,)})
    found = summary(make_result(*rows, compare_to="base"))
    assert found.findings == ()
    assert found.remarks == ()


def test_equal_scores_are_neither_a_finding_nor_called_a_single_seed(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = make_runs("base", {"A": (0.1, 0.1)}), make_runs("ours", {"A": (0.3, 0.3)})
    found = summary(make_result(*rows, compare_to="base"))
    assert found.findings == ()
    assert found.remarks == ()


def test_a_row_with_a_single_seed_is_named(make_runs: MakeRuns, make_result: MakeResult) -> None:
    short = make_runs("short", {"A": (0.9,)})
    base, ours = make_runs("base", {"A": BASE["A"]}), make_runs("ours", {"A": OURS["A"]})
    remarks = summary(make_result(base, ours, short, compare_to="base")).remarks
    assert "No test of short against base: an interval needs two seeds or more, and a row has one." in remarks


def test_rows_measured_differently_are_not_compared(make_runs: MakeRuns, make_result: MakeResult) -> None:
    base, ours = make_runs("base", {"A": BASE["A"], "B": BASE["B"]}), make_runs("ours", {"A": OURS["A"]})
    other = make_runs("ours", {"B": OURS["B"]}, items=50)
    both = tuple(
        run.model_copy(update={"scores": (*run.scores, *more.scores)})
        for run, more in zip(ours, other, strict=True)
    )
    ((_, text),) = summary(make_result(base, both, compare_to="base")).findings
    assert text.endswith("; not compared on B.")


def test_test_sets_are_stated_below_an_average_that_differs(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    scores = {"A": OURS["A"], "B": OURS["A"]}
    base = {"A": BASE["A"], "B": BASE["A"]}
    result = make_result(
        make_runs("base", base), make_runs("ours", scores), compare_to="base", averages={"Mean": ["A", "B"]}
    )
    ((_, text),) = summary(result).findings
    assert [each.partition(" by ")[0] for each in text.split(", ")] == ["higher on A", "B", "Mean"]
