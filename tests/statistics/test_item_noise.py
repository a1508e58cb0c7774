"""The items' share of a difference, against a two-way analysis of variance."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from synthbench.statistics.item_noise import Influences, ItemNoise, item_variances

Array = NDArray[np.float64]


def rows(*shapes: int, num_items: int = 40) -> list[Array]:
    generator = np.random.default_rng(3)
    return [
        generator.normal(size=num_items) + 0.5 * generator.normal(size=(num_seeds, num_items))
        for num_seeds in shapes
    ]


def mean_squares(values: Array) -> tuple[float, float]:
    """Items' and residual mean squares of a two-way layout without replication, by the textbook's sums."""
    num_seeds, num_items = values.shape
    of_items, of_seeds, grand = values.mean(axis=0), values.mean(axis=1), values.mean()
    residual = values - of_items - of_seeds[:, None] + grand
    return (
        num_seeds * ((of_items - grand) ** 2).sum() / (num_items - 1),
        (residual**2).sum() / ((num_seeds - 1) * (num_items - 1)),
    )


def test_paired_rows_have_the_item_variance_component_of_their_differences() -> None:
    first, second = rows(4, 4)
    of_items, residual = mean_squares(first - second)

    (found,) = item_variances([Influences(first, (0, 1, 2, 3)), Influences(second, (0, 1, 2, 3))])

    assert found == pytest.approx((of_items - residual) / (4 * 40), rel=1e-5)


def test_pairs_are_matched_by_seed_not_position() -> None:
    first, second = rows(3, 3)

    (sorted_,) = item_variances([Influences(first, (0, 1, 2)), Influences(second, (0, 1, 2))])
    (shuffled,) = item_variances([Influences(first[[2, 0, 1]], (2, 0, 1)), Influences(second, (0, 1, 2))])

    assert sorted_ == shuffled


def test_for_rows_with_different_seeds_the_residual_of_each_is_subtracted() -> None:
    first, second = rows(3, 5)
    own = (first.mean(axis=0) - second.mean(axis=0)).var(ddof=1) / 40
    left_over = sum(mean_squares(row)[1] / row.size for row in (first, second))

    (found,) = item_variances([Influences(first, (0, 1, 2)), Influences(second, (0, 1, 2, 3, 4))])

    assert found == pytest.approx(own - left_over, rel=1e-5)


def test_a_row_without_seeds_has_no_residual() -> None:
    first, second = rows(1, 1)
    expected = (first[0] - second[0]).var(ddof=1) / 40

    (found,) = item_variances([Influences(first, (0,), False), Influences(second, (0,), False)])

    assert found == pytest.approx(expected, rel=1e-5)


def test_the_noise_of_items_is_never_negative() -> None:
    values = rows(3)[0]

    (found,) = item_variances([Influences(values, (0, 1, 2)), Influences(values + 1.0, (0, 1, 2))])

    assert found == 0.0


def test_all_pairs_of_rows_follow_the_order_of_the_rows() -> None:
    influences = [Influences(values, (0, 1)) for values in rows(2, 2, 2)]
    alone = {
        frozenset((str(one), str(other))): item_variances([influences[one], influences[other]])[0]
        for one, other in combinations(range(3), 2)
    }

    noise = ItemNoise(
        axes={},
        task="A",
        evaluator="sts",
        num_items=40,
        variants=("0", "1", "2"),
        squared_errors=item_variances(influences),
    )

    assert noise.by_pair() == alone
