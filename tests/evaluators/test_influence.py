"""How items move scores, against derivatives taken numerically of weighted scores, and against bootstraps."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, f1_score

from synthbench.api import spearman_influence
from synthbench_pairs import Pairs
from synthbench_pairs.measures import (
    average_precision_influence,
    f1_influence,
    partial_auc,
    partial_auc_influence,
)
from synthbench_reranking import Reranking
from synthbench_sts import STS
from synthbench_transfer import Transfer

Array = NDArray[np.float64]
NUM_ITEMS = 60


def derivative(score: Callable[[Array], float], num_items: int = NUM_ITEMS) -> Array:
    """Return a score's numerical derivative by each weight at 1, times their number."""
    step = 1e-4
    moved = np.ones((num_items, num_items)) + step * np.eye(num_items)
    return np.array([score(up) - score(2 - up) for up in moved]) * num_items / (2 * step)


def weighted_spearman(gold: Array, predicted: Array, weights: Array) -> float:
    """The correlation of weighted mid-ranks, each computed as a sum over all pairs."""
    shares = weights / weights.sum()

    def ranks(values: Array) -> Array:
        below = (values[:, None] < values) + 0.5 * (values[:, None] == values)
        return np.asarray(shares @ below)

    ours, theirs = ranks(gold) - 0.5, ranks(predicted) - 0.5
    return float(shares @ (ours * theirs) / np.sqrt((shares @ ours**2) * (shares @ theirs**2)))


@pytest.fixture
def pairs() -> tuple[Array, Array]:
    """Gold and predicted scores with ties in both."""
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 6, NUM_ITEMS) / 5
    return gold, np.round(gold + generator.normal(size=NUM_ITEMS), 1)


def test_the_influence_on_spearmans_correlation_is_its_derivative(pairs: tuple[Array, Array]) -> None:
    gold, predicted = pairs
    assert weighted_spearman(gold, predicted, np.ones(NUM_ITEMS)) == pytest.approx(
        spearmanr(gold, predicted).statistic
    )

    found = spearman_influence(gold, predicted)

    assert found == pytest.approx(derivative(lambda w: weighted_spearman(gold, predicted, w)), abs=1e-6)
    assert found.sum() == pytest.approx(0.0, abs=1e-9)


def test_no_pair_influences_the_correlation_of_a_collapsed_model() -> None:
    assert not spearman_influence(np.arange(9.0), np.full(9, 0.7)).any()


@pytest.mark.parametrize("aggregation", ["mean", "wmean"])
def test_influences_on_subset_correlations_are_averaged(pairs: tuple[Array, Array], aggregation: Any) -> None:
    gold, predicted = pairs
    subset = np.array(["a"] * 20 + ["b"] * 40)
    shares = {"mean": (0.5, 0.5), "wmean": (1 / 3, 2 / 3)}[aggregation]

    def score(weights: Array) -> float:
        parts = [weighted_spearman(gold[k], predicted[k], weights[k]) for k in (slice(20), slice(20, None))]
        return float(np.dot(shares, parts))

    items = {"gold": gold, "predicted": predicted, "subset": subset}

    assert STS(aggregation=aggregation).influence(items, {}) == pytest.approx(derivative(score), abs=1e-6)


def test_influences_of_f1_and_average_precision_are_their_derivatives(pairs: tuple[Array, Array]) -> None:
    is_positive, scores = pairs[0] >= 0.5, pairs[1]

    assert f1_influence(is_positive, scores > 0.3) == pytest.approx(
        derivative(lambda w: f1_score(is_positive, scores > 0.3, sample_weight=w)), abs=1e-6
    )
    assert average_precision_influence(scores, is_positive) == pytest.approx(
        derivative(lambda w: average_precision_score(is_positive, scores, sample_weight=w)), abs=1e-6
    )
    assert not f1_influence(np.zeros(5, bool), np.zeros(5, bool)).any()


def test_a_negative_pair_above_all_positives_causes_no_division_by_zero() -> None:
    is_positive, scores = np.array([False, True, False]), np.array([0.9, 0.5, 0.1])

    with np.errstate(all="raise"):
        found = average_precision_influence(scores, is_positive)

    assert found == pytest.approx([-0.75, 0.75, 0.0])


def test_the_influence_on_partial_auc_predicts_its_bootstrap_deviation() -> None:
    generator = np.random.default_rng(0)
    is_positive = generator.random(2000) < 0.4
    scores = is_positive * 1.5 + generator.normal(size=2000)
    draws = (generator.integers(0, 2000, 2000) for _ in range(300))
    bootstrap = np.std([partial_auc(scores[draw], is_positive[draw]) for draw in draws])

    found = partial_auc_influence(scores, is_positive)

    assert found.std() / 2000**0.5 == pytest.approx(bootstrap, rel=0.15)
    assert found.sum() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    ("measure", "scores"),
    [("f1", {"threshold_f1": 0.3}), ("accuracy", {"threshold_accuracy": 0.3}), ("average_precision", {})],
)
def test_the_pairs_evaluator_reports_the_influence_on_its_measure(
    pairs: tuple[Array, Array], measure: Any, scores: Mapping[str, float]
) -> None:
    gold, predicted = (pairs[0] >= 0.5).astype(float), pairs[1]
    expected = {
        "f1": f1_influence(gold > 0, predicted >= 0.3),
        "accuracy": ((predicted >= 0.3) == gold) - ((predicted >= 0.3) == gold).mean(),
        "average_precision": average_precision_influence(predicted, gold > 0),
    }[measure]

    found = Pairs(measure=measure).influence({"gold": gold, "predicted": predicted}, scores)

    assert found == pytest.approx(expected)


def test_only_counted_queries_influence_a_mean_over_queries() -> None:
    items = {
        "map": np.array([0.0, 1.0, 0.5, 1.0]),
        "num_relevant": np.array([0, 1, 1, 2]),
        "num_candidates": np.array([3, 3, 3, 2]),
    }

    # Two of four queries count, of mean 0.75: each weighs twice.
    assert Reranking(queries="mixed").influence(items, {}) == pytest.approx([0.0, 0.5, -0.5, 0.0])
    assert Reranking(queries="all").influence(items, {}) == pytest.approx([-0.625, 0.375, -0.125, 0.375])


def test_hits_raise_accuracy_and_misses_lower_it() -> None:
    items = {"gold": np.array(["1", "0", "1", "1"]), "predicted": np.array(["1", "1", "1", "0"])}

    assert Transfer().influence(items, {}) == pytest.approx([0.5, -0.5, 0.5, -0.5])
