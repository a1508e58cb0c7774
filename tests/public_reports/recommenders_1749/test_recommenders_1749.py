"""recommenders-team/recommenders #1749: nDCG counts every relevant document as 1, whatever its grade.

Gains are the judges' grades: the example of the report, Wikipedia's, has 0.785 over the first six.
"""

from math import log2

import pytest

from synthbench.api import RetrievalText
from synthbench_retrieval import measures
from synthbench_retrieval.measures import measures as measured

GRADES = {"D1": 3.0, "D2": 2.0, "D3": 3.0, "D4": 0.0, "D5": 1.0, "D6": 2.0, "D7": 3.0, "D8": 2.0}


def query(grades: dict[str, float]) -> RetrievalText:
    return RetrievalText(id="query/q", text="x", judged=tuple(grades), grades=tuple(grades.values()))


def test_ndcg_uses_grades_as_gains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "NEAR", 6)
    found = measured(["D1", "D2", "D3", "D4", "D5", "D6"], query(GRADES))["ndcg_at_10"]
    assert found == pytest.approx(0.785, abs=0.0005)
    binary = {name: float(grade > 0) for name, grade in GRADES.items()}
    assert measured(["D1", "D2", "D3", "D4", "D5", "D6"], query(binary))["ndcg_at_10"] != pytest.approx(found)


def test_the_ideal_ranking_is_ordered_by_grades() -> None:
    ideal = sorted(GRADES, key=lambda name: -GRADES[name])
    assert measured(ideal, query(GRADES))["ndcg_at_10"] == pytest.approx(1.0)
    swapped = [ideal[-1], *ideal[:-1]]
    gains = [GRADES[name] / log2(rank + 1) for rank, name in enumerate(swapped, start=1)]
    best = [GRADES[name] / log2(rank + 1) for rank, name in enumerate(ideal, start=1)]
    assert measured(swapped, query(GRADES))["ndcg_at_10"] == pytest.approx(sum(gains) / sum(best))
