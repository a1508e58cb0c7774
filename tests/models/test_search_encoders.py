"""Sparse and late-interaction encoders: similarities by hand, by the library, in blocks, after saving."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.models.artifact import load, open_model, save_model
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.checks import check_encoder
from synthbench.models.interfaces import Encoder, Searcher
from synthbench.models.pretrained import Pretrained, Prompts
from synthbench.models.search_encoders import SearchEncoder, build_search_encoder, search_encoder

KINDS = ("sparse", "late-interaction")
QUERIES = ["the cat", "a dog sleeps", "the cat"]
PASSAGES = ["a cat sleeps", "the dog", "a dog and the cat sleep on the mat", "cat", "the mat"]
PAIRS = [(query, passage) for query in QUERIES for passage in PASSAGES]


def base(folder: Path, kind: str, **settings: Any) -> Pretrained:
    return Pretrained(model=str(folder), encoder=kind, **settings)


def made(folder: Path, kind: str, **settings: Any) -> SearchEncoder:
    return search_encoder(build_search_encoder(base(folder, kind, **settings), 0, "cpu"))


def matrix(encoder: Searcher, at_once: int = 2) -> np.ndarray[Any, Any]:
    return np.concatenate(list(encoder.similarities(QUERIES, PASSAGES, at_once)), axis=1)


def splade(folder: Path, text: str) -> torch.Tensor:
    """SPLADE's weights of a text by transformers alone: max over tokens of log(1 + relu(logit))."""
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokens = AutoTokenizer.from_pretrained(folder)([text], return_tensors="pt")
    with torch.no_grad():
        logits = AutoModelForMaskedLM.from_pretrained(folder).eval()(**tokens).logits[0]
    return torch.log1p(torch.relu(logits)).max(dim=0).values


def test_a_sparse_similarity_is_the_product_of_splades_weights(bert: Path) -> None:
    found = made(bert, "sparse").score([("the cat", "a dog sleeps")])
    weights = splade(bert, "the cat")
    theirs = made(bert, "sparse").model.encode_query("the cat").to_dense()
    assert torch.allclose(theirs, weights, rtol=0, atol=1e-6)
    expected = weights @ splade(bert, "a dog sleeps")
    assert found == pytest.approx([expected.item()], abs=1e-4)
    assert expected > 0.01


def test_late_interaction_sums_each_query_tokens_best_cosine(bert: Path) -> None:
    encoder = made(bert, "late-interaction")
    query = encoder.model.encode_query("the cat", convert_to_numpy=True)
    passage = encoder.model.encode_document("a dog sleeps", convert_to_numpy=True)
    assert np.linalg.norm(passage, axis=1) == pytest.approx(1)
    expected = sum(max(float(one @ other) for other in passage) for one in query)
    assert encoder.score([("the cat", "a dog sleeps")]) == pytest.approx([expected], abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_similarities_are_the_librarys_in_whatever_blocks(kind: str, bert: Path) -> None:
    encoder = made(bert, kind)
    model = encoder.model
    with torch.no_grad():
        theirs = model.similarity(model.encode_query(QUERIES), model.encode_document(PASSAGES)).numpy()
    for at_once in (1, 2, 100):
        assert matrix(encoder, at_once) == pytest.approx(theirs, abs=1e-4)
    assert encoder.score(PAIRS) == pytest.approx(theirs.reshape(-1), abs=1e-4)
    assert encoder.score([]).shape == (0,)


def test_a_sparse_encoder_that_was_saved_with_cosines_gives_cosines(bert: Path) -> None:
    encoder = made(bert, "sparse")
    encoder.model.similarity_fn_name = "cosine"
    assert encoder.score([("the cat", "the cat")]) == pytest.approx([1])


@pytest.mark.parametrize("kind", KINDS)
def test_the_numbers_of_an_index_are_counted(kind: str, bert: Path) -> None:
    encoder = made(bert, kind)
    # What it read before is no part of the index.
    encoder.score([("the cat", "on the mat on the mat")])
    list(encoder.similarities(QUERIES, ["a dog sleeps on the mat on the mat"], 2))
    list(encoder.similarities(QUERIES, PASSAGES, 2))
    stored = encoder.model.encode_document(PASSAGES)
    numbers = (
        [int((row.to_dense() != 0).sum()) for row in stored]
        if kind == "sparse"
        else [row.numel() for row in stored]
    )
    assert encoder.numbers_per_passage == pytest.approx(sum(numbers) / len(PASSAGES))


@pytest.mark.parametrize("kind", KINDS)
def test_prompts_are_put_before_queries_and_passages(kind: str, bert: Path) -> None:
    prompts = Prompts(query="a dog ", passage="on ")
    expected = made(bert, kind).score([("a dog the cat", "on the mat")])
    pair = [("the cat", "the mat")]
    assert made(bert, kind).with_prompts(prompts).score(pair) == pytest.approx(expected, abs=1e-4)
    given = made(bert, kind, prompts={"query": "a dog ", "passage": "on "})
    assert given.score(pair) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_encoder_scores_as_before_and_is_recognised_by_its_files(
    kind: Any, bert: Path, tmp_path: Path
) -> None:
    encoder = made(bert, kind)
    save_model(encoder.model, tmp_path, encoder=kind)
    loaded = load(tmp_path, Runtime(device="cpu"))
    assert isinstance(loaded, Searcher)
    assert not isinstance(loaded, Encoder)
    expected = matrix(encoder)
    assert matrix(loaded) == pytest.approx(expected, abs=1e-4)
    named = open_model(str(tmp_path / "model"), None, Runtime(device="cpu"))
    assert isinstance(named, Searcher)
    assert matrix(named) == pytest.approx(expected, abs=1e-4)
    wrong = Pretrained(model=str(tmp_path / "model"))
    with refused(f"encoder: {kind}"):
        check_encoder(wrong)
    with refused(f"encoder: {kind}"):
        build_encoder(wrong, 0, "cpu")


def test_a_saved_sparse_encoder_gives_token_vectors_and_layers_to_other_models(
    bert: Path, tmp_path: Path
) -> None:
    save_model(made(bert, "sparse").model, tmp_path, encoder="sparse")
    static = Pretrained(model=str(tmp_path / "model"), static=True)
    check_encoder(static)
    assert build_encoder(static, 0, "cpu").get_embedding_dimension() == 32
    pairs = build_cross_encoder(Pretrained(model=str(tmp_path / "model")), 0, "cpu")
    assert pairs.num_labels == 1


def test_a_similarity_that_is_not_supported_is_refused(bert: Path, tmp_path: Path) -> None:
    model: Any = made(bert, "sparse").model
    model.similarity_fn_name = "euclidean"
    save_model(model, tmp_path, encoder="sparse")
    with refused("euclidean"):
        made(tmp_path / "model", "sparse")


def test_a_checkpoint_of_colberts_authors_is_recognised_and_gives_its_own_projection(
    bert: Path, tmp_path: Path
) -> None:
    from safetensors.torch import save_file
    from transformers import AutoModel

    folder = tmp_path / "colbert"
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((bert / name).read_bytes())
    config = json.loads((bert / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["HF_ColBERT"]}))
    metadata = {"query_maxlen": 8, "doc_maxlen": 16, "dim": 4, "mask_punctuation": True}
    (folder / "artifact.metadata").write_text(json.dumps(metadata))
    inner = {f"bert.{name}": value for name, value in AutoModel.from_pretrained(bert).state_dict().items()}
    projection = torch.arange(4 * 32, dtype=torch.float32).reshape(4, 32) / 100
    save_file({**inner, "linear.weight": projection}, folder / "model.safetensors")
    encoder = made(folder, "late-interaction")
    assert encoder.model.encode_document("the cat").shape[1] == 4
    assert torch.equal(encoder.model[1].linear.weight, projection)


@pytest.mark.parametrize(
    ("own", "max_length", "read"),
    [(12, None, (12, 6)), (12, 5, (5, 5)), (12, 16, (16, 6)), (900, None, (0, 6))],
)
def test_max_length_limits_a_checkpoint_with_lengths_of_queries_and_passages(
    own: int, max_length: int | None, read: tuple[int, int], bert: Path, tmp_path: Path
) -> None:
    save_model(made(bert, "late-interaction").model, tmp_path, encoder="late-interaction")
    file = tmp_path / "model" / "sentence_bert_config.json"
    settings = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**settings, "document_length": own, "query_length": 6}))
    model = made(tmp_path / "model", "late-interaction", max_length=max_length).model
    text = "the cat sleeps on the mat " * 200
    passage, query = len(model.encode_document(text)), len(model.encode_query(text))
    assert (passage, query) == (read[0] or model.max_seq_length, read[1])


def test_what_is_no_start_for_a_search_encoder_is_refused_in_one_line(bert: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(bert).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(bert).save_pretrained(tmp_path)
    with refused("masked language model"):
        build_search_encoder(base(tmp_path, "sparse"), 0, "cpu")
    with refused("sparse encoder"):
        build_encoder(base(bert, "sparse"), 0, "cpu")
    with refused("encoder"):
        build_cross_encoder(base(bert, "sparse"), 0, "cpu")


@pytest.mark.parametrize("settings", [{"static": True}, {"pooling": "mean"}])
def test_a_search_encoder_has_no_pooling_of_a_whole_text(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="a sparse encoder has neither"):
        Pretrained(model="m", encoder="sparse", **settings)
