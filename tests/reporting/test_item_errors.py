"""The noise of items in comparisons, looked up in results: by column, pair of rows, and version."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthbench.config.coordinates import RowKey
from synthbench.reporting.model.aggregate import ColumnSource, Measurement
from synthbench.reporting.model.item_errors import ItemErrors, independent_items
from synthbench.reporting.model.table import Column
from synthbench.statistics.item_noise import Averaged, ItemNoise, PairErrors

ROWS = [RowKey(name, ()) for name in "abcd"]


def a_column(*tasks: str) -> ColumnSource:
    over = tuple(Measurement(task, "sts", task) for task in tasks)
    return ColumnSource(Column("Column", ("spearman",), ("Spearman",), len(tasks) > 1), over)


def noise(*errors: float, variants: Sequence[str] = "ab", **changes: Any) -> ItemNoise:
    known: dict[str, Any] = {"axes": {}, "task": "A", "evaluator": "sts", "num_items": 100}
    of_components = {
        "degrees": [50.0] * len(errors),
        "component_squared_errors": [2 * error for error in errors],
        "component_degrees": [5.0] * len(errors),
    }
    return ItemNoise(**{**known, **of_components, **changes}, variants=tuple(variants), squared_errors=errors)


def test_a_column_has_the_noise_by_shared_sentences_and_by_components() -> None:
    errors = ItemErrors([noise(0.01)])

    assert errors.errors(a_column("A"), *ROWS[:2]) == PairErrors(0.01, 50.0, 0.02, 5.0)
    assert errors.errors(a_column("A"), *ROWS[1::-1]) == PairErrors(0.01, 50.0, 0.02, 5.0)
    assert errors.errors(a_column("B"), *ROWS[:2]) is None


def test_an_average_has_the_noise_of_the_union_of_its_items() -> None:
    over = tuple(Averaged(task=task, evaluator="sts") for task in "AB")
    known = [noise(0.01), noise(0.02, task="B"), noise(0.5, task="", evaluator="", averaged=over)]

    assert ItemErrors(known).errors(a_column("A", "B"), *ROWS[:2]) == PairErrors(0.5, 50.0, 1.0, 5.0)


def test_the_average_of_an_earlier_result_adds_the_errors_of_its_test_sets() -> None:
    found = ItemErrors([noise(0.01), noise(0.01, task="B")]).errors(a_column("A", "B"), *ROWS[:2])

    assert found is not None
    assert found[:2] == pytest.approx((0.02 / 4, 100))


def test_a_row_shown_once_is_compared_with_the_rows_of_each_point() -> None:
    silver, gold = RowKey("silver", (("base", "small"),)), RowKey("gold", ())
    known = [
        noise(error, variants=("silver", "gold"), axes={"base": base})
        for base, error in (("small", 0.01), ("large", 0.02))
    ]

    assert ItemErrors(known).errors(a_column("A"), silver, gold) == PairErrors(0.01, 50.0, 0.02, 5.0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_covariances_of_differences_are_recovered_from_the_errors_of_pairs(seed: int) -> None:
    of_rows = np.cov(np.random.default_rng(seed).normal(size=(4, 20)))
    pairs = [(ROWS[0], ROWS[1]), (ROWS[2], ROWS[1]), (ROWS[2], ROWS[3])]
    contrasts = np.array([[float(row == one) - float(row == other) for row in ROWS] for one, other in pairs])
    errors = [
        of_rows[one, one] + of_rows[other, other] - 2 * of_rows[one, other]
        for one, other in combinations(range(4), 2)
    ]

    found = ItemErrors([noise(*errors, variants="abcd")]).covariances(a_column("A"), pairs)

    assert found == pytest.approx(contrasts @ of_rows @ contrasts.T)


def test_covariances_that_do_not_fit_each_other_become_those_of_numbers_that_exist() -> None:
    """Errors of pairs are each the larger of two estimates: 1, 1 and 9 contradict the triangle inequality."""
    pairs = [(ROWS[0], ROWS[1]), (ROWS[1], ROWS[2])]

    found = ItemErrors([noise(1.0, 9.0, 1.0, variants="abc")]).covariances(a_column("A"), pairs)

    assert found is not None
    assert np.diagonal(found) == pytest.approx([1.0, 1.0])
    assert np.linalg.eigvalsh(found).min() >= -1e-12


def test_covariances_are_unknown_where_the_noise_of_a_pair_is() -> None:
    assert (
        ItemErrors([noise(1.0)]).covariances(a_column("A"), [(ROWS[0], ROWS[1]), (ROWS[0], ROWS[2])]) is None
    )


def test_the_table_says_where_items_count_as_independent() -> None:
    by_sentence, unknown = noise(0.01), noise(0.01, task="B", lacks_sentences=True)
    earlier = ItemNoise(**{**by_sentence.model_dump(), "degrees": ()})

    assert [*independent_items([by_sentence])] == []
    assert [*independent_items([by_sentence, unknown])] == [
        "Test items count as independent, since their sentences are unknown: B."
    ]
    assert [*independent_items([earlier])] == [
        "Test items count as independent, since an earlier version of synthbench collected the results."
    ]
