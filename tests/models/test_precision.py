"""The precision in which models encode and score, and fp32 by oneDNN."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hub_cache import SENTENCES
from pydantic import ValidationError
from sentence_transformers import SentenceTransformer
from transformers.pytorch_utils import Conv1D
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.config.load import load_experiment
from synthbench.models import artifact, precision
from synthbench.models.building import build_cross_encoder, build_encoder
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.interfaces import Encoder, ModelKind, PairScorer
from synthbench.models.pair_scorer import LengthBatchedPairScorer
from synthbench.models.pretrained import Pretrained

TEXTS = [*SENTENCES[:30:3], "a", "the dog " * 20]
PAIRS = list(zip(TEXTS[:5], TEXTS[5:10], strict=True))
CPU = Runtime(device="cpu")


@pytest.fixture
def encoder(sentence_encoder: Path) -> SentenceTransformer:
    return build_encoder(Pretrained(model=str(sentence_encoder)), 0, "cpu")


@pytest.fixture
def on_amd(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every CPU passes for one of AMD's with AVX-512."""
    monkeypatch.setattr(precision, "_is_amd", lambda: True)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    precision.onednn_is_faster.cache_clear()
    yield
    precision.onednn_is_faster.cache_clear()


def products_by() -> str:
    made_by: str = torch.backends.mkldnn.matmul.fp32_precision  # type: ignore[attr-defined]
    return made_by


def test_onednn_gives_the_librarys_vectors_and_scores(
    on_amd: None, encoder: SentenceTransformer, bert: Path
) -> None:
    cross_encoder = build_cross_encoder(Pretrained(model=str(bert)), 0, "cpu")

    vectors = LengthBatchedEncoder(encoder).encode(TEXTS)
    scores = LengthBatchedPairScorer(cross_encoder).score(PAIRS)

    assert vectors == pytest.approx(encoder.encode(TEXTS), abs=1e-5)
    assert scores == pytest.approx(cross_encoder.predict(PAIRS), abs=1e-5)


def test_only_linear_layers_use_onednn(monkeypatch: pytest.MonkeyPatch, encoder: SentenceTransformer) -> None:
    monkeypatch.setattr(precision, "onednn_is_faster", lambda: True)
    linear, attention = torch.nn.functional.linear, torch.nn.functional.scaled_dot_product_attention
    by_function: dict[str, set[str]] = {"linear": set(), "attention": set()}

    def watched_linear(*arguments: torch.Tensor) -> torch.Tensor:
        by_function["linear"].add(products_by())
        return linear(*arguments)

    def watched_attention(*arguments: torch.Tensor, **more: object) -> torch.Tensor:
        by_function["attention"].add(products_by())
        return attention(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(torch.nn.functional, "linear", watched_linear)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched_attention)

    LengthBatchedEncoder(encoder).encode(TEXTS)

    assert by_function == {"linear": {"bf16"}, "attention": {"none"}}
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in encoder.modules())


@pytest.mark.parametrize(
    ("device", "is_faster", "inside"),
    [("cpu", True, "bf16"), ("cpu", False, "none"), ("cuda", True, "none")],
)
def test_products_of_blocks_use_onednn_if_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, device: str, is_faster: bool, inside: str
) -> None:
    monkeypatch.setattr(precision, "onednn_is_faster", lambda: is_faster)
    with suppress(ZeroDivisionError), precision.fast_products(torch.device(device)):
        assert products_by() == inside
        raise ZeroDivisionError
    assert products_by() == "none"


def test_linear_layers_of_a_language_model_use_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "onednn_is_faster", lambda: True)
    layer = Conv1D(3, 2)
    model = torch.nn.Sequential(layer)
    with precision.reading_in("fp32", model, torch.device("cpu")):
        inside = set[str]()
        watched = layer.register_forward_pre_hook(lambda *_: inside.add(products_by()))
        model(torch.ones(1, 2))
        watched.remove()
    assert inside == {"bf16"}
    assert products_by() == "none"


def test_the_product_setting_is_restored_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, encoder: SentenceTransformer
) -> None:
    monkeypatch.setattr(precision, "onednn_is_faster", lambda: True)

    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(torch.nn.functional, "linear", failing)
    with pytest.raises(MemoryError):
        LengthBatchedEncoder(encoder).encode(TEXTS)

    assert products_by() == "none"
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in encoder.modules())


def test_onednn_is_not_used_where_it_rounds(on_amd: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return torch.mm(self.bfloat16().to(self.dtype), other.bfloat16().to(self.dtype))

    monkeypatch.setattr(precision, "_switch", lambda *, on: None)
    assert precision.onednn_is_faster()
    precision.onednn_is_faster.cache_clear()
    exact, calls = torch.Tensor.__matmul__, iter(["exact", "by oneDNN"])

    def product(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return exact(self, other) if next(calls) == "exact" else rounded(self, other)

    monkeypatch.setattr(torch.Tensor, "__matmul__", product)
    assert not precision.onednn_is_faster()


@pytest.mark.parametrize(("vendor", "capability"), [("GenuineIntel", "AVX512"), ("AuthenticAMD", "AVX2")])
def test_onednn_is_not_used_on_cpus_that_gain_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, vendor: str, capability: str
) -> None:
    description = tmp_path / "cpuinfo"
    description.write_text(f"processor : 0\nvendor_id : {vendor}\n", encoding="utf-8")
    monkeypatch.setattr(precision, "_CPU_DESCRIPTION", description)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    precision.onednn_is_faster.cache_clear()

    assert not precision.onednn_is_faster()

    precision.onednn_is_faster.cache_clear()


def test_onednn_is_not_used_by_torch_versions_without_the_switch(
    on_amd: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends, "mkldnn", SimpleNamespace())

    assert not precision.onednn_is_faster()


def test_bf16_changes_vectors_and_scores_a_little(sentence_encoder: Path, bert: Path) -> None:
    for kind, folder, used in (
        (ModelKind.ENCODER, sentence_encoder, lambda model: model.encode(TEXTS)),
        (ModelKind.PAIR_SCORER, bert, lambda model: model.score(PAIRS)),
    ):
        bases = (
            Pretrained.model_validate({"model": str(folder), "precision": each}) for each in ("fp32", "bf16")
        )
        exact, rounded = (used(artifact.load_pretrained(base, kind, CPU)) for base in bases)
        difference = np.abs(rounded - exact).max()
        assert 1e-6 < difference < 0.05
        assert rounded.dtype == exact.dtype


def test_a_trained_model_keeps_the_precision_of_its_base(
    encoder: SentenceTransformer, bert: Path, tmp_path: Path
) -> None:
    artifact.save_model(encoder, tmp_path, "bf16")
    by_hand = LengthBatchedEncoder(encoder, precision="bf16").encode(TEXTS)

    loaded = artifact.load(tmp_path, CPU)

    assert isinstance(loaded, Encoder)
    assert (loaded.encode(TEXTS) == by_hand).all()
    artifact.save_untrained(Pretrained(model=str(bert), precision="bf16"), tmp_path, ModelKind.PAIR_SCORER)
    untrained = artifact.load(tmp_path, CPU)
    assert isinstance(untrained, PairScorer)
    fp32 = artifact.load_pretrained(Pretrained(model=str(bert)), ModelKind.PAIR_SCORER, CPU)
    assert (untrained.score(PAIRS) != fp32.score(PAIRS)).any()  # type: ignore[union-attr]


def test_fp32_is_not_mentioned_anywhere(encoder: SentenceTransformer, bert: Path, tmp_path: Path) -> None:
    artifact.save_model(encoder, tmp_path)
    assert json.loads((tmp_path / "model.json").read_text(encoding="utf-8")) == {
        "kind": "encoder",
        "pretrained": None,
    }
    assert "precision" not in Pretrained(model=str(bert)).model_dump()
    assert Pretrained(model=str(bert), precision="bf16").model_dump()["precision"] == "bf16"


def test_an_unsupported_precision_is_refused(bert: Path) -> None:
    base = Pretrained(model=str(bert), precision="tf32")
    with refused("base.precision", "tf32", "cpu", "fp32"):
        artifact.load_pretrained(base, ModelKind.ENCODER, CPU)


def test_models_without_matrix_products_have_no_precision(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="computes no products, so precision can't be bf16"):
        Pretrained(model=str(bert), static=True, precision="bf16")
    vectors = tmp_path / "vectors.vec"
    vectors.write_text("a 1 2\nb 3 4\n", encoding="utf-8")
    with refused("word vectors", "precision"):
        Pretrained(model=str(vectors), precision="bf16").vectors()


def test_tables_name_models_with_reduced_precision_and_their_rows(tmp_path: Path) -> None:
    file = tmp_path / "rounded.yaml"
    file.write_text(
        """\
experiment: rounded
sources:
  gold: {sandbox: pairs, split: train, size: 20}
  test: {sandbox: pairs, split: test, size: 20}
defaults:
  data: {gold: {source: gold}}
  train: {trainer: bi-encoder, base: {model: sandbox/encoder}, precision: bf16}
  evaluate: {sts: {evaluator: sts, tasks: [test]}}
baseline: exact
variants:
  rounded: {train.base.precision: bf16}
  labelled:
    data.silver:
      method: augsbert
      sources: {gold: gold}
      sampler: {name: bm25, k: 2}
      cross_encoder: {base: {model: sandbox/cross-encoder, precision: tf32}}
""",
        encoding="utf-8",
    )

    notes = load_experiment(file).notes

    assert "sandbox/encoder encodes and scores in bf16: rounded." in notes
    assert "sandbox/cross-encoder encodes and scores in tf32: labelled." in notes
    assert not any("exact" in note for note in notes)
