"""Checkpoints as they were saved years ago load: pickled weights, module folders, vocabularies alone."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from hub_cache import SENTENCES
from manifest_hub import ManifestHub, manifest_hub, use_hub

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.generation.seq2seq import Seq2SeqLanguageModel
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.loading import check_tokenizer_reader
from synthbench.models.pretrained import Pretrained
from synthbench.models.reference import resolve

WRITER = "BeIR/query-gen-msmarco-t5-base-v1"
VECTORS = "sentence-transformers/average_word_embeddings_glove.6B.300d"
VECTORS_COMMIT = "b23c24e861d95672ff40c1c64442c45e48235960"
SBERT = "sentence-transformers"


@pytest.fixture(scope="module")
def running() -> Iterator[ManifestHub]:
    with manifest_hub() as hub:
        yield hub


@pytest.fixture
def hub(running: ManifestHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManifestHub:
    use_hub(running, tmp_path / "huggingface", monkeypatch)
    return running


@pytest.mark.parametrize(
    ("model", "revision", "dimension"),
    [
        (VECTORS, VECTORS_COMMIT, 16),
        ("princeton-nlp/unsup-simcse-bert-base-uncased", None, 32),
        (f"{SBERT}/bert-base-nli-mean-tokens", "50a3c8e8e115748c99fa4bc49e35758e9a5bb598", 32),
        (f"{SBERT}/roberta-base-nli-mean-tokens", "4a75d9a705768bd4ae50582cc53f72da2a61aef9", 32),
        ("GPL/msmarco-distilbert-margin-mse", None, 32),
        ("roberta-base", "e2da8e2f811d1448a5b465c236feacd80ffbac7b", 32),
        ("BAAI/bge-small-en-v1.5", None, 32),
        ("intfloat/e5-base-v2", None, 32),
        (f"{SBERT}/msmarco-MiniLM-L-6-v3", None, 32),
    ],
)  # fmt: skip
def test_an_encoder_of_the_hub_encodes(
    hub: ManifestHub, model: str, revision: str | None, dimension: int
) -> None:
    encoder = build_encoder(Pretrained(model=model, revision=revision), 0, "cpu")
    first, second = encoder.encode([SENTENCES[0], SENTENCES[77]])
    assert first.shape == (dimension,)
    assert abs(first - second).max() > 0.001


def test_weights_in_a_module_folder_are_downloaded_though_pickled(hub: ManifestHub) -> None:
    folder = Path(resolve(VECTORS, VECTORS_COMMIT))
    assert (folder / "0_WordEmbeddings" / "pytorch_model.bin").is_file()


def test_weights_in_other_formats_are_not_downloaded(hub: ManifestHub) -> None:
    folder = Path(resolve("roberta-base", "e2da8e2f811d1448a5b465c236feacd80ffbac7b"))
    assert sorted(
        path.suffix for path in folder.iterdir() if path.stat().st_size and "model" in path.name
    ) == [".safetensors"]


def test_a_cross_encoder_of_the_hub_scores_pairs(hub: ManifestHub) -> None:
    model = build_cross_encoder(Pretrained(model="cross-encoder/ms-marco-MiniLM-L-6-v2"), 0, "cpu")
    assert len(model.predict([(SENTENCES[0], SENTENCES[1])])) == 1


def test_a_writer_with_a_sentencepiece_tokenizer_alone_writes(hub: ManifestHub) -> None:
    pytest.importorskip("sentencepiece")
    writer = Seq2SeqLanguageModel(model=WRITER, max_new_tokens=4).load(Runtime(device="cpu"))
    (texts,) = writer.texts([SENTENCES[0]], [["1", "2"]], 0)
    assert len(texts) == 2


def test_without_sentencepiece_the_extra_to_install_is_named(
    hub: ManifestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentencepiece")
    folder = Path(resolve(WRITER))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 'synthbench\[sentencepiece\]'"):
        check_tokenizer_reader(WRITER, folder)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    check_tokenizer_reader(WRITER, folder)


def test_a_model_without_a_revision_is_found_again_without_a_hub(
    hub: ManifestHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    folder = resolve("GPL/msmarco-distilbert-margin-mse")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert resolve("GPL/msmarco-distilbert-margin-mse") == folder
