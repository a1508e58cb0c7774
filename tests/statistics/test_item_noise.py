"""The items' share of a difference, against an analysis of variance and sums written out item by item."""

from collections.abc import Collection, Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from synthbench.statistics.item_noise import Influences, ItemNoise, PairErrors, TestItems, item_variances
from synthbench.statistics.shared_sentences import SharedSentences

Array = NDArray[np.float64]
Held = Sequence[Collection[int]]
"""The sentences of each item."""


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


def test_rows_paired_by_design_have_the_item_variance_component_of_their_differences() -> None:
    first, second = rows(4, 4)
    of_items, residual = mean_squares(first - second)
    influences = [Influences(first, (0, 1, 2, 3)), Influences(second, (0, 1, 2, 3))]

    (found,) = item_variances(influences, paired=[(0, 1)])

    assert found.squared_error == pytest.approx((of_items - residual) / (4 * 40), rel=1e-5)


def test_paired_rows_are_matched_by_seed_not_position() -> None:
    first, second = rows(3, 3)

    (sorted_,) = item_variances(
        [Influences(first, (0, 1, 2)), Influences(second, (0, 1, 2))], paired=[(0, 1)]
    )
    (shuffled,) = item_variances(
        [Influences(first[[2, 0, 1]], (2, 0, 1)), Influences(second, (0, 1, 2))], paired=[(0, 1)]
    )

    assert sorted_ == shuffled


@pytest.mark.parametrize("num_seeds", [3, 5])
def test_for_rows_that_are_not_paired_the_residual_of_each_is_subtracted(num_seeds: int) -> None:
    first, second = rows(3, num_seeds)
    own = (first.mean(axis=0) - second.mean(axis=0)).var(ddof=1) / 40
    left_over = sum(mean_squares(row)[1] / row.size for row in (first, second))

    (found,) = item_variances([Influences(first, (0, 1, 2)), Influences(second, tuple(range(num_seeds)))])

    assert found.squared_error == pytest.approx(own - left_over, rel=1e-5)


def test_a_row_without_seeds_has_no_residual() -> None:
    first, second = rows(1, 1)
    expected = (first[0] - second[0]).var(ddof=1) / 40

    (found,) = item_variances([Influences(first, (0,), False), Influences(second, (0,), False)])

    assert found.squared_error == pytest.approx(expected, rel=1e-5)


def test_equal_rows_have_no_noise_of_items() -> None:
    values = rows(3)[0]
    influences = [Influences(values, (0, 1, 2)), Influences(values + 1.0, (0, 1, 2))]

    (found,) = item_variances(influences, paired=[(0, 1)])

    assert (found.squared_error, found.component_squared_error) == (0.0, 0.0)


def test_all_pairs_of_rows_follow_the_order_of_the_rows() -> None:
    influences = [Influences(values, (0, 1)) for values in rows(2, 2, 2)]
    alone = {
        frozenset((str(one), str(other))): item_variances([influences[one], influences[other]])[0]
        for one, other in combinations(range(3), 2)
    }

    squared_errors, degrees, of_components, their_degrees = zip(*item_variances(influences), strict=True)
    noise = ItemNoise(
        axes={},
        task="A",
        evaluator="sts",
        num_items=40,
        variants=("0", "1", "2"),
        squared_errors=squared_errors,
        degrees=degrees,
        component_squared_errors=of_components,
        component_degrees=their_degrees,
    )

    assert noise.by_pair() == alone


def test_errors_of_an_earlier_version_are_those_of_independent_items() -> None:
    noise = ItemNoise(
        axes={}, task="A", evaluator="sts", num_items=40, variants=("a", "b"), squared_errors=(0.01,)
    )

    assert noise.is_of_earlier_version
    assert noise.by_pair() == {frozenset("ab"): PairErrors(0.01, 39.0, 0.01, 39.0)}
    assert "degrees" not in noise.model_dump_json()


def a_set(
    held: Held, subsets: Sequence[int] | None = None, ids: Sequence[int] | None = None, *, known: bool = True
) -> TestItems:
    """Return a test set whose items hold these sentences."""
    entries = [(item, sentence) for item, sentences in enumerate(held) for sentence in sentences]
    items, sentences = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    return TestItems(
        len(held),
        SharedSentences(items, sentences, len(held)) if known else None,
        None if subsets is None else np.array(subsets),
        None if ids is None else np.array(ids),
    )


def of_difference(values: Sequence[float], *sets: TestItems) -> PairErrors:
    """Return the errors of a difference with these influences, without seeds."""
    lines = np.array([values])
    influences = [Influences(lines, (0,), is_seeded=False), Influences(0 * lines, (0,), is_seeded=False)]
    return item_variances(influences, sets)[0]


def test_two_items_that_share_a_sentence_by_hand() -> None:
    """Influences 1, 2, -3, each / sqrt(3 x 2); the first two items share a sentence.

    x'Ax = ((1 + 2)^2 + 3^2) / 6 = 3, where independent items have 14 / 6. Sums by sentence are 1, 3, 2, 3:
    3 x 23^2 / 179 - 2 = 6.9 degrees, by item 1, 2, 3: 3 x 14^2 / 98 - 2 = 4, by component 3, 3: 4.
    """
    assert of_difference([1, 2, -3], a_set([{1, 2}, {2, 3}, {4}])) == (3.0, 4.0, 3.0, 4.0)


def test_a_chain_of_items_differs_by_sentence_and_by_component() -> None:
    """Four items, 1, 1, 1, -3, each / sqrt(4 x 3): three are a chain, whose first and last share nothing.

    x'Ax = (3 + 2 x 2 + 9) / 12 = 16 / 12, by component (9 + 9) / 12.
    """
    found = of_difference([1, 1, 1, -3], a_set([{1, 2}, {2, 3}, {3, 4}, {5}]))

    assert found.squared_error == pytest.approx(16 / 12, rel=1e-5)
    assert found.component_squared_error == pytest.approx(18 / 12, rel=1e-5)


def test_errors_that_cancel_within_sentences_count_as_those_of_independent_items() -> None:
    """The floor: by sentence the sum would be (1 - 1)^2 + (2 - 2)^2 = 0."""
    found = of_difference([1, -1, 2, -2], a_set([{1}, {1}, {2}, {2}]))

    assert found.squared_error == found.component_squared_error == pytest.approx(10 / 12, rel=1e-5)


def test_items_that_share_a_sentence_are_compared_with_their_subsets_mean() -> None:
    """Two subsets at 1 and -1: no item differs from its subset, so only the independent value is left."""
    alike = [{1, 2}, {2, 3}, {4, 5}, {5, 6}]

    whole, by_subset = (
        of_difference([1, 1, -1, -1], a_set(alike, subsets)) for subsets in (None, [0, 0, 1, 1])
    )

    assert whole.squared_error == pytest.approx(8 / 12, rel=1e-5)
    assert by_subset.squared_error == pytest.approx(4 / 12, rel=1e-5)


def test_an_average_of_sets_without_a_common_sentence_adds_their_squared_errors() -> None:
    first, second = a_set([{1}, {1}, {2}]), a_set([{3}, {4}, {5}, {5}])
    alone = of_difference([1, 2, -3], first), of_difference([3, 1, -2, -2], second)

    both = of_difference([1, 2, -3, 3, 1, -2, -2], first, second)

    assert both.squared_error == pytest.approx(sum(each.squared_error for each in alone) / 4, rel=1e-4)


def test_a_set_that_enters_an_average_twice_is_one_set() -> None:
    """Another draw of its items moves both scores at once, whether its sentences are known or not."""
    for known in (True, False):
        one = a_set([{1}, {1}, {2}], ids=[7, 8, 9], known=known)

        twice = of_difference([1, 2, -3, 1, 2, -3], one, one)

        assert twice.squared_error == pytest.approx(of_difference([1, 2, -3], one).squared_error, rel=1e-4)


def test_items_of_unknown_sentences_are_independent() -> None:
    unknown = a_set([{1}, {1}, {2}], known=False)

    assert of_difference([1, 2, -3], unknown) == of_difference([1, 2, -3])
    assert of_difference([1, 2, -3]).squared_error == pytest.approx(14 / 6, rel=1e-5)


SENTENCES = st.sets(st.integers(0, 6), max_size=3)
SETS = st.lists(
    st.lists(
        st.tuples(SENTENCES, st.integers(0, 1), st.integers(0, 9)),
        min_size=2,
        max_size=8,
        unique_by=lambda item: item[2],
    ),
    min_size=1,
    max_size=3,
)


@settings(deadline=None, max_examples=60)
@given(SETS, st.integers(1, 3), st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_errors_are_the_double_sums_over_items_of_one_cluster(
    drawn: list[list[tuple[set[int], int, int]]], ours: int, theirs: int, is_paired: bool, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    num_items = sum(map(len, drawn))
    one, other = (generator.normal(size=(seeds, num_items)) for seeds in (ours, theirs))
    sets = [
        a_set([held for held, _, _ in each], [subset for _, subset, _ in each], [item for _, _, item in each])
        for each in drawn
    ]
    pairs = [(0, 1)] if is_paired else []

    (found,) = item_variances(
        [Influences(values, tuple(range(len(values))), len(values) > 1) for values in (one, other)],
        sets,
        pairs,
    )

    is_paired = is_paired and ours == theirs > 1
    independent, dyadic, of_components = (
        written_out(drawn, one, other, cluster, is_paired) for cluster in ("item", "sentence", "component")
    )
    assert found.squared_error == pytest.approx(max(independent, dyadic, 0.0), rel=1e-4, abs=1e-8)
    assert found.component_squared_error == pytest.approx(
        max(independent, of_components, 0.0), rel=1e-4, abs=1e-8
    )


def written_out(
    drawn: list[list[tuple[set[int], int, int]]], one: Array, other: Array, cluster: str, is_paired: bool
) -> float:
    """Return the squared error with a matrix of ones for items of one cluster."""
    flat = [(number, *item) for number, each in enumerate(drawn) for item in each]
    neighbours = np.array(
        [
            [
                float(
                    mine[3] == yours[3] or (cluster != "item" and bool(mine[1] & yours[1])) or mine is yours
                )
                for yours in flat
            ]
            for mine in flat
        ]
    )
    if cluster == "component":
        neighbours = (np.linalg.matrix_power(neighbours, len(flat)) > 0).astype(float)
    levels = [(number,) if cluster == "item" else (number, subset) for number, _, subset, _ in flat]
    weights = np.array(
        [1 / (len(drawn) * (len(drawn[number]) * (len(drawn[number]) - 1)) ** 0.5) for number, *_ in flat]
    )

    def form(values: Array) -> float:
        centred = values * weights
        for number in range(len(drawn)):
            of_set = np.array([each[0] == number for each in flat])
            centred[of_set] -= centred[of_set].mean()
        for level in set(levels):
            here = np.array([each == level for each in levels])
            centred[here] -= centred[here].mean()
        return float(centred @ neighbours @ centred)

    def interaction(values: Array) -> float:
        if len(values) < 2:
            return 0.0
        rest = values - values.mean(axis=0)
        return sum(form(line) for line in rest) / (len(values) - 1) / len(values)

    left_over = interaction(one - other) if is_paired else interaction(one) + interaction(other)
    return form(one.mean(axis=0) - other.mean(axis=0)) - left_over
