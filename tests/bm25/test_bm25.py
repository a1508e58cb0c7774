"""BM25's neighbours against rank-bm25, word for word."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi
from wording import refused

from synthbench.bm25 import index as bm25
from synthbench.bm25 import nearest_by_words
from synthbench.bm25.index import BM25Index

WORDS = ["a", "b", "c", "d", "e", "the", "the", "the", "The", "is"]
SENTENCES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join), min_size=2, max_size=25
)


def reference(sentences: list[str]) -> BM25Okapi:
    """rank-bm25 with an idf above 0 for every word."""
    okapi = BM25Okapi([sentence.lower().split() for sentence in sentences])
    floor = 0.25 * okapi.average_idf
    okapi.idf = {word: idf if idf > 0 else (floor if floor > 0 else 0.01) for word, idf in okapi.idf.items()}
    return okapi


def reference_scores(sentences: list[str]) -> np.ndarray:
    okapi = reference(sentences)
    return np.array([okapi.get_scores(sentence.lower().split()) for sentence in sentences])


@given(SENTENCES)
@example(["a", "b"])
@example(["the cat", "the dog", "the the", "a fish"])
@example(["same words", "same words", "Words same"])
@example(["no word", "is shared", "by these", "four sentences"])
def test_scores_are_those_of_bm25_okapi(sentences: list[str]) -> None:
    expected = reference_scores(sentences)

    scores = BM25Index(sentences).scores(0, len(sentences))

    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


@given(SENTENCES)
def test_with_positive_idf_scores_equal_rank_bm25s(
    sentences: list[str],
) -> None:
    words = [sentence.lower().split() for sentence in sentences]
    okapi = BM25Okapi(words)
    assume(min(okapi.idf.values()) > 0)

    scores = BM25Index(sentences).scores(0, len(sentences))

    expected = [okapi.get_scores(each) for each in words]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)


@given(SENTENCES)
@example(["a", "b"])
@example(["the cat", "the dog"])
@example(["a b", "a c", "d", "e"])
@example(["the cat", "the dog", "the the", "a fish"])
def test_a_score_is_positive_exactly_if_a_word_is_shared(sentences: list[str]) -> None:
    words = [{*sentence.lower().split()} for sentence in sentences]
    shared = [[bool(one & other) for other in words] for one in words]

    scores = BM25Index(sentences).scores(0, len(sentences))

    np.testing.assert_array_equal(scores > 0, shared)
    assert scores.min() >= 0


@given(SENTENCES, st.data())
def test_neighbours_share_a_word_and_missing_ones_are_counted(
    sentences: list[str], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(sentences) - 1))
    words = [{*sentence.lower().split()} for sentence in sentences]

    found = nearest_by_words(sentences, k)

    for query, row in enumerate(found.indices):
        sharing = {other for other in range(len(words)) if other != query and words[other] & words[query]}
        assert sharing >= {*row}
        assert len(row) == min(k, len(sharing))
    assert sum(map(len, found.indices)) + found.num_lacking == k * len(sentences)


def test_words_in_most_sentences_get_okapis_quarter_of_the_mean_idf() -> None:
    sentences = ["the cat", "the dog", "the the owl", "a fish swims"]

    scores = BM25Index(sentences).scores(0, 1)

    # idf: "the" (in 3 of 4) negative, all others log(3.5 / 1.5); the mean is taken before replacing.
    rare, the = np.log(3.5 / 1.5), np.log(1.5 / 3.5)
    floor = 0.25 * (6 * rare + the) / 7
    norm = 1.5 * (0.25 + 0.75 * 2 / 2.5)
    assert scores[0, 1] == pytest.approx(floor * 2.5 / (1 + norm), abs=1e-12)
    assert scores[0, 3] == 0.0


@given(SENTENCES, st.data())
def test_every_neighbour_has_the_references_score_at_its_rank(
    sentences: list[str], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(sentences) - 1))
    expected = reference_scores(sentences)

    ids, scores = BM25Index(sentences).nearest(k)

    for query, others in enumerate(ids.tolist()):
        assert query not in others
        assert len(set(others)) == k
        best = np.sort(np.delete(expected[query], query))[::-1][:k]
        np.testing.assert_allclose(expected[query, others], best, rtol=0, atol=1e-12)
        np.testing.assert_allclose(scores[query], best, rtol=0, atol=1e-12)


@given(SENTENCES, st.data())
def test_ties_go_to_the_lower_index(sentences: list[str], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(sentences) - 1))
    index = BM25Index(sentences)
    exact = index.scores(0, len(sentences))

    ids, _ = index.nearest(k)

    for query, others in enumerate(ids.tolist()):
        ranking = sorted(
            set(range(len(sentences))) - {query}, key=lambda other: (-exact[query, other], other)
        )
        assert others == ranking[:k]


def test_sentences_with_the_same_words_tie_exactly_in_any_word_order() -> None:
    words = [f"word{number}" for number in range(9)]
    fillers = [f"word{number} filler{number} other{number}" for number in range(9)] * 3
    turns = [" ".join(words[turn:] + words[:turn]) for turn in range(9)]

    scores = BM25Index([*fillers, *turns]).scores(0, 36)

    assert (scores[:, 27:] == scores[:, 27:28]).all()


def test_scores_are_bitwise_equal_however_words_are_split_and_queries_grouped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(0)
    sentences = [" ".join(f"w{word}" for word in generator.zipf(1.5, 8) % 200) for _ in range(300)]
    ids, scores = BM25Index(sentences).nearest(7)

    # With the last settings, every query has so many candidates that all its scores are computed exactly.
    for frequent, rows, group, crowd in ((0.0, 1, 100, 64), (1.0, 64, 64, 64), (0.01, 1000, 2048, 0)):
        monkeypatch.setattr(bm25, "FREQUENT", frequent)
        monkeypatch.setattr(bm25, "FEWEST_ROWS", 1)
        monkeypatch.setattr(bm25, "MOST_ROWS", rows)
        monkeypatch.setattr(bm25, "GROUP_ROWS", group)
        monkeypatch.setattr(bm25, "CROWD", crowd)
        other_ids, other_scores = BM25Index(sentences).nearest(7)
        np.testing.assert_array_equal(ids, other_ids)
        np.testing.assert_array_equal(scores, other_scores)


@given(SENTENCES)
def test_single_precision_scores_are_within_their_bound(sentences: list[str]) -> None:
    index = BM25Index(sentences)
    rough = index.scorer(np.float32).scores(np.arange(len(sentences)))

    errors = np.abs(rough.astype(np.float64) - index.scores(0, len(sentences)))

    assert (errors <= index._errors[:, None]).all()


def test_the_largest_allowed_rounding_errors_change_no_neighbour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    generator = np.random.default_rng(1)
    sentences = [" ".join(f"w{word}" for word in generator.zipf(1.3, 12) % 60) for _ in range(400)]
    index = BM25Index(sentences)
    ids, scores = index.nearest(5)
    # Errors far above rounding: by the rough scores alone, the neighbours would differ.
    index._errors = np.full(400, 0.2)
    off = generator.choice(np.array([-0.1999, 0.1999], np.float32), (400, 400))
    unchanged = bm25._Scorer.scores

    def with_errors(scorer: bm25._Scorer[np.float32], queries: np.ndarray) -> np.ndarray:
        exact = unchanged(scorer, queries)
        return exact + off[queries] if exact.dtype == np.float32 else exact

    monkeypatch.setattr(bm25._Scorer, "scores", with_errors)
    rough = index.scores(0, 400) + off
    assert (np.argsort(rough)[:, -3] != np.argsort(index.scores(0, 400))[:, -3]).any()

    other_ids, other_scores = index.nearest(5)

    np.testing.assert_array_equal(ids, other_ids)
    np.testing.assert_array_equal(scores, other_scores)


def test_many_more_ties_than_neighbours_still_give_the_lowest_indices() -> None:
    sentences = [f"only{number}" for number in range(700)]

    ids, scores = BM25Index(sentences).nearest(3)

    assert ids[0].tolist() == [1, 2, 3]
    assert ids[1].tolist() == [0, 2, 3]
    assert ids[699].tolist() == [0, 1, 2]
    assert not scores.any()


@given(SENTENCES, SENTENCES, st.data())
def test_queries_that_are_no_corpus_sentences_find_the_best_sentences(
    sentences: list[str], queries: list[str], data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(sentences)))
    okapi = reference(sentences)
    queries = [*queries, "unknown words alone", "a " * 40]

    ids, scores = BM25Index(sentences, queries).nearest(k)

    for query, found, values in zip(queries, ids.tolist(), scores, strict=True):
        expected = okapi.get_scores(query.lower().split())
        assert len(set(found)) == k
        np.testing.assert_allclose(values, np.sort(expected)[::-1][:k], rtol=0, atol=1e-11)
        np.testing.assert_allclose(expected[found], values, rtol=0, atol=1e-11)


@pytest.mark.parametrize("k", [0, 3])
def test_k_must_be_smaller_than_the_number_of_sentences(k: int) -> None:
    with refused(str(k), "3", kind=ValueError):
        BM25Index(["a", "b", "c"]).nearest(k)
