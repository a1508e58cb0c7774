"""Where models compute, and with how many threads."""

from typing import TYPE_CHECKING

from synthbench.errors import UserError

if TYPE_CHECKING:
    from synthbench.runtime import Runtime


def device_name(runtime: "Runtime") -> str:
    """Return torch's name of the device; "auto" takes cuda, else mps, else cpu.

    Raises UserError if the device does not exist here.
    """
    import torch

    if runtime.device == "auto":
        accelerator = torch.accelerator.current_accelerator(check_available=True)
        return accelerator.type if accelerator is not None else "cpu"
    try:
        torch.empty(0, device=runtime.device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"device '{runtime.device}' can't be used: {reason}") from error
    return runtime.device


def use_threads(runtime: "Runtime") -> None:
    """Let torch use as many CPU threads in this process as the runtime says."""
    if runtime.threads is not None:
        import torch

        torch.set_num_threads(runtime.threads)
