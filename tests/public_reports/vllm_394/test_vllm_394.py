"""vllm-project/vllm #394: answers come in another order than their prompts.

Encoders and cross-encoders read texts by length; vectors and scores are in the order of what was given,
equal texts included.
"""

import numpy as np
import pytest
from hub_cache import SENTENCES, tiny_bert

from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.pair_scorer import LengthBatchedPairScorer
from synthbench.models.pretrained import Pretrained

TEXTS = [" ".join(SENTENCES[n : n + 1 + (5 * n) % 4]) for n in (7, 1, 12, 3, 9, 1, 20)]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Pretrained:
    folder = tmp_path_factory.mktemp("bert")
    tiny_bert(folder, weights=0.3)
    return Pretrained(model=str(folder))


def test_vectors_are_in_the_order_of_the_texts(base: Pretrained) -> None:
    encoder = LengthBatchedEncoder(build_encoder(base, 0, "cpu"), batch_tokens=64)
    alone = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.abs(encoder.encode(TEXTS) - alone).max() < 1e-5
    assert np.abs(alone[0] - alone[1]).max() > 1e-2


def test_scores_are_in_the_order_of_the_pairs(base: Pretrained) -> None:
    scorer = LengthBatchedPairScorer(build_cross_encoder(base, 0, "cpu"), batch_tokens=64)
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    alone = np.concatenate([scorer.score([pair]) for pair in pairs])
    assert np.abs(scorer.score(pairs) - alone).max() < 1e-5
    assert np.ptp(alone) > 1e-3
