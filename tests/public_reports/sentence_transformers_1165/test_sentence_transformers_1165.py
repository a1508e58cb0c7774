"""huggingface/sentence-transformers #1165: STS figures differ by how subsets are put together.

One correlation over all pairs and the mean of the subsets' correlations can be far apart. Both are
computed, and the score that tables print is named after its aggregation.
"""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from synthbench.api import RecordKind, ScoredPair, SyntheticDataset
from synthbench_sts import STS

# Each subset is in perfect order; the second one's scores are lower where its gold is higher.
PARTS = {"news": [(0.1, 0.7), (0.2, 0.8), (0.3, 0.9)], "forum": [(0.7, 0.1), (0.8, 0.2), (0.9, 0.3)]}


class Written:
    """Gives each pair the score written in its second sentence."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        return np.array([float(second) for _, second in pairs])


@pytest.mark.parametrize(("aggregation", "expected"), [("all", -0.54), ("mean", 1.0), ("wmean", 1.0)])
def test_the_table_states_how_subset_scores_are_aggregated(aggregation: str, expected: float) -> None:
    pairs = [
        ScoredPair(id=f"{subset}{row}", subset=subset, sentence1="x", sentence2=str(predicted), score=gold)
        for subset, rows in PARTS.items()
        for row, (gold, predicted) in enumerate(rows)
    ]
    task = SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs, config={"task": "TOY"})
    evaluator = STS.model_validate({"aggregation": aggregation})
    found = evaluator.evaluate(Written(), task)
    assert found.scores[found.main_score] == pytest.approx(expected, abs=0.01)
    assert found.main_score == f"spearman_{aggregation}"
    assert f"aggregation: {aggregation}" in evaluator.main_score_title
    assert found.scores["spearman_all"] == pytest.approx(-0.54, abs=0.01)
    assert found.scores["spearman_mean"] == pytest.approx(1.0)
