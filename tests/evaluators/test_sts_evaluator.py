from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from wording import refused

from synthbench.api import RecordKind, ScoredPair, SyntheticDataset
from synthbench.plugins.loading import component
from synthbench_sts import MEASURES, STS


class Fixed:
    """Gives each pair the score written in its second sentence."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([float(second) for _, second in pairs])


def _task(parts: Mapping[str, Sequence[tuple[float, float]]]) -> SyntheticDataset:
    """Make a task of (gold, predicted) by subset."""
    records = [
        ScoredPair(id=f"{subset}-{row}", subset=subset, sentence1="x", sentence2=str(predicted), score=gold)
        for subset, rows in parts.items()
        for row, (gold, predicted) in enumerate(rows)
    ]
    return SyntheticDataset.create(RecordKind.SCORED_PAIR, records, config={"task": "TOY"})


TWO_PARTS = {
    "forward": [(0.1, 1.0), (0.2, 2.0), (0.3, 9.0), (0.4, 10.0)],
    "mixed": [(0.5, 3.0), (0.6, 1.0), (0.7, 2.0)],
}


def test_the_sts_evaluator_is_found_by_its_name() -> None:
    assert component("evaluators", "sts") is STS


def test_subset_scores_are_averaged_unweighted_and_by_size() -> None:
    scores = STS().evaluate(Fixed(), _task(TWO_PARTS)).scores
    # ranks 1 2 3 4 agree: 1. Ranks 1 2 3 against 3 1 2: 1 - 6 (4 + 1 + 1) / (3 * 8) = -0.5
    assert scores["spearman/forward"] == pytest.approx(1.0)
    assert scores["spearman/mixed"] == pytest.approx(-0.5)
    assert scores["spearman_mean"] == pytest.approx(0.25)
    assert scores["spearman_wmean"] == pytest.approx((4 * 1.0 + 3 * -0.5) / 7)


def test_the_aggregation_all_ranks_all_pairs_together_with_average_ranks_for_ties() -> None:
    scores = STS().evaluate(Fixed(), _task(TWO_PARTS)).scores
    # predicted 1 2 9 10 3 1 2 have ranks 1.5 3.5 6 7 5 1.5 3.5, gold ranks 1 .. 7;
    # centred products sum to 7.5 + 1 - 2 + 0 + 1 - 5 - 1.5 = 1, squared norms are 28 and 27
    assert scores["spearman_all"] == pytest.approx(1 / np.sqrt(28 * 27))


def test_pearson_is_the_cosine_of_centred_scores() -> None:
    scores = STS().evaluate(Fixed(), _task({"": [(0.0, 1.0), (0.5, 2.0), (1.0, 6.0)]})).scores
    # gold centred -.5 0 .5, predicted centred -2 -1 3: 2.5 / sqrt(0.5 * 14)
    assert scores["pearson_all"] == pytest.approx(2.5 / np.sqrt(7))


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(-5, 5)), min_size=2, max_size=30))
def test_without_subsets_all_aggregations_are_equal(rows: list[tuple[int, int]]) -> None:
    if len({gold for gold, _ in rows}) < 2:
        return
    task = _task({"": [(gold / 100, float(predicted)) for gold, predicted in rows]})
    scores = STS().evaluate(Fixed(), task).scores
    assert set(scores) == {f"{each}_{how}" for each in MEASURES for how in ("all", "mean", "wmean")}
    assert scores["spearman_all"] == scores["spearman_mean"] == pytest.approx(scores["spearman_wmean"])
    assert all(-1 <= value <= 1 for value in scores.values())


def test_the_main_score_follows_the_configuration() -> None:
    assert STS().main_score == "spearman_all"
    assert STS(aggregation="wmean").main_score_title == "Spearman correlation (aggregation: wmean)"
    evaluation = STS(aggregation="mean").evaluate(Fixed(), _task(TWO_PARTS))
    assert evaluation.main_score == "spearman_mean"


def test_every_pair_is_stored_for_paired_statistics() -> None:
    evaluation = STS().evaluate(Fixed(), _task(TWO_PARTS))
    assert evaluation.num_items == 7
    assert {name: len(column) for name, column in evaluation.items.items()} == dict.fromkeys(
        ("id", "subset", "gold", "predicted"), 7
    )
    assert evaluation.items["id"][4] == "mixed-0"
    assert evaluation.items["subset"][4] == "mixed"
    assert evaluation.items["gold"][4] == 0.5
    assert evaluation.items["predicted"][4] == 3.0


def test_a_model_with_constant_scores_gets_zero() -> None:
    scores = (
        STS().evaluate(Fixed(), _task({"a": [(0.1, 2.0), (0.9, 2.0)], "b": [(0.1, 2.0), (0.2, 2.0)]})).scores
    )
    assert set(scores.values()) == {0.0}


@pytest.mark.parametrize("rows", [[(0.5, 1.0), (0.5, 2.0)], [(0.5, 1.0)]])
def test_constant_gold_scores_are_refused_by_name(rows: list[tuple[float, float]]) -> None:
    with refused("TOY", "pairs", "gold"):
        STS().evaluate(Fixed(), _task({"": rows}))


@pytest.mark.parametrize("rows", [[(0.5, 1.0), (0.5, 2.0)], [(0.5, 1.0)]])
def test_a_subset_with_constant_gold_matters_only_if_subsets_are_averaged(
    rows: list[tuple[float, float]],
) -> None:
    task = _task({"good": TWO_PARTS["forward"], "flat": rows})
    with refused("TOY", "pairs", "gold"):
        STS(aggregation="mean").evaluate(Fixed(), task)
    found = STS().evaluate(Fixed(), task)
    assert found.num_items == 4 + len(rows)
    assert found.scores["spearman/good"] == pytest.approx(1)
    assert {"spearman/flat", "spearman_mean", "spearman_wmean"}.isdisjoint(found.scores)


def test_a_nan_score_is_reported() -> None:
    with refused("TOY", "score", "'x'", "'nan'"):
        STS().evaluate(Fixed(), _task({"": [(0.1, 1.0), (0.2, float("nan"))]}))


def test_an_unwrapped_encoder_is_a_type_error() -> None:
    class OnlyEncodes:
        def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
            return np.zeros((len(sentences), 1), np.float32)

    with pytest.raises(TypeError):
        STS().evaluate(OnlyEncodes(), _task(TWO_PARTS))
