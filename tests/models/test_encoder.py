from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES, tiny_gpt2
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from synthbench.models.building import build_encoder
from synthbench.models.encoder import CachingEncoder, LengthBatchedEncoder
from synthbench.models.pair_scorer import CosineScorer, pair_scorer
from synthbench.models.pretrained import Pretrained

TEXTS = [*SENTENCES[:40:3], "a", "a dog", "the dog " * 20, "the dog " * 200, "a dog", "zebra!"]


class Counting:
    """An encoder that records its inputs; vectors are (number of characters, number of a's)."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        self.asked.extend(sentences)
        return np.array([[len(text), text.count("a")] for text in sentences], np.float32).reshape(-1, 2)


def _agrees(model: SentenceTransformer, batch_tokens: int = 64) -> None:
    ours = LengthBatchedEncoder(model, batch_tokens).encode(TEXTS)
    assert ours.dtype == np.float32
    assert ours == pytest.approx(model.encode(TEXTS), abs=1e-5)


@pytest.mark.parametrize(
    "changes",
    [{}, {"num_layers": 1}, {"pooling": "cls"}, {"static": True}, {"max_length": 5}],
    ids=str,
)
def test_vectors_equal_those_of_encode(bert: Path, changes: dict[str, object]) -> None:
    _agrees(build_encoder(Pretrained.model_validate({"model": str(bert), **changes}), 0, "cpu"))


def test_positions_and_padding_of_roberta_are_respected(roberta: Path) -> None:
    _agrees(build_encoder(Pretrained(model=str(roberta)), 0, "cpu"))


def test_prompt_normalisation_and_shortened_vectors_of_the_checkpoint_are_respected(
    sentence_encoder: Path,
) -> None:
    model = build_encoder(Pretrained(model=str(sentence_encoder)), 0, "cpu")
    plain = LengthBatchedEncoder(model).encode(TEXTS)
    assert np.linalg.norm(plain, axis=1) == pytest.approx(1.0, abs=1e-5)
    model.prompts, model.default_prompt_name = {"short": "a small cat "}, "short"
    model.set_pooling_include_prompt(include_prompt=False)
    _agrees(model)
    assert not np.allclose(LengthBatchedEncoder(model).encode(TEXTS), plain, atol=1e-3)
    model.truncate_dim = 7
    _agrees(model)


def test_an_empty_list_of_sentences_gives_no_vectors(bert: Path) -> None:
    encoder = LengthBatchedEncoder(build_encoder(Pretrained(model=str(bert)), 0, "cpu"))
    assert encoder.encode([]).shape == (0, 32)


def test_a_cache_encodes_each_sentence_once() -> None:
    counting = Counting()
    cached = CachingEncoder(counting)
    assert cached.encode(["aa", "b", "aa"]).tolist() == [[2, 2], [1, 0], [2, 2]]
    assert cached.encode(["ccc", "b"]).tolist() == [[3, 0], [1, 0]]
    assert counting.asked == ["aa", "b", "ccc"]


def test_an_encoder_as_a_pair_scorer_encodes_each_sentence_once() -> None:
    counting = Counting()
    scorer = pair_scorer(counting)
    scorer.score([("aa", "b"), ("b", "ab")])
    scorer.score([("ab", "aa")])
    assert counting.asked == ["aa", "b", "ab"]


def test_a_pair_scorer_is_returned_unchanged() -> None:
    scorer = CosineScorer(Counting())
    assert pair_scorer(scorer) is scorer


def test_cosines_equal_values_worked_out_by_hand() -> None:
    # (2, 2) and (1, 0): 2 / (sqrt(8) * 1) = 1 / sqrt(2)
    scores = CosineScorer(Counting()).score([("aa", "b"), ("bb", "b"), ("", "b")])
    assert scores.tolist() == [0.707107, 1.0, 0.0]


def test_equal_sentences_are_equally_similar() -> None:
    class Noisy(Counting):
        def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
            return np.random.default_rng(0).normal(size=(len(sentences), 300)).astype(np.float32)

    texts = [str(number) for number in range(200)]
    assert set(CosineScorer(Noisy()).score([(text, text) for text in texts])) == {1.0}


def test_an_empty_list_of_pairs_gives_no_scores() -> None:
    assert CosineScorer(Counting()).score([]).shape == (0,)


def test_a_text_without_tokens_has_the_same_vector_in_any_batch(tmp_path: Path) -> None:
    tiny_gpt2(tmp_path)
    model = build_encoder(Pretrained(model=str(tmp_path), pooling="cls"), 0, "cpu")
    alone, beside = (
        LengthBatchedEncoder(model, batch_tokens).encode(["", "the dog " * 20]) for batch_tokens in (1, 4096)
    )
    assert alone == pytest.approx(beside, abs=1e-5)
