"""elixir-nx/scholar #360: nDCG breaks ties in the model's favour, so a model that scores all alike gets 1.0.

Of candidates with equal scores the less relevant come first here: not to tell them apart never pays.
"""

from itertools import permutations

import numpy as np
import pytest

from synthbench_reranking.measures import measures

GRADES = (1.0, 0.0, 0.0, 0.1, 0.5)


def measured(scores: tuple[float, ...], grades: tuple[float, ...]) -> dict[str, float]:
    return dict(measures(np.array(scores), np.array(grades), np.array(grades) > 0))


def test_a_model_with_equal_scores_has_the_worst_ranking() -> None:
    alike = measured((1.0,) * 5, GRADES)
    worst = measured(tuple(-grade for grade in GRADES), GRADES)
    assert alike == worst
    assert alike["ndcg_at_10"] < 0.6
    assert alike["map"] < 0.6


def test_the_order_of_candidates_does_not_matter() -> None:
    scores = (1.0, 1.0, 1.0, 0.5, 0.5)
    found = [
        measured(tuple(scores[index] for index in order), tuple(GRADES[index] for index in order))
        for order in permutations(range(5))
    ]
    for each in found:
        assert each == pytest.approx(found[0])
    assert measured((5.0, 0.0, 0.0, 1.0, 2.0), GRADES)["ndcg_at_10"] == 1.0
