"""furkanyesiler/re-move #4: MRR takes the first rank for a query that has no positive at all.

The reciprocal rank of a query without a relevant candidate is 0, in reranking and in retrieval, and
reranking says over how many queries each of its means goes.
"""

import numpy as np

from synthbench.api import RetrievalText
from synthbench_reranking.measures import counted_queries, means
from synthbench_reranking.measures import measures as of_reranking
from synthbench_retrieval.measures import measures as of_retrieval


def test_a_query_without_a_positive_has_no_reciprocal_rank() -> None:
    none = np.zeros(3)
    assert set(of_reranking(np.array([3.0, 2.0, 1.0]), none, none > 0).values()) == {0.0}
    query = RetrievalText(id="query/a", text="x", judged=("passage/1",), grades=(0.0,))
    assert of_retrieval(("passage/1", "passage/2"), query)["mrr_at_10"] == 0.0


def test_means_state_their_number_of_queries() -> None:
    counts = np.array([[1, 3], [0, 3]])
    found = means({"mrr": np.array([0.5, 0.0])}, counted_queries(counts))
    assert (found["mrr_answerable"], found["queries_answerable"]) == (0.5, 1)
    assert (found["mrr_all"], found["queries_all"]) == (0.25, 2)
