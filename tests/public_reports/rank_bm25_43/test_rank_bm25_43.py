"""dorianbrown/rank_bm25 #43: with two texts every score is 0, whatever words a query shares with one.

Here a common word always counts, in however few texts.
"""

from synthbench.bm25 import nearest_by_words


def test_the_one_of_two_texts_with_the_querys_words_is_found() -> None:
    found = nearest_by_words(["hello my friend", "quite windy up north"], 2, ["windy north", "nothing else"])
    assert [list(row) for row in found.indices] == [[1], []]
    assert found.num_lacking == 3
