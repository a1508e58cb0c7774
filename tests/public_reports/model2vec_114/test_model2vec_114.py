"""MinishLab/model2vec #114: the vector of a text without a known word is NaN: its length is 0.

Such a text has the vector 0, and its cosine with any other text is 0: no NaN reaches a score or a
neighbour.
"""

from pathlib import Path

import numpy as np

from synthbench.models.building import build_encoder
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.pair_scorer import pair_scorer
from synthbench.models.pretrained import Pretrained


def test_a_text_without_known_words_has_a_vector_and_a_cosine(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("dog 1 0\ncat 0.6 0.8\n", encoding="utf-8")
    model = build_encoder(Pretrained(model=str(tmp_path / "vectors.txt")), 0, "cpu")
    encoder = LengthBatchedEncoder(model)
    vectors = encoder.encode(["dog", "wug", "dog cat", "..."])
    assert np.isfinite(vectors).all()
    assert (vectors[[1, 3]] == 0).all()
    scores = pair_scorer(encoder).score([("dog", "wug"), ("wug", "blick"), ("dog", "cat"), ("dog", "dog")])
    assert scores.tolist() == [0.0, 0.0, 0.6, 1.0]
