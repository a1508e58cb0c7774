"""The first screen of a page: which row is best, and is that certain?"""

from collections.abc import Callable, Mapping

import pytest

from synthbench.reporting.render.html.answer import MOST_ROWS, LeadingRow, answer
from synthbench.reporting.report import Report
from synthbench.reporting.results import ExperimentResult, RunResult

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]


@pytest.fixture
def answered(make_runs: MakeRuns, make_result: MakeResult) -> Callable[..., LeadingRow]:
    def of(rows: Mapping[str, Mapping[str, tuple[float, ...]]], **table: object) -> LeadingRow:
        runs = tuple(run for name, scores in rows.items() for run in make_runs(name, scores))
        report = Report(make_result(runs, **table))
        found = answer(report.analysis, report.table)
        assert found is not None
        return found

    return of


GOLD = {"A": (0.700, 0.702, 0.698)}
BETTER = {"A": (0.750, 0.753, 0.749)}


def test_a_lead_beyond_the_noise_is_called_significant(answered: Callable[..., LeadingRow]) -> None:
    found = answered({"gold": GOLD, "bm25": BETTER}, compare_to="gold")
    lead, difference = found.sentences
    # Standard deviation .208; Student's t of 2 degrees of freedom is 4.303: 4.303 * .208 / sqrt(3).
    assert lead.startswith("bm25 scores highest on A: 75.07 ± 0.52 (95 % interval over seeds).")
    assert "Its lead over every other row is larger than the noise of seeds." in lead
    assert difference.startswith(
        "The comparison with the baseline is significant at 5 % on A; the largest: bm25"
    )
    assert "against gold, +5.07 ± " in difference


def test_a_lead_within_the_noise_is_called_insignificant(answered: Callable[..., LeadingRow]) -> None:
    found = answered(
        {"gold": {"A": (0.70, 0.75, 0.65)}, "bm25": {"A": (0.71, 0.66, 0.76)}}, compare_to="gold"
    )
    assert "Its lead over at least one other row is within the noise of seeds." in found.sentences[0]
    assert found.sentences[1] == (
        "No comparison with a baseline is significant at 5 % on A; that does not prove equality."
    )


def test_one_seed_supports_no_claim(answered: Callable[..., LeadingRow]) -> None:
    found = answered({"gold": {"A": (0.7,)}, "bm25": {"A": (0.8,)}})
    assert found.sentences == (
        "bm25 scores highest on A: 80.00. One seed supports no claim that it is better.",
    )


def test_a_ceiling_is_drawn_but_never_named_as_best(answered: Callable[..., LeadingRow]) -> None:
    found = answered({"gold": GOLD, "labeller": BETTER}, ceiling=["labeller"])
    assert found.sentences[0].startswith("gold scores highest")
    assert [(mark.label, mark.is_ceiling, mark.is_best) for mark in found.marks] == [
        ("gold", False, True),
        ("labeller †", True, False),
    ]


def test_points_and_intervals_lie_within_the_frame(answered: Callable[..., LeadingRow]) -> None:
    found = answered({"gold": GOLD, "bm25": BETTER})
    for mark in found.marks:
        assert 0 < mark.low < mark.at < mark.high < 100
    low, high = map(float, found.ends)
    assert low < 69.5 < 75.6 < high


def test_of_many_rows_only_the_best_and_the_baseline_are_drawn(answered: Callable[..., LeadingRow]) -> None:
    rows = {f"row{number}": {"A": (0.5 + number / 100, 0.501 + number / 100)} for number in range(20)}
    found = answered(rows, compare_to="row0")
    assert len(found.marks) == MOST_ROWS
    assert found.num_left_out == 20 - MOST_ROWS
    assert {"row0", "row19"} <= {mark.label for mark in found.marks}
    assert "row1" not in {mark.label for mark in found.marks}


def test_the_average_is_the_main_column(answered: Callable[..., LeadingRow]) -> None:
    rows = {"gold": {"A": (0.7, 0.71), "B": (0.5, 0.5)}, "bm25": {"A": (0.6, 0.61), "B": (0.8, 0.8)}}
    found = answered(rows, averages={"Avg.": ["A", "B"]})
    assert found.column.startswith("Avg.")
    assert found.sentences[0].startswith("bm25 scores highest on Avg.")
