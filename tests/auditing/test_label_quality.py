"""Labels against gold: agreement, a threshold from dev, biases; by hand, and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from synthbench.auditing.quality import (
    LabelQuality,
    agreement_of_labels,
    best_threshold,
    kappa_of,
    label_quality,
)
from synthbench.base.errors import UserError
from synthbench.data.records import ScoredPair


def pair(number: int, score: float, *, split: str = "train", swapped: bool = False) -> ScoredPair:
    texts = (f"first {number}", f"second {number}")
    first, second = reversed(texts) if swapped else texts
    identity = f"{number}{'/swapped' if swapped else ''}"
    return ScoredPair(id=identity, split=split, sentence1=first, sentence2=second, score=score)


def quality(
    labels: list[float | None], gold: list[float], dev: dict[int, tuple[float, float]] | None = None
) -> LabelQuality:
    """Return the quality of labels by position; `dev` has labels and gold by number."""
    known = [pair(number, score) for number, score in enumerate(gold)]
    made = [pair(number, label) for number, label in enumerate(labels) if label is not None]
    for number, (label, score) in (dev or {}).items():
        known.append(pair(number, score, split="dev"))
        made.append(pair(number, label, split="dev"))
    return label_quality(made, known, 0.5)


def test_pairs_without_a_label_are_missing_and_not_correct() -> None:
    found = quality([0.9, 0.1, None, 0.8], [1.0, 0.0, 1.0, 0.0])
    assert (found.num_pairs, found.num_missing, found.threshold) == (4, 1, 0.5)
    assert (found.correct.count, found.correct.total) == (2, 4)
    assert found.error.value == pytest.approx((-0.1 + 0.1 + 0.8) / 3)


def test_the_error_of_a_single_pair_has_no_interval() -> None:
    found = quality([0.9], [1.0]).error
    assert found.value == pytest.approx(-0.1)
    assert (found.low, found.high) == (None, None)


def test_dev_decides_the_threshold_and_measures_nothing_else() -> None:
    dev = {10: (0.1, 0.0), 11: (0.2, 0.0), 12: (0.3, 1.0), 13: (0.4, 1.0)}
    found = quality([0.3, 0.2, 0.9], [1.0, 0.0, 0.6], dev)
    assert found.threshold == pytest.approx(0.25)
    assert (found.num_pairs, found.num_dev, found.correct.count) == (3, 4, 3)
    assert found.kappa is not None
    assert found.kappa.value == 1.0


def test_of_equally_good_thresholds_the_highest_wins() -> None:
    scores, truth = np.array([0.1, 0.3, 0.5, 0.7]), np.array([0.0, 1.0, 0.0, 1.0])
    assert best_threshold(scores, truth, 0.5) == pytest.approx(0.6)


@pytest.mark.parametrize(("labels", "gold"), [((0.1, 0.9), (1.0, 1.0)), ((0.3, 0.3), (0.0, 1.0))])
def test_a_dev_of_one_class_or_one_label_is_refused(
    labels: tuple[float, float], gold: tuple[float, float]
) -> None:
    dev = {10 + row: each for row, each in enumerate(zip(labels, gold, strict=True))}
    with pytest.raises(UserError, match="split dev allows no threshold: its 2 pairs have"):
        quality([0.3], [1.0], dev)


def test_labels_of_other_pairs_are_refused() -> None:
    with pytest.raises(UserError, match="none of the data's pairs has a gold score"):
        label_quality([pair(1, 0.5)], [pair(2, 0.5)], 0.5)


def test_both_orders_of_a_pair_count_once_and_show_what_depends_on_the_order() -> None:
    gold = [pair(0, 1.0), pair(1, 0.0), pair(0, 1.0, swapped=True), pair(1, 0.0, swapped=True)]
    made = [pair(0, 0.9), pair(1, 0.2), pair(0, 0.3, swapped=True), pair(1, 0.1, swapped=True)]
    found = label_quality(made, gold, 0.5)
    assert (found.num_pairs, found.correct.count) == (2, 2)
    assert found.swapped is not None
    assert found.swapped.value == pytest.approx((0.6 + 0.1) / 2)
    assert found.flipped is not None
    assert (found.flipped.count, found.flipped.total) == (1, 2)
    assert quality([0.9], [1.0]).swapped is None


def test_two_equal_texts_have_no_other_order() -> None:
    same = ScoredPair(id="same", sentence1="a", sentence2="a", score=1.0)
    assert label_quality([same], [same], 0.5).swapped is None


def test_a_labeller_that_favours_long_texts_errs_with_their_length() -> None:
    gold = [
        ScoredPair(id=str(words), sentence1="a " * words, sentence2="b", score=0.5) for words in range(1, 13)
    ]
    made = [
        ScoredPair(id=each.id, sentence1=each.sentence1, sentence2="b", score=0.5 + int(each.id) / 100)
        for each in gold
    ]
    found = label_quality(made, gold, 0.5).length
    assert found is not None
    assert found.value == pytest.approx(1.0)


def test_two_labellers_agree_on_the_pairs_that_both_labelled_each_by_its_own_threshold() -> None:
    gold = [1.0, 0.0, 1.0, 0.0, 1.0]
    first = quality([0.9, 0.1, 0.8, 0.2, None], gold)
    second = quality([0.2, 0.1, 0.19, 0.12, 0.3], gold, {10: (0.1, 0.0), 11: (0.2, 1.0)})
    found, kappa = agreement_of_labels(first, second)
    assert found is not None
    assert found.num_pairs == 4
    assert kappa is not None
    assert kappa.value == 1.0


@given(st.lists(st.integers(1, 40), min_size=4, max_size=4))
def test_kappa_is_scikit_learns_and_lies_in_its_interval(counts: list[int]) -> None:
    first = np.repeat([True, True, False, False], counts)
    second = np.repeat([True, False, True, False], counts)
    found = kappa_of(np.array(counts))
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(cohen_kappa_score(first, second))
    assert found.low <= found.value <= found.high


def test_kappas_interval_has_about_the_width_of_the_large_sample_formula() -> None:
    """0.045 by Fleiss, Cohen and Everitt (1969) for these counts, computed by hand."""
    found = kappa_of(np.array([400, 100, 100, 400]))
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(0.6)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * 0.0253, abs=0.002)
