"""Where models can compute here, and with how many threads."""

import os
import shutil
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from synthbench.diagnosis.finding import Finding, fine, note, problem
from synthbench.errors import in_one_line

if TYPE_CHECKING:
    import torch

GIB = 2**30


def devices() -> Iterator[Finding]:
    """Look at the threads of the CPU and at accelerators; each accelerator has to add two numbers."""
    try:
        import torch
    except (ImportError, OSError) as error:
        yield problem(
            "torch", f"can't be imported: {in_one_line(error)}", "install torch for this machine anew"
        )
        return
    yield _threads(torch.get_num_threads())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        has_cuda = torch.cuda.is_available()
    if caught and not has_cuda:
        advice = "match NVIDIA's driver and the build of torch, or compute on the CPU"
        yield problem("CUDA", str(caught[0].message).strip().splitlines()[0], advice)
    accelerators = [f"cuda:{number}" for number in range(torch.cuda.device_count())] if has_cuda else []
    accelerators += ["mps"] if torch.backends.mps.is_available() else []
    yield from map(_accelerator, accelerators)
    if not accelerators:
        yield _no_accelerator(torch.version.cuda)


def _threads(num_threads: int) -> Finding:
    affinity = getattr(os, "sched_getaffinity", None)
    num_cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    text = f"torch computes with {num_threads} of {num_cores} cores"
    limit = os.environ.get("OMP_NUM_THREADS")
    if num_threads < num_cores and limit:
        return note("CPU", f"{text}: OMP_NUM_THREADS={limit}", "unset it, unless the machine is shared")
    return fine("CPU", text)


def _accelerator(name: str) -> Finding:
    import torch

    try:
        is_right = torch.ones(2, device=name).sum().item() == 2.0
        reason = "" if is_right else "1 + 1 is not 2"
    except RuntimeError as error:
        reason = in_one_line(error)
    if reason:
        return problem(
            name, f"can't compute: {reason}", "use another device or build of torch; device: cpu always works"
        )
    return fine(name, _description(torch.device(name)))


def _description(device: "torch.device") -> str:
    import torch

    if device.type != "cuda":
        return "computes"
    properties = torch.cuda.get_device_properties(device)
    return f"{properties.name}, {properties.total_memory / GIB:.0f} GiB, computes"


def _no_accelerator(cuda_version: str | None) -> Finding:
    if cuda_version is None and shutil.which("nvidia-smi"):
        return note(
            "CUDA",
            "this machine has NVIDIA's driver, but torch is built without CUDA",
            "install a build of torch with CUDA, if its GPU is to be used",
        )
    return fine("accelerator", "none: models compute on the CPU")
