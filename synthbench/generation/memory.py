"""A device's memory: bytes per sequence, free bytes, out-of-memory errors, and the upload of numbers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

STAGED_SHARE = 1 / 8
"""Memory for prefetched prompts, as a share of the batch's keys and values."""
LOGIT_COPIES = 5
"""Maximum number of tensors as large as the logits that a step holds, such as debiased probabilities."""
ROUNDING = 16
"""Lengths are rounded up to a multiple of this: caches rarely grow."""
SPARE_LENGTH = 1.5
"""Memory is planned for prompts and texts this many times as long as the longest so far."""
USED_SHARE = 0.9
"""Share of free memory to plan with; the rest covers other allocations and fragmentation."""
_SIGNS = (
    "out of memory",  # CUDA's own error, and MPS
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_NOT_INITIALIZED",  # cuBLAS found no memory for its handle
    "can't allocate memory",  # a CPU
)


def rounded(length: int, to: int = ROUNDING) -> int:
    """Round a length up to a multiple of `to`."""
    return -(-length // to) * to


def bytes_per_sequence(of_token: int, num_layers: int, length: int, vocabulary: int) -> int:
    """Return the bytes of one sequence of a batch: keys and values, prefetched prompts and fp32 logits.

    `of_token`: bytes of the keys and values of one token in all layers.
    """
    key_values = of_token * rounded(length) * (1 + STAGED_SHARE + 1 / num_layers)
    return int(key_values + LOGIT_COPIES * 4 * vocabulary)


def is_exhausted(error: BaseException) -> bool:
    """Return whether the error, or one of its causes, means that memory is exhausted.

    Besides torch's own error, messages of CUDA, cuBLAS, MPS and the CPU are recognised. If recording a CUDA
    graph runs out of memory, another error follows, so causes count.
    """
    import torch

    causes: list[BaseException] = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None:
        causes.append(cause)
    return any(
        isinstance(each, torch.OutOfMemoryError) or any(sign in str(each) for sign in _SIGNS)
        for each in causes
    )


def free_bytes(device: "torch.device") -> int | None:
    """Return the bytes that can still be allocated on a GPU; None if the device does not tell."""
    import torch

    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return None


def release(device: "torch.device") -> None:
    """Give unused memory back to the device."""
    import torch

    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()


def uploaded(device: "torch.device", *numbers: "Sequence[int] | NDArray[np.int64]") -> "list[Tensor]":
    """Return lists of integers as int64 tensors on the device, sent in one transfer."""
    import numpy as np
    import torch

    together = torch.from_numpy(np.concatenate([np.asarray(each, dtype=np.int64) for each in numbers]))
    if device.type == "cuda":
        together = together.pin_memory()
    sizes = [len(each) for each in numbers]
    on_device = together.to(device, non_blocking=True)
    return list(on_device.split(sizes))  # type: ignore[no-untyped-call]
