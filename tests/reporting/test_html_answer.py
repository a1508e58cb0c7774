"""The first screen of a page: what is claimed, and the rows of the main column."""

from collections.abc import Callable, Mapping

import pytest

from synthbench.reporting.render.html.answer import MOST_ROWS, FirstScreen, Mark, answer
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]


def lines_of(found: FirstScreen) -> list[Mark]:
    return [mark for _, marks in found.groups for mark in marks]


@pytest.fixture
def answered(make_runs: MakeRuns, make_result: MakeResult) -> Callable[..., FirstScreen]:
    def of(
        rows: Mapping[str, Mapping[str, tuple[float, ...]]], *, has_forest: bool = False, **table: object
    ) -> FirstScreen:
        runs = tuple(run for name, scores in rows.items() for run in make_runs(name, scores))
        report = Report(make_result(runs, **table))
        found = answer(report.analysis, report.table, report.forest if has_forest else None)
        assert found is not None
        return found

    return of


GOLD = {"A": (0.700, 0.702, 0.698)}
BETTER = {"A": (0.750, 0.753, 0.749)}
WORSE = {"A": (0.600, 0.603, 0.599)}
SIMILAR = {"A": (0.701, 0.699, 0.703)}


def test_a_significant_comparison_is_named_with_its_interval(answered: Callable[..., FirstScreen]) -> None:
    found = answered({"gold": GOLD, "bm25": BETTER}, compare_to="gold")
    # Variances .04 and .0433 over three seeds: error .1667, four degrees of freedom, 2.777 * .1667 = .46.
    assert found.sentences == (
        "The primary comparison is significant at 5 % over seeds, on these test items.",
        "It is: bm25 against gold on A, +5.07 (+4.60 to +5.53).",
    )


def test_of_several_comparisons_the_largest_is_named(answered: Callable[..., FirstScreen]) -> None:
    rows = {"gold": GOLD, "bm25": BETTER, "dino": WORSE, "random": SIMILAR}
    first, second = answered(rows, compare_to="gold").sentences
    assert first == (
        "2 of 3 primary comparisons are significant at 5 %, adjusted together, over seeds,"
        " on these test items."
    )
    assert second.startswith("The largest: dino against gold on A, −9.93 (")


def test_differences_within_the_noise_are_called_insignificant(answered: Callable[..., FirstScreen]) -> None:
    one = answered({"gold": GOLD, "bm25": SIMILAR}, compare_to="gold")
    assert one.sentences == (
        "The primary comparison is not significant at 5 % over seeds, on these test items,"
        " which does not prove equality.",
    )
    two = answered({"gold": GOLD, "bm25": SIMILAR, "dino": SIMILAR}, compare_to="gold")
    assert two.sentences[0].startswith(
        "None of 2 primary comparisons is significant at 5 %, adjusted together,"
    )


def test_one_seed_supports_no_claim(answered: Callable[..., FirstScreen]) -> None:
    found = answered({"gold": {"A": (0.7,)}, "bm25": {"A": (0.8,)}}, compare_to="gold")
    assert found.sentences == ("Nothing is claimed: an interval needs two seeds or more, and a row has one.",)


def test_without_a_baseline_nothing_is_claimed(answered: Callable[..., FirstScreen]) -> None:
    found = answered({"gold": GOLD, "bm25": BETTER})
    assert found.sentences == (
        "No baseline (`baseline`, `table.compare_to`), so nothing is primary and nothing is claimed.",
    )


def test_the_best_row_is_named_for_who_asks(answered: Callable[..., FirstScreen]) -> None:
    rows = {"gold": GOLD, "bm25": BETTER, "dino": WORSE}
    assert (
        answered(rows, best=True).sentences[-1] == "Best row on A: bm25 is significantly above every other."
    )
    rows["random"] = {"A": (0.751, 0.752, 0.7495)}
    assert (
        answered(rows, best=True).sentences[-1] == "Best row on A: no row is significantly above every other."
    )


def test_a_ceiling_is_drawn_but_never_compared(answered: Callable[..., FirstScreen]) -> None:
    found = answered(
        {"gold": GOLD, "bm25": BETTER, "labeller": BETTER}, ceiling=["labeller"], compare_to="gold"
    )
    assert found.sentences[0].startswith("The primary comparison is significant")
    assert [(mark.label, mark.is_ceiling, mark.is_bold) for mark in lines_of(found)] == [
        ("gold", False, False),
        ("bm25", False, True),
        ("labeller †", True, False),
    ]


def test_the_highest_mean_is_not_marked(answered: Callable[..., FirstScreen]) -> None:
    found = answered({"gold": GOLD, "bm25": SIMILAR}, compare_to="gold")
    assert not any(mark.is_bold for mark in lines_of(found))


def test_points_and_intervals_lie_within_the_frame(answered: Callable[..., FirstScreen]) -> None:
    found = answered({"gold": GOLD, "bm25": BETTER})
    for mark in lines_of(found):
        assert 0 < mark.low < mark.at < mark.high < 100
    low, high = map(float, found.ends)
    assert low < 69.5 < 75.6 < high


def test_of_many_rows_only_the_highest_and_the_baseline_are_drawn(
    answered: Callable[..., FirstScreen],
) -> None:
    rows = {f"row{number}": {"A": (0.5 + number / 100, 0.501 + number / 100)} for number in range(20)}
    found = answered(rows, compare_to="row0")
    assert len(lines_of(found)) == MOST_ROWS
    assert found.more == f"{20 - MOST_ROWS} further rows are in the table."
    assert {"row0", "row19"} <= {mark.label for mark in lines_of(found)}
    assert "row1" not in {mark.label for mark in lines_of(found)}


def test_a_primary_average_is_the_main_column(answered: Callable[..., FirstScreen]) -> None:
    rows = {"gold": {"A": (0.7, 0.71), "B": (0.5, 0.5)}, "bm25": {"A": (0.6, 0.61), "B": (0.8, 0.8)}}
    assert answered(rows, averages={"Avg.": ["A", "B"]}).title.startswith("Avg.")
    assert answered(rows, averages={"Avg.": ["A", "B"]}, primary=["B"]).title.startswith("B")


def test_primary_differences_are_plotted_in_place_of_means(answered: Callable[..., FirstScreen]) -> None:
    found = answered({"gold": GOLD, "bm25": BETTER, "dino": SIMILAR}, compare_to="gold", has_forest=True)
    assert (
        found.title
        == "Primary differences × 100 on A; bars: simultaneous 95 % intervals; *: significant at 5 %"
    )
    better, similar = lines_of(found)
    assert (better.label, better.is_bold, better.is_hollow) == ("bm25 − gold", True, False)
    assert (similar.label, similar.is_bold, similar.is_hollow) == ("dino − gold", False, True)
    assert found.zero is not None
    assert similar.low < found.zero < similar.high < better.low
