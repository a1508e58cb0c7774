"""dorianbrown/rank_bm25 #39: a word in exactly half of the texts adds nothing to their scores.

Here it adds as words in more than half do, and texts that share it are neighbours.
"""

from synthbench.bm25 import nearest_by_words

TEXTS = ["sun over hills", "sun at sea", "rain on roofs", "wind and dust"]


def test_texts_that_share_a_word_of_half_of_all_texts_are_neighbours() -> None:
    found = nearest_by_words(TEXTS, 3)
    assert [list(row) for row in found.indices] == [[1], [0], [], []]
    assert found.scores[0][0] > 0
    assert found.num_lacking == 10
