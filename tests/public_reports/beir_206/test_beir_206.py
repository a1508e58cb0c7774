"""beir-cellar/beir #206: one of two search functions finds the query itself, which is a passage.

With `ignore_identical_ids` a query never finds the passage with its own id; without it, it does.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthbench.api import RecordKind, RetrievalText, SyntheticDataset
from synthbench_retrieval import Retrieval


class Angles:
    """Gives a text the direction written in it, in degrees."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        angles = np.radians([float(text) for text in sentences])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def argument(*, is_ignored: bool) -> float:
    """Return nDCG@10 of a task in which each argument's counterargument is the nearest other passage."""
    directions = {"a": 0, "b": 5, "c": 60, "d": 68}
    against = {"a": "b", "b": "a", "c": "d", "d": "c"}
    texts = [
        RetrievalText(id=f"passage/{name}", text=str(angle), split="test")
        for name, angle in directions.items()
    ] + [
        RetrievalText(
            id=f"query/{name}",
            text=str(angle),
            judged=(f"passage/{against[name]}",),
            grades=(1.0,),
            split="test",
        )
        for name, angle in directions.items()
    ]
    task = SyntheticDataset.create(RecordKind.RETRIEVAL, texts, config={"task": "TOY"})
    return Retrieval(ignore_identical_ids=is_ignored).evaluate(Angles(), task).scores["ndcg_at_10"]


def test_a_query_that_is_a_passage_does_not_find_itself() -> None:
    assert argument(is_ignored=True) == 1.0
    assert 0.6 < argument(is_ignored=False) < 0.7
