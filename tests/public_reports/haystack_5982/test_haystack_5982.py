"""deepset-ai/haystack #5982: a search by BM25 returns as many texts as asked for, some with a score of 0.

Here texts without a common word are no neighbours, and how many are lacking is told.
"""

from synthbench.bm25 import nearest_by_words

TEXTS = [f"{name} grows in the garden" for name in ("mint", "sage", "dill")] + ["rust on iron"]


def test_a_search_returns_fewer_texts_where_fewer_share_a_word() -> None:
    found = nearest_by_words(TEXTS, 4, ["mint", "iron rust", "the garden", "steel"])
    assert [len(row) for row in found.indices] == [1, 1, 3, 0]
    assert found.num_lacking == 16 - 5
