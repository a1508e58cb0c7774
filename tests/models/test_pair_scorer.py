from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES
from sentence_transformers import CrossEncoder
from wording import refused

from synthbench.api import length_sorted_units, symmetric_scores
from synthbench.models.building import build_cross_encoder
from synthbench.models.pair_scorer import LengthBatchedPairScorer
from synthbench.models.pretrained import Pretrained

TEXTS = [*SENTENCES[:30:5], "a", "the dog " * 20, "the dog " * 100]
PAIRS = [(first, second) for first in TEXTS for second in TEXTS]


@pytest.fixture
def cross_encoder(bert: Path) -> CrossEncoder:
    return build_cross_encoder(Pretrained(model=str(bert)), seed=0, device="cpu")


@pytest.mark.parametrize("batch_tokens", [16, 300, 4096])
def test_scores_equal_those_of_predict(cross_encoder: CrossEncoder, batch_tokens: int) -> None:
    scores = LengthBatchedPairScorer(cross_encoder, batch_tokens).score(PAIRS)
    assert scores == pytest.approx(cross_encoder.predict(PAIRS), abs=1e-5)


def test_scores_of_a_roberta_equal_those_of_predict(roberta: Path) -> None:
    model = build_cross_encoder(Pretrained(model=str(roberta), max_length=20), seed=0, device="cpu")
    assert LengthBatchedPairScorer(model).score(PAIRS) == pytest.approx(model.predict(PAIRS), abs=1e-5)


def test_a_repeated_ordered_pair_is_scored_once(
    cross_encoder: CrossEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    forward = cross_encoder.forward

    def counting(features: dict[str, object], **options: object) -> object:
        rows.append(len(features["input_ids"]))  # type: ignore[arg-type]
        return forward(features, **options)

    monkeypatch.setattr(cross_encoder, "forward", counting)
    pair, turned = ("a dog", "the piano"), ("the piano", "a dog")
    scores = LengthBatchedPairScorer(cross_encoder).score([pair, turned, pair, pair])
    assert sum(rows) == 2
    assert scores[0] == scores[2] == scores[3] != scores[1]


def test_units_give_the_same_bytes_after_a_resumption(cross_encoder: CrossEncoder) -> None:
    units = length_sorted_units([len(first) + len(second) for first, second in PAIRS], 7)
    batches = [[PAIRS[index] for index in unit] for unit in units]
    scorer = LengthBatchedPairScorer(cross_encoder)
    undisturbed = [symmetric_scores(scorer, batch).tobytes() for batch in batches]
    resumed = [symmetric_scores(LengthBatchedPairScorer(cross_encoder), batch) for batch in batches[4:]]
    assert [scores.tobytes() for scores in resumed] == undisturbed[4:]


def test_an_empty_list_of_pairs_gives_no_scores(cross_encoder: CrossEncoder) -> None:
    assert LengthBatchedPairScorer(cross_encoder).score([]).shape == (0,)


def test_scores_are_the_same_in_double_precision(cross_encoder: CrossEncoder) -> None:
    assert LengthBatchedPairScorer(cross_encoder).score(PAIRS[:1]).dtype == np.float64


def test_a_classifier_is_no_pair_scorer(bert: Path) -> None:
    classifier = build_cross_encoder(Pretrained(model=str(bert)), seed=0, device="cpu", num_labels=3)
    with refused("3"):
        LengthBatchedPairScorer(classifier)
