"""The texts of test items, by which items are known to share sentences."""

from synthbench.api import Ranking, RecordKind, RetrievalText, ScoredPair, Sentence, SyntheticDataset
from synthbench.data.item_texts import texts_by_item


def test_an_item_of_pairs_or_sentences_has_the_texts_of_its_record() -> None:
    pairs = SyntheticDataset.create(
        RecordKind.SCORED_PAIR, [ScoredPair(id="p", sentence1="a", sentence2="b", score=1)]
    )
    sentences = SyntheticDataset.create(RecordKind.SENTENCE, [Sentence(id="s", sentence="c")])

    assert texts_by_item(pairs) == {"p": ("a", "b")}
    assert texts_by_item(sentences) == {"s": ("c",)}


def test_an_item_of_rankings_has_its_queries_and_candidates() -> None:
    ranking = Ranking(id="r", query="q", further_queries=("t",), candidates=("a", "b"), grades=(1.0, 0.0))

    assert texts_by_item(SyntheticDataset.create(RecordKind.RANKING, [ranking])) == {
        "r": ("q", "t", "a", "b")
    }


def test_an_item_of_retrieval_has_its_query_and_the_passages_judged_relevant() -> None:
    """A passage that is judged irrelevant, or missing in the corpus, ties no queries together."""
    records = [
        RetrievalText(id="1", text="a"),
        RetrievalText(id="2", text="b"),
        RetrievalText(id="3", text="c"),
        RetrievalText(id="q", text="query", judged=("1", "2", "gone"), grades=(2.0, 0.0, 1.0)),
    ]

    assert texts_by_item(SyntheticDataset.create(RecordKind.RETRIEVAL, records)) == {"q": ("query", "a")}
