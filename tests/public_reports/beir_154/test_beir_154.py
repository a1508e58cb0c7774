"""beir-cellar/beir #154: to ignore identical ids, all queries leave the corpus, and the task becomes easier.

Only the passage with the query's own id is left out: other queries that are passages stay in the way.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthbench.api import RetrievalText
from synthbench_retrieval import Retrieval
from synthbench_retrieval.search import nearest


class Angles:
    """Gives a text the direction written in it, in degrees."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        angles = np.radians([float(text) for text in sentences])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_each_query_still_finds_other_queries_among_the_passages() -> None:
    passages = [RetrievalText(id=f"passage/{name}", text=angle) for name, angle in PLACES.items()]
    queries = [
        RetrievalText(id=f"query/{name}", text=PLACES[name], judged=("passage/answer",), grades=(1.0,))
        for name in ("a", "b")
    ]
    found = list(nearest(Angles(), queries, passages, Retrieval(ignore_identical_ids=True), "TOY"))
    assert found == [["passage/b", "passage/answer"], ["passage/a", "passage/answer"]]


PLACES = {"a": "0", "b": "3", "answer": "20"}
