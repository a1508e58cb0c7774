"""benchmarks/seeds.py simulates what the product computes; a smaller grid bears out its claims."""

import math
from pathlib import Path

import numpy as np
import pytest
import seeds as simulation
from seeds import Cell, MaxT, Tables, p_values, rejected, simulate

from synthbench.statistics.differences import Difference, Noise, SeedScores, over_seeds
from synthbench.statistics.families import simultaneous

REPLICATIONS = 4_000
PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"


@pytest.mark.parametrize("seeds", [2, 3, 10])
def test_p_values_are_the_products(seeds: int) -> None:
    random = np.random.default_rng(seeds)
    scores = random.normal(size=(100, seeds, 3)) * [1.0, 1.0, 3.0]
    errors = scores.var(axis=1, ddof=1) / seeds
    gains = scores[:, :, 1:] - scores[:, :, :1]
    tables = Tables(
        seeds, gains.mean(axis=1), errors[:, 1:], errors[:, :1], gains.var(axis=1, ddof=1) / seeds
    )

    found = p_values(tables)

    for number, table in enumerate(scores):
        baseline, *rows = (
            SeedScores(tuple(column), seeds=tuple(range(seeds))) for column in table.T.tolist()
        )
        for method, row in enumerate(rows):
            welch = over_seeds(row, baseline, is_paired=False)
            paired = over_seeds(row, baseline, is_paired=True)
            assert welch is not None
            assert paired is not None
            assert found[number, method] == pytest.approx(welch.p_value)
            assert tables.paired[number, method] == pytest.approx(paired.whole.squared_error)


@pytest.mark.parametrize("rows", [2, 4, 10])
@pytest.mark.parametrize("variances", simulation.VARIANCES)
def test_levels_of_max_t_are_the_products(variances: str, rows: int) -> None:
    tables = simulate(Cell(3, rows, variances, 0.0), 10, np.random.default_rng(1))
    shared = np.sqrt(tables.baseline / (tables.variances + tables.baseline))

    levels = MaxT(tables).levels()[:, 0]

    for number, (loadings, level) in enumerate(zip(shared, levels, strict=True)):
        noise = zip(tables.errors[number] ** 2, tables.degrees[number], strict=True)
        correlations = np.outer(loadings, loadings)
        np.fill_diagonal(correlations, 1.0)
        at_the_edge = [_of_p_value(level, Noise(*each)) for each in noise]
        for found in simultaneous(at_the_edge, [correlations]):
            # The product's quasi-random sample is known to about 0.001.
            assert found.p_value == pytest.approx(0.05, abs=3e-3)


def _of_p_value(level: float, noise: Noise) -> Difference:
    return Difference(noise.half_width_at(level), (noise,))


def test_families_by_hand() -> None:
    found = np.array([[0.03, 0.01, 0.02], [0.02, 0.04, 0.9], [0.001, 0.02, 0.04]])

    stars = rejected(found, np.array([[0.02], [0.01], [0.02]]))

    assert stars["max-t"].tolist() == [[False, True, True], [False] * 3, [True, True, False]]
    assert stars["Holm"].tolist() == [[True, True, True], [False] * 3, [True, True, True]]
    assert stars["Bonferroni"].tolist() == [[False, True, False], [False] * 3, [True, False, False]]


@pytest.mark.parametrize("variances", simulation.VARIANCES)
def test_welchs_simulated_error_is_the_exact_one_and_within_the_goal(variances: str) -> None:
    cell = Cell(5, 3, variances, 0.0)
    error = math.sqrt(simulation.GOAL * (1 - simulation.GOAL) / REPLICATIONS)

    found = simulation.measured(cell, REPLICATIONS, seed=2)

    assert found["welch_worst"] == pytest.approx(found["welch_exact"], abs=4 * error)
    assert found["welch_exact"] < simulation.GOAL
    assert not simulation.missed({cell: found}, REPLICATIONS)
    assert found["least_mean"] < 1


def test_pairing_pays_where_rows_are_correlated_by_seed() -> None:
    found = simulation.measured(Cell(5, 3, "equal", 0.6), REPLICATIONS, seed=3)

    assert found["welch_worst"] < 0.03
    assert found["least_mean"] > 1.1


@pytest.mark.parametrize("seeds", [3, 5])
def test_max_t_keeps_the_family_wise_error_and_finds_more_than_bonferroni(seeds: int) -> None:
    found = simulation.measured(Cell(seeds, 10, "equal", 0.0), REPLICATIONS, seed=4)

    for rule in simulation.FAMILY:
        assert found[f"{rule}_error"] < 0.06
    assert found["max-t_power_some"] > found["Bonferroni_power_some"]
    assert found["Holm_power_all"] > found["Bonferroni_power_all"]


def test_the_command_writes_the_table_that_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(simulation, "SEEDS", (2, 5))
    monkeypatch.setattr(simulation, "ROWS", (3,))
    monkeypatch.setattr(simulation, "RESULTS", tmp_path / "results" / "seeds.csv")
    monkeypatch.setattr("sys.argv", ["seeds.py", "--replications", "500"])

    assert simulation.main() == 0

    lines = simulation.read()
    assert len(lines) == 2 * len(simulation.VARIANCES) * len(simulation.CORRELATIONS)
    printed = capsys.readouterr().out.splitlines()
    assert set(simulation.of_tests(lines)) | set(simulation.of_families(lines)) <= set(printed)


def test_the_page_shows_the_committed_table_and_all_of_its_cells_met_the_goal() -> None:
    lines, text = simulation.read(), PAGE.read_text(encoding="utf-8")
    two, three = (max(simulation.exact_error(each, ratio) for ratio in simulation.RATIOS) for each in (2, 3))

    assert len(lines) == len(list(simulation.grid()))
    assert {*simulation.of_tests(lines), *simulation.of_families(lines)} <= set(text.splitlines())
    assert f"reaches {100 * two:.1f} % at two seeds and {100 * three:.1f} % at three" in text
    assert all(float(line["welch_exact"]) < simulation.GOAL for line in lines if line["correlation"] == "0.0")
