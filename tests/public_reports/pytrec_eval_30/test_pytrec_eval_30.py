"""cvangysel/pytrec_eval #30: queries for which nothing was found are left out of the mean, which grows by it.

Every judged query counts, with 0 where nothing relevant was found.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthbench.api import RecordKind, RetrievalText, SyntheticDataset
from synthbench_retrieval import MEASURES, Retrieval


class ByLength:
    """Gives a text of n letters the n-th axis."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return np.eye(8, dtype=np.float32)[[len(text) for text in sentences]]


def query(name: str, text: str, judged: str) -> RetrievalText:
    return RetrievalText(id=f"query/{name}", text=text, judged=(judged,), grades=(1.0,), split="test")


def test_a_query_without_a_hit_counts_as_zero() -> None:
    texts = [
        RetrievalText(id="passage/a", text="x", split="test"),
        query("found", "y", "passage/a"),
        query("not in the corpus", "yyy", "passage/gone"),
    ]
    task = SyntheticDataset.create(RecordKind.RETRIEVAL, texts, config={"task": "TOY"})
    found = Retrieval().evaluate(ByLength(), task)
    assert found.num_items == 2
    assert found.scores == dict.fromkeys(MEASURES, 0.5)
