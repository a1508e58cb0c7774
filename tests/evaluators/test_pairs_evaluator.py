"""Classification of pairs by a threshold: against values by hand and scikit-learn."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score
from wording import refused

from synthbench.api import Evaluation, RecordKind, ScoredPair, SyntheticDataset, UserError
from synthbench_pairs import Pairs
from synthbench_pairs.measures import PairThresholds, partial_auc

Scored = Sequence[tuple[float, int]]
LEVELS = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
SCORED = st.lists(st.tuples(LEVELS | st.floats(-1, 1), st.integers(0, 1)), min_size=2, max_size=40)


class Written:
    """Gives each pair the score written in its first sentence."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([float(first) for first, _ in pairs])


def evaluated(test: Scored, dev: Scored = (), **settings: Any) -> Evaluation:
    records = [
        ScoredPair(sentence1=str(score), sentence2=f"{split} {place}", score=float(label), split=split)
        for split, pairs in (("test", test), ("dev", dev))
        for place, (score, label) in enumerate(pairs)
    ]
    task = SyntheticDataset.create(RecordKind.SCORED_PAIR, records, config={"task": "TOY"})
    return Pairs(**settings).evaluate(Written(), task)


def arrays(pairs: Scored) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    scores, labels = zip(*pairs, strict=True)
    assume(0 < sum(labels) < len(labels))
    return np.array(scores, float), np.array(labels, bool)


def test_thresholds_are_chosen_on_dev_and_measured_on_test() -> None:
    dev = [(0.9, 1), (0.8, 1), (0.4, 0), (0.2, 0)]
    test = [(0.7, 1), (0.5, 1), (0.65, 0), (0.1, 0)]
    result = evaluated(test, dev)
    assert result.scores["threshold_f1"] == pytest.approx(0.6)
    assert result.scores["f1"] == pytest.approx(2 * 1 / (2 + 2))
    assert result.scores["accuracy"] == 0.5
    assert result.num_items == 4
    assert list(result.items["predicted"]) == [0.7, 0.5, 0.65, 0.1]


def test_f1_and_accuracy_have_separate_thresholds() -> None:
    dev = [(0.9, 1), (0.8, 0), (0.7, 0), (0.6, 0), (0.5, 1), (0.4, 0)]
    scores = evaluated([(0.9, 1), (0.85, 0), (0.55, 1), (0.1, 0)], dev).scores
    # Accuracy is best above 0.8 (5 of 6), F1, too: 2/3 there, against 4/7 from 0.5 on.
    assert scores["threshold_accuracy"] == scores["threshold_f1"] == pytest.approx(0.85)
    more = [*dev, (0.55, 1)]
    scores = evaluated([(0.9, 1), (0.1, 0)], more).scores
    assert scores["threshold_accuracy"] == pytest.approx(0.85)
    assert scores["threshold_f1"] == pytest.approx(0.45)


def test_without_dev_only_threshold_free_measures_are_computed() -> None:
    scores = evaluated([(0.9, 1), (0.1, 0)], measure="average_precision").scores
    assert scores == {"average_precision": 1.0, "auc_0.05": 1.0}
    Pairs(measure="auc_0.05").check_learning(())
    with refused("f1", "dev"):
        Pairs().check_learning(())


def test_dev_data_alone_are_scored_with_their_own_best_thresholds() -> None:
    """Checkpoint selection evaluates dev data alone."""
    result = evaluated([], [(0.9, 1), (0.8, 0), (0.7, 1), (0.1, 0)])
    assert result.num_items == 4
    assert result.scores["threshold_f1"] == pytest.approx(0.4)
    assert result.scores["f1"] == pytest.approx(2 * 2 / (2 + 3))
    assert result.scores["accuracy"] == 0.75


def test_a_threshold_is_never_chosen_on_test_data() -> None:
    with refused("f1", "dev"):
        evaluated([(0.9, 1), (0.1, 0)])


@given(SCORED)
@example([(0.5, 0), (math.nextafter(0.5, 1), 1)])
@example([(math.nextafter(0.5, 0), 0), (0.5, 1)])
def test_no_other_threshold_is_better_on_dev(pairs: Scored) -> None:
    scores, is_positive = arrays(pairs)
    best = PairThresholds.best(scores, is_positive)

    def f1(threshold: float) -> float:
        is_found = scores >= threshold
        return float(2 * (is_found & is_positive).sum() / (is_found.sum() + is_positive.sum()))

    def accuracy(threshold: float) -> float:
        return float(((scores >= threshold) == is_positive).mean())

    candidates = [*scores, scores.max() + 1]
    assert f1(best.f1) == pytest.approx(max(map(f1, candidates)))
    assert accuracy(best.accuracy) == pytest.approx(max(map(accuracy, candidates)))


@settings(max_examples=30)
@given(SCORED)
def test_the_partial_area_equals_scikit_learns_without_its_correction(pairs: Scored) -> None:
    scores, is_positive = arrays(pairs)
    least, most = 0.5 * 0.05**2, 0.05
    standardised = roc_auc_score(is_positive, scores, max_fpr=0.05)
    area = (2 * standardised - 1) * (most - least) + least
    assert partial_auc(scores, is_positive) == pytest.approx(area / 0.05)


@pytest.mark.parametrize(("num_negatives", "area"), [(19, 0.0), (20, 0.0), (21, 1 / 21), (40, 0.5)])
def test_a_positive_counts_from_the_rate_of_the_negatives_above_it(num_negatives: int, area: float) -> None:
    """The highest negative scores above the only positive, the other negatives below it."""
    is_positive = np.arange(num_negatives + 1) == 1
    assert partial_auc(-np.arange(num_negatives + 1.0), is_positive) == pytest.approx(area)


@settings(max_examples=30)
@given(SCORED, SCORED)
def test_all_measures_agree_with_scikit_learn(test: Scored, dev: Scored) -> None:
    scores, is_positive = arrays(test)
    arrays(dev)
    measured = evaluated(test, dev).scores
    assert measured["average_precision"] == pytest.approx(average_precision_score(is_positive, scores))
    found = scores >= measured["threshold_f1"]
    assert measured["f1"] == pytest.approx(f1_score(is_positive, found, zero_division=0))
    found = scores >= measured["threshold_accuracy"]
    assert measured["accuracy"] == pytest.approx(accuracy_score(is_positive, found))


@pytest.mark.parametrize(
    ("test", "dev", "fault"),
    [
        ([(0.1, 0), (0.2, 0)], [(0.1, 0), (0.2, 1)], "TOY: all 2 test pairs are of one class"),
        ([(0.1, 0), (0.2, 1)], [(0.1, 1)], "TOY: all 1 dev pairs are of one class"),
        ([(float("nan"), 0), (0.2, 1)], [(0.1, 0), (0.2, 1)], "TOY: the model's score of"),
    ],
)
def test_unmeasurable_data_are_refused(test: Scored, dev: Scored, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        evaluated(test, dev)
