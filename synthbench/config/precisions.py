"""An experiment's precisions, and whether this machine's device supports them."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime, device_name
from synthbench.config.documents import Document, texts_in
from synthbench.config.problems import Fault

KEY, FP32 = "precision", "fp32"
SECTIONS = ("data", "train")
"""The sections of a row whose plug-ins use models."""


@dataclass(frozen=True)
class GivenPrecision:
    """A key that sets a precision other than fp32, and the key's location."""

    location: str
    key: str
    precision: str


def given_precisions(document: Document) -> Iterator[GivenPrecision]:
    """Yield each key of a row that sets a precision other than fp32."""
    for path, precision in texts_in({key: document.data.get(key) for key in SECTIONS}):
        if path[-1] == KEY and precision != FP32:
            yield GivenPrecision(document.location(path), ".".join(map(str, path)), precision)


def check_precisions(
    precisions: Collection[GivenPrecision], runtime: Runtime, *, may_open_gpu: bool = True
) -> None:
    """Raise UserError with a line for each key whose precision the device does not support.

    Checks nothing for a cluster, whose devices are unknown. Checking a GPU opens it in this process; without
    `may_open_gpu`, stages check their GPU when they run.
    """
    if not precisions or runtime.executor != "local":
        return
    faults = dict.fromkeys(
        Fault(given.location, given.key, obstacle)
        for given in precisions
        if (obstacle := _obstacle(given.precision, runtime, may_open_gpu=may_open_gpu))
    )
    if faults:
        raise UserError(*map(str, faults))


def _obstacle(precision: str, runtime: Runtime, *, may_open_gpu: bool) -> str:
    import torch

    from synthbench.models.precision import obstacle

    if not may_open_gpu and runtime.device.startswith("cuda"):
        return ""
    device = torch.device(device_name(runtime))
    return obstacle(precision, device) if may_open_gpu or device.type != "cuda" else ""
