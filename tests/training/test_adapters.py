"""LoRA, last-token pooling and gradient checkpointing in training."""

import warnings
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from toy_training import context_in, toy_pairs
from wording import refused

from synthbench.base.errors import UserError
from synthbench.models.artifact import load
from synthbench.models.building import build_encoder
from synthbench.models.interfaces import Encoder, PairScorer
from synthbench.models.precision import check_precision, products_in
from synthbench.models.pretrained import Pretrained
from synthbench.training.adapters import LoRA, merged, with_adapters
from synthbench.training.bi_encoder import BiEncoder
from synthbench.training.computation import checkpoint_activations

TEXTS = ["fish0 ship1", "star2"]


def trained(bert: Path, folder: Path, **fields: Any) -> np.ndarray[Any, Any]:
    torch.set_num_threads(1)
    settings = {"base": {"model": str(bert)}, "max_steps": 4, "batch_size": 6, "learning_rate": 1e-2}
    context = context_in(folder)
    BiEncoder.model_validate({**settings, **fields}).train([toy_pairs(12)], context)
    model = load(context.output, context.runtime)
    assert isinstance(model, Encoder)
    return model.encode(TEXTS)


def test_merged_adapters_give_the_vectors_of_the_adapted_model(bert: Path) -> None:
    plain = build_encoder(Pretrained(model=str(bert)), 0, "cpu").encode(TEXTS)
    adapted = with_adapters(build_encoder(Pretrained(model=str(bert)), 0, "cpu"), LoRA(rank=4), seed=3)
    assert np.allclose(adapted.encode(TEXTS), plain, atol=1e-6), "new adapters add nothing"
    with torch.no_grad():
        for name, weights in adapted.named_parameters():
            if "lora_B" in name:
                weights.normal_(generator=torch.Generator().manual_seed(1))
    expected = adapted.encode(TEXTS)
    assert not np.allclose(expected, plain, atol=1e-3)
    assert np.allclose(merged(adapted).encode(TEXTS), expected, atol=1e-5)
    assert not any("lora" in name for name, _ in adapted.named_parameters())


def test_only_adapters_are_trained_and_the_result_is_an_ordinary_model(bert: Path, tmp_path: Path) -> None:
    made = [trained(bert, tmp_path / turn, lora={"rank": 4, "alpha": 8.0}) for turn in "ab"]
    assert np.array_equal(*made)
    plain = build_encoder(Pretrained(model=str(bert)), 0, "cpu").encode(TEXTS)
    assert not np.allclose(made[0], plain, atol=1e-4)
    adapted = with_adapters(build_encoder(Pretrained(model=str(bert)), 0, "cpu"), LoRA(rank=4), seed=3)
    assert all("lora" in name for name, each in adapted.named_parameters() if each.requires_grad)


def test_adapters_are_refused_for_a_static_base(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="without layers"):
        trained(bert, tmp_path, base={"model": str(bert), "static": True}, lora={})


def test_gradient_checkpointing_changes_results_only_by_rounding(bert: Path, tmp_path: Path) -> None:
    plain = trained(bert, tmp_path / "a")
    again = trained(bert, tmp_path / "b", gradient_checkpointing=True)
    assert np.allclose(plain, again, atol=1e-4)


def test_gradient_checkpointing_recomputes_layers_without_warnings(bert: Path) -> None:
    model = build_encoder(Pretrained(model=str(bert)), 0, "cpu").train()
    calls = []
    layer = model[0].auto_model.encoder.layer[0].attention
    layer.register_forward_hook(lambda *_: calls.append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        checkpoint_activations(model)
        model(model.preprocess(TEXTS))["sentence_embedding"].sum().backward()
    assert len(calls) == 2, "once forward, once more for the gradients"


def test_gradient_checkpointing_of_a_base_without_layers_is_refused(bert: Path) -> None:
    static = build_encoder(Pretrained(model=str(bert), static=True), 0, "cpu")
    with refused("gradient_checkpointing", "no layers"):
        checkpoint_activations(static)


def test_bf16_needs_a_device_that_computes_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.utils.import_utils.is_torch_bf16_gpu_available", lambda: False)
    for precision, device in (("bf16", "cpu"), ("fp32", "cuda")):
        check_precision(precision, torch.device(device))
    with refused("precision", "bf16", "cuda:1", "fp32"):
        check_precision("bf16", torch.device("cuda:1"))


@pytest.mark.parametrize(("capability", "is_able"), [((9, 0), True), ((8, 0), True), ((7, 5), False)])
def test_tf32_needs_a_gpu_that_supports_it(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], is_able: bool
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    with nullcontext() if is_able else refused("precision", "tf32", "cuda:1", "fp32"):
        check_precision("tf32", torch.device("cuda:1"))
    with refused("precision", "tf32", "cpu", "fp32"):
        check_precision("tf32", torch.device("cpu"))


@pytest.mark.parametrize(
    ("precision", "products"), [("fp32", "highest"), ("tf32", "high"), ("bf16", "highest")]
)
def test_tf32_applies_only_during_the_training(precision: str, products: str) -> None:
    assert torch.get_float32_matmul_precision() == "highest"
    with suppress(ZeroDivisionError), products_in(precision):
        assert torch.get_float32_matmul_precision() == products
        raise ZeroDivisionError
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16)])
def test_a_training_in_half_precision_encodes_and_scores_dev_in_it(
    precision: str, dtype: torch.dtype, bert: Path, tmp_path: Path
) -> None:
    torch.set_num_threads(1)
    seen: dict[str, set[torch.dtype]] = {"training": set(), "dev": set()}

    def watch(module: torch.nn.Module, _: Any, made: torch.Tensor) -> None:
        if isinstance(module, torch.nn.Linear):
            seen["training" if module.training else "dev"].add(made.dtype)

    def score(scorer: PairScorer) -> float:
        return float(scorer.score([("fish0 fish1", "ship0")])[0])

    settings = {"base": {"model": str(bert)}, "max_steps": 2, "evaluations": 1, "precision": precision}
    handle = torch.nn.modules.module.register_module_forward_hook(watch)
    try:
        BiEncoder.model_validate(settings).train([toy_pairs(12)], context_in(tmp_path, select=score))
    finally:
        handle.remove()
    assert seen == {"training": {dtype}, "dev": {dtype}}


def test_a_training_in_fp16_differs_by_rounding_and_leaves_later_ones_in_fp32(
    bert: Path, tmp_path: Path
) -> None:
    before, half, after = (
        trained(bert, tmp_path / name, learning_rate=1e-3, precision=precision)
        for name, precision in (("before", "fp32"), ("half", "fp16"), ("after", "fp32"))
    )
    assert np.array_equal(before, after)
    assert not np.array_equal(half, before)
    assert np.allclose(half, before, atol=0.02)


def test_gradients_are_scaled_down_to_the_norm_that_is_allowed(bert: Path, tmp_path: Path) -> None:
    """AdamW's steps don't depend on the gradients' size, unless they are as small as its epsilon, 1e-8."""
    plain = build_encoder(Pretrained(model=str(bert)), 0, "cpu").encode(TEXTS)
    assert not np.allclose(trained(bert, tmp_path / "a", weight_decay=0.0), plain, atol=1e-2)
    still = trained(bert, tmp_path / "b", weight_decay=0.0, max_grad_norm=1e-13)
    assert np.allclose(still, plain, atol=1e-4)


def test_disabled_options_are_not_in_the_identity() -> None:
    settings = BiEncoder.model_validate({"base": {"model": "m"}}).model_dump(mode="json")
    assert settings.keys().isdisjoint({"lora", "gradient_checkpointing", "loss"})


def test_last_token_pooling_uses_the_last_tokens_vector(bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    encoder = build_encoder(Pretrained(model=str(bert), pooling="lasttoken"), 0, "cpu")
    tokenizer, model = AutoTokenizer.from_pretrained(bert), AutoModel.from_pretrained(bert)
    for text, vector in zip(TEXTS, encoder.encode(TEXTS), strict=True):
        with torch.no_grad():
            last = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, -1]
        assert np.allclose(vector, last.numpy(), atol=1e-5)
