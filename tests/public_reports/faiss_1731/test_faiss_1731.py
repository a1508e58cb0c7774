"""facebookresearch/faiss #1731: a search for more neighbours than there are gives the index -1.

Index -1 is the last text. With fewer passages, sentences or positives than neighbours are wanted, each is
found once, and none stands for what is not there.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from synthbench.api import RetrievalText
from synthbench_augsbert.neighbours import nearest_of_all
from synthbench_retrieval import Retrieval
from synthbench_retrieval.search import nearest

VECTORS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], np.float32)


class ByNumber:
    """Gives each text one of three vectors, by its number."""

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        return VECTORS[[int(text) for text in sentences]]


def test_a_corpus_of_three_gives_three_passages_or_two_without_the_querys_own() -> None:
    passages = [RetrievalText(id=f"passage/{number}", text=str(number)) for number in range(3)]
    query = RetrievalText(id="query/0", text="0", judged=("passage/1",), grades=(1.0,))
    ((*found,),) = nearest(ByNumber(), [query], passages, Retrieval(), "TOY")
    assert found == ["passage/0", "passage/1", "passage/2"]
    ((*others,),) = nearest(ByNumber(), [query], passages, Retrieval(ignore_identical_ids=True), "TOY")
    assert others == ["passage/1", "passage/2"]


def test_neighbours_are_existing_sentences_other_than_the_query() -> None:
    rows = nearest_of_all(VECTORS, 2)
    assert [sorted(row) for row in rows.tolist()] == [[1, 2], [0, 2], [0, 1]]
