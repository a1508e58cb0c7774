"""embeddings-benchmark/mteb #33: where a model scores all pairs alike, the score is NaN.

A correlation that is undefined because the model tells nothing apart counts as 0: a collapsed model is the
worst, neither missing nor left out of a mean, and its dev score can be compared.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from synthbench.api import RecordKind, ScoredPair, SyntheticDataset
from synthbench_sts import STS


class Written:
    """Gives each pair the score written in its second sentence."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([float(second) for _, second in pairs])


def scores(**parts: Sequence[tuple[float, float]]) -> dict[str, float]:
    pairs = [
        ScoredPair(id=f"{subset}{row}", subset=subset, sentence1="x", sentence2=str(predicted), score=gold)
        for subset, rows in parts.items()
        for row, (gold, predicted) in enumerate(rows)
    ]
    task = SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs, config={"task": "TOY"})
    return dict(STS(aggregation="mean").evaluate(Written(), task).scores)


def test_a_subset_with_equal_scores_counts_as_zero() -> None:
    found = scores(good=[(0.1, 0.2), (0.5, 0.4), (0.9, 0.9)], alike=[(0.1, 0.7), (0.5, 0.7), (0.9, 0.7)])
    assert (found["spearman/good"], found["spearman/alike"]) == (1.0, 0.0)
    assert found["spearman_mean"] == pytest.approx(0.5)
    assert np.isfinite(list(found.values())).all()


def test_a_model_with_equal_scores_has_zero_everywhere() -> None:
    found = scores(one=[(0.1, 0.7), (0.9, 0.7)], other=[(0.2, 0.7), (0.8, 0.7)])
    assert set(found.values()) == {0.0}
