"""Which comparisons are primary, and which differences are called real."""

import random
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import dunnett

from synthbench.reporting.model.analysis import Analysis
from synthbench.reporting.model.build import build_table
from synthbench.reporting.model.comparison_section import comparison_section
from synthbench.reporting.model.comparisons import Comparison
from synthbench.reporting.model.verdicts import best_row_sentences, bold, rule, verdict
from synthbench.reporting.results import ExperimentResult, RunResult
from synthbench.statistics.item_noise import ItemNoise

MakeRuns = Callable[..., tuple[RunResult, ...]]
MakeResult = Callable[..., ExperimentResult]
Make = Callable[..., ExperimentResult]

ROWS = {"gold": 0.70, "dino": 0.75, "bm25": 0.705, "random": 0.65}


@pytest.fixture
def make(make_runs: MakeRuns, make_result: MakeResult) -> Make:
    """Rows on A and B, whose average is "Mean", over five seeds, with 0.4 points of noise."""

    def made(
        bases: Sequence[str] = (), gains: dict[str, float] | None = None, **options: Any
    ) -> ExperimentResult:
        source = random.Random(4)
        rows = [
            make_runs(
                name,
                {
                    task: [
                        mean + (gains or {}).get(task, 0.0) * (name == "dino") + source.gauss(0, 0.004)
                        for _ in range(5)
                    ]
                    for task in ("A", "B")
                },
                **({"base": base} if base else {}),
            )
            for base in bases or ("",)
            for name, mean in ROWS.items()
        ]
        return make_result(*rows, **{"averages": {"Mean": ["A", "B"]}, "compare_to": "gold", **options})

    return made


def of_family(result: ExperimentResult, family: str) -> list[tuple[str, str]]:
    """Return the names and columns of the comparisons of a family."""
    decisions = Analysis(result).decisions
    return [(each.name, source.column.title) for source, each in decisions.of(family)]  # type: ignore[arg-type]


def starred(result: ExperimentResult) -> dict[tuple[str, str], int]:
    """Return the direction of each comparison with a star."""
    columns = Analysis(result).comparisons
    found = [
        (each.name, column.column.title, each.direction) for column in columns for each in column.comparisons
    ]
    return {(name, title): direction for name, title, direction in found if direction}


def findings(result: ExperimentResult, column: str) -> list[Comparison]:
    (found,) = [each.comparisons for each in Analysis(result).comparisons if each.column.title == column]
    return list(found)


def test_averages_are_primary_and_their_test_sets_a_family_below(make: Make) -> None:
    result = make()

    assert of_family(result, "primary") == [(f"{name} − gold", "Mean") for name in ("dino", "bm25", "random")]
    assert len(of_family(result, "below")) == 6
    decisions = Analysis(result).decisions
    assert (decisions.primary.number, decisions.below.number) == (3, 6)


def test_without_averages_all_columns_are_primary(make: Make) -> None:
    result = make(averages={})

    assert {column for _, column in of_family(result, "primary")} == {"A", "B"}
    assert of_family(result, "below") == []


def test_the_file_may_name_the_primary_columns(make: Make) -> None:
    result = make(primary=["B"])

    assert {column for _, column in of_family(result, "primary")} == {"B"}
    assert of_family(result, "below") == []
    assert all(column == "B" for _, column in starred(result))


def test_a_test_set_is_starred_only_below_an_average_with_a_star(make: Make) -> None:
    assert starred(make()) == {("dino − gold", column): 1 for column in ("A", "B", "Mean")} | {
        ("random − gold", column): -1 for column in ("A", "B", "Mean")
    }
    # Now dino is far above gold on A and as far below on B: nothing is tested below its average.
    apart = make(gains={"A": 0.05, "B": -0.15})
    assert not any(name == "dino − gold" for name, _ in starred(apart))
    (dino, *_) = findings(apart, "A")
    assert dino.evidence is not None and dino.evidence.p_value < 1e-6
    assert dino.finding is None


def test_the_file_may_name_the_family(make: Make) -> None:
    result = make(bases=("small", "large"), family={"gold": ["dino", "random [base=large]"]})

    assert of_family(result, "primary") == [
        ("dino − gold (small)", "Mean"),
        ("dino − gold (large)", "Mean"),
        ("random − gold (large)", "Mean"),
    ]
    small = {each.name: each for each in findings(result, "Mean")}["random − gold (small)"]
    assert small.evidence is not None and small.evidence.p_value < 1e-6
    assert (small.family, small.finding, small.direction) == ("", None, 0)


def test_a_note_names_what_the_family_asks_for_and_the_result_lacks(make: Make) -> None:
    result = make(family={"gold": ["dino", "bm25 [base=large]"], "silver": []})

    assert (
        "In `table.family`, but not compared here: bm25 [base=large] − gold, any row − silver."
        in build_table(Analysis(result)).notes
    )
    assert not any("not compared here" in note for note in build_table(Analysis(make(family="gold"))).notes)


def test_an_average_that_no_row_shares_with_the_baseline_is_named(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = make_runs("gold", {"A": (0.5, 0.6), "B": (0.5, 0.6)}), make_runs("silver", {"A": (0.5, 0.6)})
    options = {"averages": {"Mean": ["A", "B"]}, "compare_to": "gold"}
    (why,) = rule(Analysis(make_result(*rows, **options)))
    assert why.startswith("No row has a score on Mean beside that of its baseline, so nothing is primary")
    (named,) = rule(Analysis(make_result(*rows, primary=["Mean"], **options)))
    assert named.startswith("`table.primary` and `table.family` leave no comparison")


def test_an_empty_family_leaves_everything_exploratory(make: Make) -> None:
    assert starred(make(family={})) == {}
    assert of_family(make(family="gold"), "primary") == of_family(make(), "primary")


def test_fewer_comparisons_are_adjusted_less(make: Make) -> None:
    def width(**options: Any) -> float:
        (found, *_) = findings(make(**options), "Mean")
        assert found.finding is not None
        return found.finding.half_width

    assert (
        width(family={"gold": ["dino"]})
        < width(family={"gold": ["dino", "bm25"]})
        < width()
        < width(primary=["A", "B", "Mean"])
    )


def test_correlations_of_a_common_baseline_are_known(make_runs: MakeRuns, make_result: MakeResult) -> None:
    """With equal variances and many seeds, max-t is Dunnett's test."""
    generator = np.random.default_rng(2)
    samples = {}
    for name, mean in zip("abcd", (0.5, 0.504, 0.5045, 0.503), strict=True):
        values = generator.normal(size=60)
        samples[name] = mean + 0.01 * (values - values.mean()) / values.std(ddof=1)
    rows = [make_runs(name, {"A": list(values)}) for name, values in samples.items()]

    found = findings(make_result(*rows, compare_to="a"), "A")

    baseline, *others = samples.values()
    expected = list(dunnett(*others, control=baseline, random_state=0).pvalue)
    assert [each.finding.p_value for each in found if each.finding] == pytest.approx(expected, abs=0.02)


def test_points_of_the_grid_and_columns_count_as_independent(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [
        make_runs(name, {"A": values, "B": values}, base=base)
        for base in ("small", "large")
        for name, values in (("gold", (0.70, 0.71, 0.73)), ("silver", (0.74, 0.73, 0.78)))
    ]

    (found, _) = findings(make_result(*rows, compare_to="gold"), "A")

    assert found.finding is not None and found.evidence is not None
    assert found.finding.p_value == pytest.approx(1 - (1 - found.evidence.p_value) ** 4, abs=1e-9)


def test_the_items_noise_of_rows_that_err_alike_is_correlated(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    """Silver and bronze are right on the same items, so their differences from gold are one test."""
    rows = [
        make_runs(name, {"A": values})
        for name, values in (("gold", (0.7,)), ("silver", (0.75,)), ("bronze", (0.75,)))
    ]
    runs = tuple(run.model_copy(update={"is_seeded": False}) for row in rows for run in row)

    def p_value(between: float) -> tuple[float, float]:
        noise = ItemNoise(
            axes={}, task="A", evaluator="sts", num_items=1000, variants=("gold", "silver", "bronze"),
            squared_errors=(0.0005, 0.0005, between),
        )  # fmt: skip
        result = make_result(runs, compare_to="gold").model_copy(update={"item_noise": (noise,)})
        (silver, _) = findings(result, "A")
        assert silver.finding is not None and silver.evidence is not None
        return silver.finding.p_value, silver.evidence.p_value

    adjusted, own = p_value(1e-9)
    assert adjusted == pytest.approx(own, abs=0.002)
    # Of independent differences the squared errors add up.
    adjusted, own = p_value(0.001)
    assert adjusted == pytest.approx(1 - (1 - own) ** 2, abs=0.002)


def test_the_best_row_is_a_family_of_all_pairs(make: Make) -> None:
    from synthbench.reporting.model.decisions import best_rows

    def best(**options: Any) -> list[tuple[str, str | None]]:
        analysis = Analysis(make(best=True, **options))
        return [(at.column.title, row and row.variant) for at, _, row in best_rows(analysis.decisions)]

    assert best() == [("Mean", "dino")]
    assert best(compare_to={}, primary=["A", "B"]) == [("A", "dino"), ("B", "dino")]
    assert best(ceiling=["dino"]) == [("Mean", None)]
    assert Analysis(make(best=True)).decisions.pairs.number == 6
    assert Analysis(make()).decisions.best == ()
    assert starred(make(best=True)) == starred(make())


def test_the_best_row_names_the_rows_that_it_was_not_compared_with(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = [make_runs(name, {"A": (mean, mean + 0.001)}, base="x") for name, mean in (("a", 0.5), ("b", 0.4))]
    once = [make_runs(name, {"A": (0.9, 0.901)}) for name in ("g", "top")]
    result = make_result(*rows, *once, best=True, ceiling=["top"])
    sentence = "Best row on A (x): a is significantly above every other"
    assert list(best_row_sentences(Analysis(result))) == [f"{sentence} (not compared with g)."]
    assert list(best_row_sentences(Analysis(make_result(*rows, best=True)))) == [f"{sentence}."]


def test_pairs_for_the_best_row_are_written_without_a_baseline(make: Make) -> None:
    section = comparison_section(Analysis(make(best=True, compare_to={}, primary=["A"])))
    assert section is not None
    pairs = {frozenset(line[:2]) for line in section.csv.lines}
    assert pairs == {frozenset(pair) for pair in combinations(ROWS, 2)}
    assert not section.blocks
    assert comparison_section(Analysis(make(compare_to={}))) is None


def test_with_several_baselines_bold_says_where_to_find_which(make: Make) -> None:
    def note(**options: Any) -> str:
        (found,) = bold(Analysis(make(**options)))
        return found

    which = "one of its baselines (comparisons.* has which)"
    several: Any = {"gold": ["dino"], "random": ["dino"]}
    assert note() == "Bold: significantly above a baseline in a primary comparison (5 %)."
    assert note(compare_to=several) == (
        f"Bold: significantly above {which} in a primary comparison (5 %), and no baseline's mean is higher."
    )


def test_a_row_above_its_own_control_but_below_another_baseline_is_not_bold(make: Make) -> None:
    def bold_rows(**options: Any) -> list[str]:
        table = build_table(Analysis(make(primary=["Mean"], **options)))
        return [row.variant for row in table.rows for cell in row.cells if cell and cell.is_bold]

    own: Any = {"random": ["bm25"]}
    assert bold_rows(compare_to=own) == ["bm25"]
    assert bold_rows(compare_to={**own, "dino": ["gold"]}) == []
    assert bold_rows(compare_to={**own, "gold": ["dino"]}) == ["dino", "bm25"]
    (said,) = bold(Analysis(make(compare_to={**own, "dino": ["gold"]})))
    assert said.startswith("Nothing is bold: rows that are significantly above a baseline")


def test_primary_comparisons_without_a_test_are_named(make: Make, make_runs: MakeRuns) -> None:
    result = make()
    short = make_runs("short", {"A": (0.7,), "B": (0.7,)})
    analysis = Analysis(result.model_copy(update={"runs": (*result.runs, *short)}))
    reason = "an interval needs two seeds or more, and a row has one"
    assert f"Primary, but not tested: short − gold: {reason}." in build_table(analysis).notes
    assert next(verdict(analysis)).startswith("2 of 3 tested primary comparisons are significant")
    assert not [note for note in build_table(Analysis(result)).notes if "not tested" in note]


def test_a_baseline_without_scores_is_not_called_missing(
    make_runs: MakeRuns, make_result: MakeResult
) -> None:
    rows = make_runs("gold", {"A": (0.7, 0.71)}), make_runs("dino", {"B": (0.7, 0.71)})
    (found,) = verdict(Analysis(make_result(*rows, compare_to="gold")))
    assert found == (
        "No row has a score beside that of its baseline, so nothing is primary and nothing is claimed."
    )
