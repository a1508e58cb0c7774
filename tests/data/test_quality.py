"""Figures on samples, against figures worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.quality import NearNeighbours, Quality, examine, vendi_score
from synthbench.data.records import RecordKind, ScoredPair, Sentence, Triplet

PLACES = {"a dog": (1.0, 0.0), "a Dog!": (1.0, 0.0), "a cat": (0.6, 0.8), "snow": (0.0, 2.0)}


def encode(texts: Sequence[str]) -> NDArray[np.float32]:
    return np.array([PLACES[text] for text in texts], dtype=np.float32)


def sentences(*texts: str, split: str = "train") -> list[Sentence]:
    return [Sentence(sentence=text, split=split, source_id=str(place)) for place, text in enumerate(texts)]


def test_the_vendi_score_counts_orthogonal_vectors_apart_and_equal_ones_once() -> None:
    assert vendi_score(np.eye(5, dtype=np.float32) * 3) == pytest.approx(5)
    assert vendi_score(np.ones((7, 3), dtype=np.float32)) == pytest.approx(1)
    assert vendi_score(np.repeat(np.eye(2, dtype=np.float32), [3, 3], axis=0)) == pytest.approx(2)


def test_sentences_with_the_same_words_have_a_high_self_bleu() -> None:
    same = SyntheticDataset.create(
        RecordKind.SENTENCE, sentences(*("a b c d e" + " ." * n for n in range(3)))
    )
    other = SyntheticDataset.create(RecordKind.SENTENCE, sentences("a b c d e", "f g h i j", "k l m n o"))
    high, low = examine(same).self_bleu, examine(other).self_bleu
    assert high is not None and low is not None
    assert high > 60 > 5 > low


def test_a_pair_is_trivial_if_it_has_the_same_words_or_none_in_common() -> None:
    texts = [("A dog.", "a dog"), ("dog, a", "a dog"), ("a dog", "a cat"), ("a dog", "snow")]
    pairs = [ScoredPair(sentence1=first, sentence2=second, score=0.5) for first, second in texts]
    found = examine(SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs))
    assert (found.same_words, found.no_common_word, found.num_pairs) == (0.5, 0.25, 4)
    triplets = [Triplet(anchor="a dog", positive="A dog", negative="snow")]
    of_triplets = examine(SyntheticDataset.create(RecordKind.TRIPLET, triplets))
    assert (of_triplets.same_words, of_triplets.no_common_word, of_triplets.num_pairs) == (0.5, 0.5, 2)


def test_near_duplicates_are_counted_among_distinct_sentences() -> None:
    records = sentences("a dog", "a Dog!", "a dog", "snow")
    found = examine(SyntheticDataset.create(RecordKind.SENTENCE, records))
    assert (found.near_duplicates, found.near_queries, found.near_sentences) == (2 / 3, 3, 3)


def test_other_splits_are_compared_with_train() -> None:
    records = [*sentences("a dog", "snow"), *sentences("a Dog!", "a cat", split="dev")]
    found = examine(SyntheticDataset.create(RecordKind.SENTENCE, records), encode, "by hand")
    assert found.encoder == "by hand"
    neighbours = NearNeighbours(in_train=0.5, median_cosine=0.9, share_similar=0.5, queries=2, sentences=2)
    assert found.to_train["dev"].model_dump() == pytest.approx(neighbours.model_dump())


@pytest.mark.parametrize("kind", [kind for kind in RecordKind if kind != RecordKind.FAILURE])
def test_an_empty_data_set_has_no_figures_on_samples(kind: RecordKind) -> None:
    assert examine(SyntheticDataset.create(kind, []), encode) == Quality()
