"""Confusion tables, intervals and rank correlations."""

import math

import pytest

from synthbench.auditing.confusion import confusion, correlation, share


def wilson(count: int, total: int) -> tuple[float, float]:
    """Return the Wilson score interval in percent, by its formula."""
    z, proportion = 1.959963984540054, count / total
    centre = (proportion + z**2 / (2 * total)) / (1 + z**2 / total)
    spread = math.sqrt(proportion * (1 - proportion) / total + z**2 / (4 * total**2))
    margin = z / (1 + z**2 / total) * spread
    return 100 * (centre - margin), 100 * (centre + margin)


@pytest.mark.parametrize(("count", "total"), [(0, 10), (1, 100), (8, 17), (10, 10)])
def test_a_share_has_a_wilson_interval(count: int, total: int) -> None:
    found = share(count, total)
    assert found.percent == pytest.approx(100 * count / total)
    assert (found.low, found.high) == pytest.approx(wilson(count, total), abs=1e-9)


def test_zero_of_ten_has_an_interval_up_to_a_quarter() -> None:
    found = share(0, 10)
    assert (found.low, round(found.high, 1)) == (0.0, 27.8)


def test_cells_are_shares_of_their_column() -> None:
    labels = [("0.9", "same")] * 3 + [("0.9", "different")] + [("0", "different")] * 2
    found = confusion(labels, ["different", "same", "odd"], ["0", "0.5", "0.9"])
    assert found.columns == ["0", "0.9"]
    assert found.totals == {"0": 2, "0.9": 4}
    percents = {row: [found.cells[row][column].percent for column in found.columns] for row in found.rows}
    assert percents == {"different": [100, 25], "same": [0, 75], "odd": [0, 0]}


def test_a_rank_correlation_worked_out_by_hand() -> None:
    # Ranks 1..5 and 2, 1, 4, 3, 5: 1 - 6 * 4 / (5 * 24) = 0.8.
    found = correlation({str(rank): (rank, other) for rank, other in enumerate((2, 1, 4, 3, 5), start=1)})
    assert found is not None
    assert found.value == pytest.approx(0.8)
    assert (found.low, found.high, found.num_pairs) == (None, None, 5)


def test_the_rank_correlations_interval_is_bonett_and_wrights() -> None:
    found = correlation({str(rank): (rank, (7 * rank) % 20) for rank in range(20)})
    assert found is not None
    assert found.low is not None and found.high is not None
    margin = 1.959963984540054 * math.sqrt((1 + found.value**2 / 2) / 17)
    assert math.atanh(found.high) - math.atanh(found.value) == pytest.approx(margin)
    assert math.atanh(found.value) - math.atanh(found.low) == pytest.approx(margin)


def test_a_perfect_rank_correlation_has_no_interval() -> None:
    found = correlation({str(rank): (rank, rank) for rank in range(10)})
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize("pairs", [[], [(0.5, 0.1), (0.5, 0.9)], [(0.1, 0.3), (0.9, 0.3)]])
def test_constant_scores_have_no_correlation(pairs: list[tuple[float, float]]) -> None:
    assert correlation(dict(zip("abc", pairs, strict=False))) is None
