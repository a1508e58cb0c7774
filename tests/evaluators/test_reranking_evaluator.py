"""Reranking: MAP and its companions against hand-made, independent and published figures."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score
from wording import refused

import synthbench_reranking.measures
from synthbench.api import Evaluation, Ranking, RecordKind, SyntheticDataset
from synthbench.plugins.loading import component
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource
from synthbench_reranking import CONVENTIONS, MEASURES, Reranking
from synthbench_reranking.measures import measures

REAL_DATA = pytest.mark.skipif(
    "SYNTHBENCH_DATA" not in os.environ, reason="needs the real test sets in SYNTHBENCH_DATA"
)
Candidates = Sequence[tuple[float, float]]


class Fixed:
    """Scores a pair by the sum of the numbers in its sentences."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        self.sizes.append(len(pairs))
        return np.array([float(first) + float(second.split("#")[0]) for first, second in pairs])


def ranking(candidates: Candidates, **values: Any) -> Ranking:
    """Make a ranking of candidates (score, grade)."""
    texts = tuple(f"{score}#{place}" for place, (score, _) in enumerate(candidates))
    return Ranking(query="0", candidates=texts, grades=tuple(grade for _, grade in candidates), **values)


def made(*rankings: Ranking) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.RANKING, rankings, config={"task": "TOY"})


def evaluated(*queries: Candidates, by: Reranking | None = None) -> Evaluation:
    records = [ranking(each, id=f"q{number}") for number, each in enumerate(queries)]
    return (by or Reranking()).evaluate(Fixed(), made(*records))


GOOD = [(4.0, 1.0), (3.0, 0.0), (2.0, 1.0), (1.0, 0.0)]
POOR = [(4.0, 0.0), (3.0, 0.0), (2.0, 0.0), (1.0, 1.0)]
UNANSWERABLE = [(2.0, 0.0), (1.0, 0.0)]
ONLY_RELEVANT = [(2.0, 1.0), (1.0, 1.0)]


def test_the_reranking_evaluator_is_found_by_its_name() -> None:
    assert component("evaluators", "reranking") is Reranking


def test_measures_are_means_over_queries() -> None:
    scores = evaluated(GOOD, POOR).scores
    assert scores["map_all"] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 4) / 2)
    assert scores["mrr_all"] == pytest.approx((1 + 1 / 4) / 2)
    assert scores["precision_at_1_all"] == 0.5
    assert scores["precision_at_5_all"] == pytest.approx((2 + 1) / 5 / 2)
    good = (1 + 1 / math.log2(4)) / (1 + 1 / math.log2(3))
    assert scores["ndcg_at_10_all"] == pytest.approx((good + 1 / math.log2(5)) / 2)


def test_conventions_differ_in_queries_without_relevant_or_irrelevant_candidates() -> None:
    scores = evaluated(GOOD, UNANSWERABLE, ONLY_RELEVANT).scores
    good = (1 + 2 / 3) / 2
    assert scores["map_answerable"] == pytest.approx((good + 1) / 2)
    assert scores["map_all"] == pytest.approx((good + 0 + 1) / 3)
    assert scores["map_mixed"] == pytest.approx(good)
    counted = [scores[f"queries_{name}"] for name in ("all", "answerable", "mixed")]
    assert counted == [3, 2, 1]


@pytest.mark.parametrize(("queries", "num_items"), [("answerable", 2), ("all", 3), ("mixed", 1)])
def test_the_main_score_follows_the_convention(queries: str, num_items: int) -> None:
    evaluator = Reranking.model_validate({"queries": queries})
    found = evaluated(GOOD, UNANSWERABLE, ONLY_RELEVANT, by=evaluator)
    assert (found.main_score, found.num_items) == (f"map_{queries}", num_items)
    assert evaluator.main_score_title == f"mean average precision (queries: {queries})"
    names = (*MEASURES, "queries")
    assert set(found.scores) == {f"{name}_{convention}" for name in names for convention in CONVENTIONS}


def test_ties_rank_the_less_relevant_first_whatever_the_input_order() -> None:
    tied = [(2.0, 1.0), (2.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    scores = evaluated(tied).scores
    assert scores["map_all"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert scores["mrr_all"] == 0.5
    assert scores["precision_at_1_all"] == 0
    assert evaluated(tied[::-1]).scores == scores


def test_equal_scores_do_not_profit_from_the_order_of_the_candidates() -> None:
    scores = evaluated([(0.0, 1.0)] + [(0.0, 0.0)] * 11).scores
    assert scores["map_all"] == scores["mrr_all"] == pytest.approx(1 / 12)
    assert scores["ndcg_at_10_all"] == scores["precision_at_5_all"] == 0


def test_grades_are_gains_and_relevant_from_is_the_lowest_relevant_grade() -> None:
    graded = [(3.0, 0.5), (2.0, 1.0), (1.0, 0.0)]
    assert evaluated(graded).scores["map_all"] == 0.5
    assert evaluated(graded, by=Reranking(relevant_from=0.5)).scores["map_all"] == 1
    gain = (0.5 + 1 / math.log2(3)) / (1 + 0.5 / math.log2(3))
    assert evaluated(graded).scores["ndcg_at_10_all"] == pytest.approx(gain)


def test_with_several_queries_the_highest_score_counts() -> None:
    class Table:
        def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
            known = {("a", "x"): 0.1, ("b", "x"): 0.9, ("a", "y"): 0.5, ("b", "y"): 0.2}
            return np.array([known[pair] for pair in pairs])

    history = Ranking(query="a", further_queries=("b",), candidates=("x", "y"), grades=(1.0, 0.0))
    alone = Ranking(query="a", candidates=("x", "y"), grades=(1.0, 0.0))
    both = Reranking().evaluate(Table(), made(history, alone))
    assert both.items["map"] == [1.0, 0.5]


def test_pairs_are_scored_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    task = made(*(ranking(POOR, id=str(number)) for number in range(5)))
    whole = Reranking().evaluate(Fixed(), task)
    monkeypatch.setattr(synthbench_reranking.measures, "PAIRS_AT_ONCE", 8)
    scorer = Fixed()
    assert Reranking().evaluate(scorer, task) == whole
    assert scorer.sizes == [8, 8, 4]


def test_scores_of_subsets_appear_beside_the_overall_score() -> None:
    task = made(ranking(GOOD, subset="a"), ranking(POOR, subset="b"), ranking(UNANSWERABLE, subset="c"))
    scores = Reranking().evaluate(Fixed(), task).scores
    assert {name for name in scores if "/" in name} == {"map/a", "map/b"}
    assert scores["map/b"] == 0.25


def test_every_querys_score_is_stored_for_paired_statistics() -> None:
    items = evaluated(GOOD, UNANSWERABLE).items
    assert items["id"] == ["q0", "q1"]
    assert (items["num_relevant"], items["num_candidates"]) == ([2, 0], [4, 2])
    assert items["map"] == [pytest.approx(5 / 6), 0.0]


def test_a_task_with_nothing_to_rank_is_refused_before_any_training() -> None:
    task = made(ranking(UNANSWERABLE), ranking(ONLY_RELEVANT))
    for call in (lambda: Reranking().check_data(task), lambda: Reranking().evaluate(Fixed(), task)):
        with refused("TOY"):
            call()
    Reranking().check_data(made(ranking(UNANSWERABLE), ranking(POOR)))
    Reranking(relevant_from=0.5).check_data(made(ranking([(1.0, 0.5), (2.0, 0.4)])))
    with refused("TOY"):
        Reranking().check_data(made(ranking([(1.0, 0.5), (2.0, 0.4)])))


def test_a_nan_score_is_reported() -> None:
    with refused("TOY", "score", "'0'", "'nan#1'"):
        evaluated([(1.0, 1.0), (float("nan"), 0.0)])


@given(
    st.lists(st.tuples(st.integers(0, 6), st.sampled_from([0.0, 0.3, 1.0])), min_size=2, max_size=25).filter(
        lambda rows: any(grade == 1 for _, grade in rows)
    )
)
def test_ties_get_the_worst_possible_ranking(rows: list[tuple[int, float]]) -> None:
    scores, grades = np.array([score for score, _ in rows], float), np.array([grade for _, grade in rows])
    found = measures(scores, grades, grades >= 0.9)
    assert all(0 <= value <= 1 + 1e-12 for value in found.values())
    assert found["map"] <= average_precision_score(grades >= 0.9, scores) + 1e-12
    worst, as_given = sorted(rows, key=lambda row: (-row[0], row[1])), sorted(rows, key=lambda row: -row[0])
    names = [name for name in MEASURES if not name.startswith("ndcg")]
    walks = [walked([grade == 1 for _, grade in ranked]) for ranked in (worst, as_given)]
    assert [found[name] for name in names] == pytest.approx([walks[0][name] for name in names])
    assert all(found[name] <= walks[1][name] + 1e-12 for name in names)


@given(st.permutations(list(zip(range(12), [1.0, 0.0, 0.4] * 4, strict=True))))
def test_results_do_not_depend_on_the_order_of_candidates(rows: list[tuple[int, float]]) -> None:
    scores, grades = np.array([row // 3 for row, _ in rows], float), np.array([grade for _, grade in rows])
    first = np.argsort([row for row, _ in rows])
    found = measures(scores, grades, grades >= 0.9)
    assert found == measures(scores[first], grades[first], grades[first] >= 0.9)


@given(st.permutations(range(15)), st.lists(st.booleans(), min_size=15, max_size=15).filter(any))
def test_without_ties_all_measures_equal_a_walk_down_the_ranking(
    order: list[int], relevant: list[bool]
) -> None:
    found = measures(np.array(order, float), np.array(relevant, float), np.array(relevant))
    assert found["map"] == pytest.approx(average_precision_score(relevant, order))
    assert found == pytest.approx(walked([relevant[order.index(score)] for score in range(14, -1, -1)]))
    ndcg = ndcg_score([[float(each) for each in relevant]], [order], k=10)
    assert found["ndcg_at_10"] == pytest.approx(ndcg)


def walked(ranked: Sequence[bool]) -> Mapping[str, float]:
    """Compute the measures of binary relevance in ranked order, place by place."""
    hits, precisions, gain = 0, [], 0.0
    for place, is_relevant in enumerate(ranked, start=1):
        if is_relevant:
            hits += 1
            precisions.append(hits / place)
            gain += 1 / math.log2(place + 1) if place <= 10 else 0
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(hits, 10) + 1))
    first = ranked.index(True) + 1
    values = (sum(precisions) / hits, 1 / first, gain / ideal, float(ranked[0]), sum(ranked[:5]) / 5)
    return dict(zip(MEASURES, values, strict=True))


def test_the_sandboxs_rankings_have_one_relevant_candidate_in_ten() -> None:
    class Overlap:
        def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
            def words(text: str) -> set[str]:
                return set(text.lower().split())

            return np.array([len(words(a) & words(b)) / len(words(a) | words(b)) for a, b in pairs])

    source = WorldSource.model_validate(
        {"sandbox": "rankings", "split": "test", "size": 60, "candidates": 10}
    )
    found = Reranking().evaluate(Overlap(), source.load(Roots()))
    assert set(found.items["num_relevant"]) == {1}
    assert 0.1 < found.scores["map_answerable"] < 1
    assert found.scores["queries_mixed"] == 60


PUBLISHED_BM25 = {"dev": (52.0, 66.0, 51.9, 42.1), "test": (56.0, 68.0, 53.8, 42.5)}


@REAL_DATA
@pytest.mark.parametrize("split", PUBLISHED_BM25)
def test_bm25_reproduces_the_published_scores_on_ask_ubuntu(split: str) -> None:
    """Data of Lei et al. 2016, with ids as texts: query, relevant ones, candidates in BM25's order."""

    class ByPlace:
        def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
            return -np.array([float(text.split("#")[1]) for _, text in pairs])

    file = Path(os.environ["SYNTHBENCH_DATA"]) / "reranking" / f"askubuntu-ids-{split}.txt"
    rankings = []
    for line in file.read_text(encoding="utf-8").splitlines():
        query, relevant, candidates, _ = line.split("\t")
        grades = tuple(float(each in relevant.split()) for each in candidates.split())
        texts = tuple(f"{each}#{place}" for place, each in enumerate(candidates.split()))
        rankings.append(Ranking(query=query, candidates=texts, grades=grades))
    scores = Reranking().evaluate(ByPlace(), made(*rankings)).scores
    names = ("map_answerable", "mrr_answerable", "precision_at_1_answerable", "precision_at_5_answerable")
    assert tuple(round(100 * scores[name], 1) for name in names) == PUBLISHED_BM25[split]
    assert scores["queries_answerable"] - scores["queries_mixed"] == 7
