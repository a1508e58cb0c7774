"""vespa-engine/vespa #30639: BM25 is 0 for every Chinese query, since Chinese has no blanks between words.

Here pairs of neighbouring letters are the words of such scripts.
"""

from synthbench.bm25 import nearest_by_words

TEXTS = ["上海今天下雨了。", "他每天骑自行车上班。", "明天可能会下雨。", "她喜欢看电影。"]


def test_chinese_sentences_about_rain_are_neighbours_and_others_are_not() -> None:
    found = nearest_by_words(TEXTS, 1)
    assert list(found.indices[0]) == [2]
    assert list(found.indices[2]) == [0]
    assert list(found.indices[3]) == []
