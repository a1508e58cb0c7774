"""Activation checkpointing: recompute activations instead of storing them."""

from typing import Any

from torch import nn
from transformers import PreTrainedModel

from synthbench.base.errors import UserError


def checkpoint_activations(model: nn.Module) -> None:
    """Let all transformers that can do so recompute activations in the backward pass.

    sentence-transformers' own switch calls the method of transformers by an outdated name. Raises UserError
    if no transformer in the model can.
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
