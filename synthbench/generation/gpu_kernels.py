"""A GPU's faster kernels for generation."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import nn


@contextmanager
def fast_kernels(model: "nn.Module", device: "torch.device") -> Iterator[None]:
    """Within the block, a GPU attends without cuDNN and computes GPT-2's activation in one kernel.

    cuDNN plans each new shape anew, which takes longer than reading the prompts. The library's activation
    (`gelu_new`) is the same formula in eight kernels.
    """
    if device.type != "cuda":
        yield
        return
    from torch import nn
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from transformers.activations import NewGELUActivation

    with ExitStack() as stack:
        stack.enter_context(
            sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH])
        )
        for parent in list(model.modules()):
            for name, child in list(parent.named_children()):
                if isinstance(child, NewGELUActivation):
                    setattr(parent, name, nn.GELU(approximate="tanh"))
                    stack.callback(setattr, parent, name, child)
        yield
