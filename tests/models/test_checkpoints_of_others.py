"""sentence-transformers loads stored models on its own, with the same outputs."""

from pathlib import Path

import numpy as np
import pytest
from hub_cache import SENTENCES

from synthbench.base.runtime import Runtime
from synthbench.models.artifact import CHECKPOINT_FOLDER, load, save_model
from synthbench.models.building import build_cross_encoder, build_encoder, build_with_hidden_layer
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.pretrained import Pretrained, Prompts
from synthbench.training.adapters import LoRA, merged, with_adapters

PROMPTS = Prompts(query="a man: ", passage="two dogs: ")
BASES = {
    "mean": {},
    "cls, short": {"pooling": "cls", "max_length": 6},
    "prompts": {"prompts": PROMPTS},
    "static": {"static": True, "max_length": 4},
    "few layers": {"num_layers": 1},
}


def parity(folder: Path) -> None:
    """Compare the artifact as we evaluate it with the checkpoint as sentence-transformers loads it."""
    from sentence_transformers import SentenceTransformer

    ours = load(folder, Runtime(device="cpu"))
    assert isinstance(ours, Encoder)
    theirs = SentenceTransformer(str(folder / CHECKPOINT_FOLDER), device="cpu").encode(SENTENCES)
    np.testing.assert_allclose(theirs, ours.encode(SENTENCES), atol=1e-5)


@pytest.mark.parametrize("settings", BASES.values(), ids=BASES)
def test_sentence_transformers_gives_an_encoder_the_same_vectors(
    settings: dict[str, object], bert: Path, tmp_path: Path
) -> None:
    base = Pretrained.model_validate({"model": str(bert), **settings})
    save_model(build_encoder(base, 0, "cpu"), tmp_path)
    parity(tmp_path)


def test_sentence_transformers_gives_a_normalising_encoder_the_same_vectors(
    sentence_encoder: Path, tmp_path: Path
) -> None:
    save_model(build_encoder(Pretrained(model=str(sentence_encoder)), 0, "cpu"), tmp_path)
    parity(tmp_path)


def test_sentence_transformers_gives_an_encoder_with_merged_adapters_the_same_vectors(
    bert: Path, tmp_path: Path
) -> None:
    adapted = with_adapters(build_encoder(Pretrained(model=str(bert)), 0, "cpu"), LoRA(rank=2), seed=1)
    save_model(merged(adapted), tmp_path)
    parity(tmp_path)


def test_sentence_transformers_gives_word_vectors_the_same_results(tmp_path: Path) -> None:
    words = sorted({word for sentence in SENTENCES for word in sentence.lower().rstrip(".").split()})
    lines = [f"{word} {number % 7} {number % 3} 1" for number, word in enumerate(words)]
    file = tmp_path / "vectors.txt"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "artifact").mkdir()
    save_model(build_encoder(Pretrained(model=str(file)), 0, "cpu"), tmp_path / "artifact")
    parity(tmp_path / "artifact")


@pytest.mark.parametrize("size", [None, 8], ids=["usual head", "hidden layer"])
def test_sentence_transformers_gives_a_cross_encoder_the_same_scores(
    size: int | None, bert: Path, tmp_path: Path
) -> None:
    from sentence_transformers import CrossEncoder

    base = Pretrained(model=str(bert))
    built = (
        build_cross_encoder(base, 0, "cpu") if size is None else build_with_hidden_layer(base, size, 0, "cpu")
    )
    save_model(built, tmp_path)
    ours = load(tmp_path, Runtime(device="cpu"))
    assert isinstance(ours, PairScorer)
    pairs = list(zip(SENTENCES, reversed(SENTENCES), strict=True))
    theirs = CrossEncoder(str(tmp_path / CHECKPOINT_FOLDER), device="cpu").predict(pairs)
    np.testing.assert_allclose(theirs, ours.score(pairs), atol=1e-5)
