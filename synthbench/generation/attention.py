"""Attention of each sequence's new token to its cached keys and values.

With a mask, every sequence reads as many keys as the longest one. On a GPU, each reads only its own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import AttentionInterface

from synthbench.generation.memory import is_exhausted

_LENGTHS: ContextVar[Tensor | None] = ContextVar("lengths", default=None)
_AGREEMENT = {torch.float32: 1e-4, torch.bfloat16: 0.02, torch.float16: 0.02}
"""Largest permitted difference between attention by lengths and by a mask, for standard normal values."""


@contextmanager
def attending(lengths: Tensor | None) -> Iterator[None]:
    """Within the block, sequence i attends to its first `lengths[i]` keys; by the mask if `lengths` is None.

    `lengths` is int32. Models with their own attention, or with fewer key heads than query heads, always
    follow the mask; the result is equal up to rounding. Replaces transformers' "sdpa" for the rest of the
    process.
    """
    AttentionInterface.register("sdpa", _attention)
    before = _LENGTHS.set(lengths)
    try:
        yield
    finally:
        _LENGTHS.reset(before)


def reads_own_lengths(device: torch.device, dtype: torch.dtype, head_size: int) -> bool:
    """Return whether attention by lengths works on this device and agrees with attention by a mask."""
    if device.type != "cuda" or dtype not in _AGREEMENT:
        return False
    draw = torch.Generator(device).manual_seed(0)
    query, key, value = (
        torch.randn((3, length, 2, head_size), generator=draw, device=device, dtype=dtype).transpose(1, 2)
        for length in (1, 16, 16)
    )
    lengths = torch.tensor([5, 16, 1], dtype=torch.int32, device=device)
    mask = (torch.arange(16, device=device) < lengths[:, None])[:, None, None]
    try:
        found = _of_own_lengths(query, key, value, lengths, None)
    except (AttributeError, TypeError, RuntimeError, NotImplementedError) as error:
        if is_exhausted(error):
            raise
        return False
    expected = nn.functional.scaled_dot_product_attention(query, key, value, mask).transpose(1, 2)
    return bool((found - expected).abs().max() <= _AGREEMENT[dtype])


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **options: Any,  # noqa: ANN401 - the signature is transformers'
) -> tuple[Tensor, None]:
    """Return (output, None) as transformers' "sdpa"; in an `attending` block, by each sequence's length."""
    lengths = _LENGTHS.get()
    if lengths is not None and query.shape[1] == key.shape[1]:
        return _of_own_lengths(query, key, value, lengths, options.get("scaling")), None
    whole: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    return whole


def _of_own_lengths(
    query: Tensor, key: Tensor, value: Tensor, lengths: Tensor, scale: float | None
) -> Tensor:
    """Return the attention's output (sequences, 1, heads, size); sequence i reads `lengths[i]` of its keys.

    Queries have the shape (sequences, heads, 1, size). Keys and values (sequences, heads, length, size) are
    stored position by position. torch's `scaled_dot_product_attention` takes no lengths, so this calls the
    operator beneath it.
    """
    num_sequences, heads, _, size = query.shape
    length = key.shape[2]
    numbers = torch.arange(num_sequences + 1, dtype=torch.int32, device=query.device)
    attended: Tensor = torch.ops.aten._efficient_attention_forward(
        query.reshape(1, num_sequences, heads, size),
        key.transpose(1, 2).flatten(0, 1)[None],
        value.transpose(1, 2).flatten(0, 1)[None],
        bias=None,
        cu_seqlens_q=numbers,
        cu_seqlens_k=numbers * length,
        max_seqlen_q=1,
        max_seqlen_k=length,
        dropout_p=0.0,
        custom_mask_type=0,
        scale=scale,
        seqlen_k=lengths,
    )[0]
    return attended.view(num_sequences, 1, heads, size)
