"""cvangysel/pytrec_eval #56: MAP and nDCG of tied documents look wrong; trec_eval breaks ties by document id.

Passages of equal similarity are ranked by id as trec_eval ranks them, so figures can be compared with
published ones, and the order of the passages in a file makes no difference.
"""

from collections.abc import Sequence

import numpy as np
import pytest
import pytrec_eval
from numpy.typing import NDArray

from synthbench.api import RecordKind, RetrievalText, SyntheticDataset
from synthbench_retrieval import Retrieval

QRELS = {"q1": {"d3": 1}, "q2": {"d2": 1, "d3": 1}, "q3": {"d1": 1}}
DOCUMENTS = ("d1", "d2", "d3")


class Constant:
    """Gives every text the same vector."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return np.ones((len(sentences), 2), np.float32)


def searched(documents: Sequence[str]) -> dict[str, list[float]]:
    queries = [
        RetrievalText(
            id=f"query/{name}",
            text=name,
            judged=tuple(f"passage/{each}" for each in judged),
            grades=tuple(map(float, judged.values())),
            split="test",
        )
        for name, judged in QRELS.items()
    ]
    passages = [RetrievalText(id=f"passage/{name}", text=name, split="test") for name in documents]
    task = SyntheticDataset.create(RecordKind.RETRIEVAL, [*queries, *passages], config={"task": "TOY"})
    items = Retrieval().evaluate(Constant(), task).items
    return {name: list(items[name]) for name in ("map_at_100", "ndcg_at_10")}


def test_ties_are_broken_as_in_trec_eval_whatever_the_order_of_the_file() -> None:
    run = {name: dict.fromkeys(DOCUMENTS, 1.0) for name in QRELS}
    by_trec_eval = pytrec_eval.RelevanceEvaluator(QRELS, {"map", "ndcg_cut_10"}).evaluate(run)
    found = searched(DOCUMENTS)
    assert found["map_at_100"] == pytest.approx([by_trec_eval[name]["map"] for name in QRELS])
    assert found["ndcg_at_10"] == pytest.approx([by_trec_eval[name]["ndcg_cut_10"] for name in QRELS])
    assert found["map_at_100"][2] == pytest.approx(1 / 3)
    assert searched(("d3", "d1", "d2")) == found
