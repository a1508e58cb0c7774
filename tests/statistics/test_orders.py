"""How far two test sets order rows alike."""

import math

import numpy as np
import pytest

from synthbench.statistics.orders import agreement


def rows(means: dict[str, float], noise: float = 0.0, seed: int = 0) -> dict[str, "np.ndarray"]:
    draw = np.random.default_rng(seed)
    return {name: mean + noise * draw.standard_normal((2, 200)) for name, mean in means.items()}


def test_three_of_four_orders_kept_without_noise() -> None:
    """By hand: of 6 pairs of rows, one is swapped: tau = (5 - 1) / 6; rho = 1 - 6 * 2 / (4 * 15)."""
    people = rows({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4})
    other = rows({"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.9, "e": 1.0})
    tau, rho, clear = agreement(people, other)
    assert (tau.value, tau.low, tau.high) == pytest.approx((2 / 3,) * 3)
    assert (rho.value, rho.low, rho.high) == pytest.approx((0.8,) * 3)
    assert clear.value == pytest.approx(5 / 6)
    assert (tau.number, clear.number) == (4, 6)


def test_ties_count_as_in_scipy() -> None:
    from scipy.stats import kendalltau, spearmanr

    first, second = {"a": 0.1, "b": 0.1, "c": 0.3, "d": 0.2}, {"a": 0.4, "b": 0.1, "c": 0.4, "d": 0.4}
    tau, rho, _ = agreement(rows(first), rows(second))
    both = list(first.values()), list(second.values())
    assert tau.value == pytest.approx(kendalltau(*both).statistic)
    assert rho.value == pytest.approx(spearmanr(*both).statistic)


def test_noise_of_items_widens_intervals_and_leaves_clear_pairs() -> None:
    people = rows({"a": 0.0, "b": 0.01, "c": 1.0}, noise=1.0)
    tau, _, clear = agreement(people, rows({"a": 0.0, "b": 0.01, "c": 1.0}, noise=1.0, seed=1))
    assert tau.low < tau.value <= tau.high
    assert (clear.value, clear.number) == (1.0, 2)


def test_an_order_needs_three_rows_and_may_have_no_clear_pair() -> None:
    people = rows({"a": 0.0, "b": 0.0, "c": 0.0}, noise=1.0)
    with pytest.raises(ValueError, match="2 rows"):
        agreement(people, rows({"a": 0.0, "b": 0.0}))
    with pytest.raises(ValueError, match="different numbers of items"):
        agreement({**people, "c": people["c"][:, :9]}, people)
    assert math.isnan(agreement(people, rows({"a": 0.1, "b": 0.2, "c": 0.3}))[2].value)
