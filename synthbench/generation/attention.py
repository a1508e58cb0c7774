"""Attention that reads no more of the cached keys and values than each part of the batch needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import AttentionInterface

from synthbench.generation.arrangement import Parts

_PARTS: ContextVar[Parts | None] = ContextVar("parts", default=None)


@contextmanager
def attending(parts: Parts) -> Iterator[None]:
    """Within the block, each part of the batch attends to its own width.

    Models with their own attention use the largest width for all, which is equal up to rounding.
    """
    AttentionInterface.register("sdpa", _in_parts)
    before = _PARTS.set(parts)
    try:
        yield
    finally:
        _PARTS.reset(before)


def _in_parts(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,  # noqa: ANN401 - the signature is transformers'
) -> tuple[Tensor, None]:
    """Attend as transformers' "sdpa" does; within `attending`, part by part."""
    parts = _PARTS.get()
    if parts is None or len(parts.widths) < 2 or attention_mask is None:
        whole: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, **options
        )
        return whole
    attended = []
    for number, width in enumerate(parts.widths):
        lines = slice(number * parts.size, (number + 1) * parts.size)
        part, _ = sdpa_attention_forward(
            module,
            query[lines],
            key[lines, :, :width],
            value[lines, :, :width],
            attention_mask[lines, ..., :width],
            **options,
        )
        attended.append(part)
    return torch.cat(attended), None
