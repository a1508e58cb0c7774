"""Precision of computations on GPUs and CPUs, and fast fp32 products on CPUs."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from synthbench.base.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import nn

Precision = Literal["fp32", "tf32", "bf16"]
TrainingPrecision = Literal["fp32", "tf32", "bf16", "fp16"]
"""fp16 is for training only, where the loss is scaled; for encoding and scoring there is bf16."""
FIRST_WITH_TF32 = (8, 0)
"""Compute capability of NVIDIA's Ampere."""
_CPU_DESCRIPTION = Path("/proc/cpuinfo")
_PROBED_SIZE = 512
_ROUNDING = 1e-5
"""Permitted error of a product of fp32 matrices, relative to its largest value; bf16's error is 1e-3."""


def check_precision(precision: str, device: "torch.device", key: str = "precision") -> None:
    """Raise UserError if the device does not support this precision; every CPU supports bf16."""
    if found := obstacle(precision, device):
        raise UserError(f"{key}: {found}")


def obstacle(precision: str, device: "torch.device") -> str:
    """Return why the device does not support this precision, "" if it does."""
    from transformers.utils.import_utils import is_torch_bf16_gpu_available

    if precision == "bf16" and device.type != "cpu" and not is_torch_bf16_gpu_available():
        return f"bf16: the device {device} can't compute in bf16; take fp32"
    if precision == "tf32" and not _has_tf32(device):
        return f"tf32: the device {device} can't compute in tf32; take fp32"
    return ""


def _has_tf32(device: "torch.device") -> bool:
    import torch

    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= FIRST_WITH_TF32


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Within the block, a GPU multiplies fp32 matrices in tf32 if `precision` is tf32."""
    import torch

    before = torch.get_float32_matmul_precision()
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def repeatable(device: "torch.device") -> Iterator[None]:
    """Within the block, a GPU's results are the same to the bit each time, as on a CPU.

    By default a GPU sums the gradients of embeddings in any order, so that two trainings of one seed differ
    (docs/gpu.md). An operation without a repeatable form only warns. Sets CUBLAS_WORKSPACE_CONFIG for the
    whole process, unless it is set.
    """
    import torch

    if device.type != "cuda":
        yield
        return
    # cuBLAS reads it at its first product; without it, its sums depend on how streams share memory.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled()
    warns = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    try:
        with _without_cudnn_attention():
            yield
    finally:
        torch.use_deterministic_algorithms(mode=before, warn_only=warns)


@contextmanager
def _without_cudnn_attention() -> Iterator[None]:
    """Within the block, torch computes attention without cuDNN's kernel.

    cuDNN makes a plan for each new shape, which took longer on an H100 than encoding the texts.
    """
    import torch

    before = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(enabled=before)


@contextmanager
def reading_in(precision: str, model: "nn.Module", device: "torch.device") -> Iterator[None]:
    """Within the block, the model computes in this precision; its weights keep their dtype.

    fp32 on a CPU uses oneDNN if `onednn_is_faster`.
    """
    import torch

    with ExitStack() as stack:
        if device.type == "cuda":
            stack.enter_context(_without_cudnn_attention())
        if precision == "bf16":
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
        elif precision == "tf32":
            stack.enter_context(products_in(precision))
        elif device.type == "cpu" and onednn_is_faster():
            stack.enter_context(_linear_layers_by_onednn(model))
        yield


@contextmanager
def fast_products(device: "torch.device") -> Iterator[None]:
    """Within the block, oneDNN multiplies fp32 matrices, if the device is a CPU and `onednn_is_faster`."""
    if device.type != "cpu" or not onednn_is_faster():
        yield
        return
    _switch(on=True)
    try:
        yield
    finally:
        _switch(on=False)


@contextmanager
def _linear_layers_by_onednn(model: "nn.Module") -> Iterator[None]:
    """Within the block, oneDNN multiplies in the model's linear layers only: it makes attention slower."""
    from torch import nn
    from transformers.pytorch_utils import Conv1D

    def by_onednn(*_: object) -> None:
        _switch(on=True)

    def as_before(*_: object) -> None:
        _switch(on=False)

    with ExitStack() as stack:
        for layer in model.modules():
            if isinstance(layer, nn.Linear | Conv1D):
                stack.callback(layer.register_forward_pre_hook(by_onednn).remove)
                stack.callback(layer.register_forward_hook(as_before, always_call=True).remove)
        yield


def _switch(*, on: bool) -> None:
    """Let oneDNN multiply fp32 matrices, or not.

    torch uses oneDNN only for products that may be rounded to bf16, so `on` permits rounding.
    """
    import torch

    torch.backends.mkldnn.matmul.fp32_precision = "bf16" if on else "none"  # type: ignore[attr-defined]


@cache
def onednn_is_faster() -> bool:
    """Return whether oneDNN multiplies fp32 matrices twice as fast as torch's own library, and as exactly.

    The speed is assumed, not measured: True only on AMD's CPUs with AVX-512, which MKL does not use there. A
    test product shows whether oneDNN rounds to bf16, as it may on CPUs with matrix units for bf16.
    """
    import torch

    has_switch = hasattr(torch.backends.mkldnn, "matmul")  # since torch 2.9
    if not (has_switch and _is_amd() and torch.backends.cpu.get_cpu_capability() == "AVX512"):
        return False
    generator = torch.Generator().manual_seed(0)
    inputs, weights = (torch.randn(_PROBED_SIZE, _PROBED_SIZE, generator=generator) for _ in range(2))
    exact = inputs.double() @ weights.double()
    _switch(on=True)
    try:
        error = (inputs @ weights - exact).abs().max() / exact.abs().max()
    finally:
        _switch(on=False)
    return bool(error <= _ROUNDING)


def _is_amd() -> bool:
    try:
        return "AuthenticAMD" in _CPU_DESCRIPTION.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
