"""Two results side by side: one analysis, as of rows of one result."""

from collections.abc import Callable

import pytest

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.two_results import comparison_of, differing_settings, rows_of_one
from synthbench.reporting.results import ExperimentResult, RunResult

Make = Callable[..., ExperimentResult]
MakeRuns = Callable[..., tuple[RunResult, ...]]

FORMER = (0.50, 0.52, 0.51)
LATTER = (0.54, 0.55, 0.56)


def test_differences_and_p_values_equal_those_within_one_result(
    make_result: Make, make_runs: MakeRuns
) -> None:
    first = make_result(make_runs("dino", {"STSb": FORMER}), make_runs("gold", {"STSb": LATTER}))
    second = make_result(make_runs("dino", {"STSb": LATTER}), make_runs("gold", {"STSb": FORMER}))
    (column,) = comparison_of(first, second).comparisons
    one = make_result(
        *(make_runs("dino", {"STSb": LATTER}), make_runs("gold", {"STSb": FORMER})),
        compare_to={"gold": ["dino"]},
    )
    ((same,),) = (each.comparisons for each in Analysis(one).comparisons)
    dino, gold = column.comparisons
    assert (dino.name, gold.name) == ("dino (B) − dino (A)", "gold (B) − gold (A)")
    assert dino.value == -gold.value == same.value
    assert dino.over_seeds is not None and same.over_seeds is not None
    assert dino.over_seeds == same.over_seeds
    # Two independent comparisons of equal p values, adjusted together.
    assert dino.finding is not None
    assert dino.finding.p_value == pytest.approx(1 - (1 - same.over_seeds.p_value) ** 2, abs=0.001)


def test_rows_are_compared_at_the_same_grid_point(make_result: Make, make_runs: MakeRuns) -> None:
    def made(gain: float) -> ExperimentResult:
        small = make_runs("dino", {"STSb": FORMER}, base="small")
        large = make_runs("dino", {"STSb": [score + gain for score in FORMER]}, base="large")
        return make_result(small, large)

    (column,) = comparison_of(made(0.1), made(0.3)).comparisons
    assert [round(each.value, 6) for each in column.comparisons] == [0.0, 0.2]


def test_rows_and_test_sets_of_only_one_result_are_not_compared(
    make_result: Make, make_runs: MakeRuns
) -> None:
    first = make_result(
        make_runs("dino", {"STSb": FORMER, "SICK-R": FORMER}), make_runs("old", {"STSb": FORMER})
    )
    second = make_result(make_runs("dino", {"STSb": LATTER}), make_runs("new", {"STSb": LATTER}))
    (column,) = comparison_of(first, second).comparisons
    assert (column.column.title, len(column.comparisons)) == ("STSb", 1)
    assert rows_of_one(first, second) == (["old"], ["new"])


def test_scores_on_different_items_are_refused(make_result: Make, make_runs: MakeRuns) -> None:
    first = make_result(make_runs("dino", {"STSb": FORMER}, items=100))
    second = make_result(make_runs("dino", {"STSb": LATTER}, items=90))
    section = comparison_section(comparison_of(first, second))
    assert section is not None
    assert any("different items" in note for note in section.notes)


def test_different_settings_are_listed_once_with_their_rows(make_result: Make, make_runs: MakeRuns) -> None:
    def made(rate: float, decay: int) -> ExperimentResult:
        dino, gold = (
            tuple(run.model_copy(update={"parameters": {"train.learning_rate": rate} | own}) for run in runs)
            for runs, own in (
                (make_runs("dino", {"STSb": FORMER}), {"data.x2.decay": decay}),
                (make_runs("gold", {"STSb": FORMER}), {}),
            )
        )
        return make_result(dino, gold)

    assert list(differing_settings(made(0.1, 0), made(0.2, 100))) == [
        "data.x2.decay: 0, then 100 (dino)",
        "train.learning_rate: 0.1, then 0.2 (all rows)",
    ]
    assert list(differing_settings(made(0.1, 0), made(0.1, 0))) == []
