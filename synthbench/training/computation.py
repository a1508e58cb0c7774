"""How a training computes its steps: the precision, and activations that are computed again."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.utils.import_utils import is_torch_bf16_gpu_available

from synthbench.errors import UserError

FIRST_WITH_TF32 = (8, 0)
"""The compute capability of Ampere."""


def check_precision(precision: str, device: torch.device) -> None:
    """Raise UserError if the device does not compute in this precision; every CPU computes in bf16."""
    if precision == "bf16" and device.type != "cpu" and not is_torch_bf16_gpu_available():
        raise UserError(f"precision: bf16: the device {device} can't compute in bf16; take fp32")
    if precision == "tf32" and not _has_tf32(device):
        raise UserError(f"precision: tf32: the device {device} can't compute in tf32; take fp32")


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Let a GPU multiply fp32 matrices in tf32 if this is the precision, and as before afterwards."""
    before = torch.get_float32_matmul_precision()
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _has_tf32(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= FIRST_WITH_TF32


def checkpoint_activations(model: nn.Module) -> None:
    """Let all transformers in the model compute activations again for the gradients.

    sentence-transformers' own switch calls a name that transformers will drop. Raises UserError if no layer
    of the model can do so.
    """
    transformers = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    able: list[Any] = [module for module in transformers if module.supports_gradient_checkpointing]
    if not able:
        raise UserError("gradient_checkpointing: the base has no layers that support it; leave it out")
    settings = {"use_reentrant": False}
    for transformer in able:
        if hasattr(transformer, "activation_checkpointing_enable"):
            transformer.activation_checkpointing_enable(settings)
        else:
            transformer.gradient_checkpointing_enable(settings)
