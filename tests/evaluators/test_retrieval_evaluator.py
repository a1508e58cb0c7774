"""Retrieval: measures against trec_eval, search against brute force, ties, prompts, influence."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from numpy.typing import NDArray
from wording import refused

import synthbench_retrieval.search
from synthbench.api import RecordKind, RetrievalText, SyntheticDataset
from synthbench.plugins.loading import component
from synthbench_retrieval import Retrieval

TREC = {"ndcg_at_10": "ndcg_cut_10", "recall_at_100": "recall_100", "map_at_100": "map_cut_100"}


class Vectors:
    """Gives each text the vector that is written in it."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[float(each) for each in text.split()] for text in sentences], np.float32)


class OfQueries(Vectors):
    """Reads queries backwards."""

    of_passages = Vectors()

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return super().encode(sentences)[:, ::-1]


def passage(name: str, text: str) -> RetrievalText:
    return RetrievalText(id=f"passage/{name}", text=text, split="test")


def query(name: str, text: str, **graded: float) -> RetrievalText:
    judged = tuple(f"passage/{each}" for each in graded)
    return RetrievalText(
        id=f"query/{name}", text=text, judged=judged, grades=tuple(graded.values()), split="test"
    )


def made(*texts: RetrievalText) -> SyntheticDataset:
    return SyntheticDataset.create(RecordKind.RETRIEVAL, texts, config={"task": "TOY"})


def drawn(seed: int, num_passages: int = 230, num_queries: int = 12) -> SyntheticDataset:
    """Return random texts of few different vectors, so that many passages are equally similar."""
    chance = random.Random(seed)

    def text() -> str:
        return " ".join(str(chance.randrange(1, 4)) for _ in range(3))

    passages = [passage(f"p{number}", text()) for number in range(num_passages)]
    queries = [
        query(
            f"q{number}",
            text(),
            **{
                f"p{each}": float(chance.randrange(4))
                for each in chance.sample(range(num_passages + 20), chance.randrange(1, 30))
            },
        )
        for number in range(num_queries)
    ]
    return made(*queries, *passages)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
@pytest.mark.parametrize("seed", range(4))
def test_measures_equal_those_of_trec_eval(
    monkeypatch: pytest.MonkeyPatch, seed: int, similarity: Any
) -> None:
    monkeypatch.setattr(synthbench_retrieval.search, "PASSAGES_AT_ONCE", 64)
    monkeypatch.setattr(synthbench_retrieval.search, "QUERIES_AT_ONCE", 5)
    task = drawn(seed)
    texts = list(task)
    queries = [one for one in texts if one.is_query]
    passages = [one for one in texts if not one.is_query]
    vectors = {one.id: Vectors().encode([one.text])[0].astype(float) for one in texts}
    if similarity == "cosine":
        vectors = {name: vector / np.linalg.norm(vector) for name, vector in vectors.items()}
    run = {
        one.id: {each.id: round(float(vectors[one.id] @ vectors[each.id]), 6) for each in passages}
        for one in queries
    }
    judged = {
        one.id: {name: int(grade) for name, grade in zip(one.judged, one.grades, strict=True)}
        for one in queries
    }
    expected = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut.10", "recall.100", "map_cut.100"}).evaluate(
        run
    )
    found = Retrieval(similarity=similarity).evaluate(Vectors(), task)
    assert found.items["id"] == [one.id for one in queries]
    for name, its_name in TREC.items():
        values = [expected[one.id][its_name] for one in queries]
        assert found.items[name] == pytest.approx(values, abs=1e-6), name
        assert found.scores[name] == pytest.approx(float(np.mean(values)), abs=1e-6)


class Products:
    """A searcher whose similarity is the dot product of the vectors that are written in the texts."""

    numbers_per_passage = 3.0

    def __init__(self) -> None:
        self.blocks: list[int] = []

    def similarities(
        self, queries: Sequence[str], passages: Sequence[str], at_once: int
    ) -> Iterator[NDArray[np.float64]]:
        asked, found = Vectors().encode(queries).astype(float), Vectors().encode(passages).astype(float)
        for start in range(0, len(found), at_once):
            self.blocks.append(len(found[start : start + at_once]))
            yield asked @ found[start : start + at_once].T

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        raise NotImplementedError

    score_passages = score


def test_a_searcher_ranks_by_its_own_similarity_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthbench_retrieval.search, "SEARCHED_AT_ONCE", 64)
    model, task = Products(), drawn(1)
    found = Retrieval(ignore_identical_ids=True).evaluate(model, task)
    expected = Retrieval(similarity="dot", ignore_identical_ids=True).evaluate(Vectors(), task)
    assert model.blocks == [64, 64, 64, 38]
    assert found.items == expected.items
    assert found.scores == {**expected.scores, "numbers_per_passage": 3.0}


def test_a_similarity_that_is_not_finite_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task = made(query("q", "nan", a=1), passage("a", "1"))
    with refused("TOY", "not finite"):
        Retrieval().evaluate(Products(), task)


def test_measures_equal_values_worked_out_by_hand() -> None:
    task = made(
        query("q", "1 0", a=2, b=1, lost=1),
        *(
            passage(name, text)
            for name, text in {"x": "1 0.1", "a": "1 0.2", "y": "1 0.3", "b": "1 0.4"}.items()
        ),
    )
    found = Retrieval().evaluate(Vectors(), task)
    assert found.main_score == "ndcg_at_10"
    assert found.scores == pytest.approx(
        {
            # Ranks 2 and 4 of grades 2 and 1; ideal: grades 2, 1 and 1.
            "ndcg_at_10": (2 / np.log2(3) + 1 / np.log2(5)) / (2 + 1 / np.log2(3) + 1 / 2),
            "recall_at_100": 2 / 3,
            "mrr_at_10": 1 / 2,
            "map_at_100": (1 / 2 + 2 / 4) / 3,
        }
    )
    assert found.items["num_relevant"] == [3]


def test_passages_beyond_rank_10_add_no_gain_and_beyond_100_no_recall() -> None:
    near = [passage(f"n{number:03}", f"1 {number / 1000}") for number in range(10)]
    far = [passage(f"f{number:03}", f"1 {(500 + number) / 1000}") for number in range(120)]
    eleventh = Retrieval().evaluate(Vectors(), made(query("q", "1 0", f000=1), *near, *far))
    assert eleventh.scores == pytest.approx(
        {"ndcg_at_10": 0, "recall_at_100": 1, "mrr_at_10": 0, "map_at_100": 1 / 11}
    )
    beyond = Retrieval().evaluate(Vectors(), made(query("q", "1 0", f110=1), *near, *far))
    assert set(beyond.scores.values()) == {0.0}


def test_the_order_of_the_texts_does_not_matter() -> None:
    task = drawn(9)
    turned = made(*reversed(list(task)))
    one, other = (Retrieval().evaluate(Vectors(), each) for each in (task, turned))
    assert one.scores == pytest.approx(other.scores)
    assert one.items["map_at_100"] == list(reversed(other.items["map_at_100"]))


def test_a_querys_own_passage_can_be_left_out() -> None:
    task = made(query("a", "1 0", b=1), passage("a", "1 0"), passage("b", "1 1"), passage("c", "0 1"))
    assert Retrieval().evaluate(Vectors(), task).scores["mrr_at_10"] == 0.5
    assert Retrieval(ignore_identical_ids=True).evaluate(Vectors(), task).scores["mrr_at_10"] == 1.0


def test_passages_are_encoded_as_passages() -> None:
    task = made(query("q", "1 0", b=1), passage("a", "1 0"), passage("b", "0 1"))
    assert Retrieval().evaluate(OfQueries(), task).scores["mrr_at_10"] == 1.0
    assert Retrieval().evaluate(Vectors(), task).scores["mrr_at_10"] == 0.5


def test_a_querys_influence_is_its_deviation_from_the_mean() -> None:
    found = Retrieval().evaluate(Vectors(), drawn(3))
    items = {name: np.array(values) for name, values in found.items.items()}
    influence = Retrieval().influence(items, found.scores)
    assert influence.sum() == pytest.approx(0.0, abs=1e-12)
    assert influence + found.scores["ndcg_at_10"] == pytest.approx(items["ndcg_at_10"])


def test_a_task_without_queries_or_passages_is_refused() -> None:
    with refused("TOY", "0 queries"):
        Retrieval().check_data(made(passage("a", "1")))
    with refused("TOY", "0 passages"):
        Retrieval().check_data(made(query("a", "1", b=1)))
    assert component("evaluators", "retrieval") is Retrieval


def test_a_vector_that_is_not_finite_is_named() -> None:
    with refused("TOY", "passage/a"):
        Retrieval().evaluate(
            Vectors(), made(query("q", "1 0", a=1), passage("a", "nan 0"), passage("b", "1 1"))
        )
