"""GPUs by name, with what their data sheets promise: for estimates of machines that are not at hand."""

from collections.abc import Mapping
from dataclasses import dataclass

from synthbench.base.errors import UserError
from synthbench.models.work import Work

REACHED = 0.5
"""The share of a data sheet's rates and bandwidth that is assumed."""
USED_SHARE = 0.9
"""The share of a GPU's memory that a language model and what it keeps may fill."""


@dataclass(frozen=True)
class Gpu:
    """Gigabytes, and per second terabytes and 10^12 operations (without sparsity), by the data sheet."""

    name: str
    memory_gb: float
    terabytes: float
    fp32: float
    tf32: float
    bf16: float

    def seconds(self, work: Work) -> float:
        """Return the seconds of the operations, which must be known, and of reading memory while writing."""
        rates = {"fp32": self.fp32, "tf32": self.tf32}
        computing = (work.operations or 0.0) / (rates.get(work.precision, self.bf16) * 1e12)
        writing = 0.0 if work.writing is None else work.writing.bytes_read(USED_SHARE * self.memory_gb * 1e9)
        return (computing + writing / (self.terabytes * 1e12)) / REACHED


GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        Gpu("h200", 141, 4.8, 67.0, 494.5, 989.5),
        Gpu("h100", 80, 3.35, 67.0, 494.5, 989.5),
        Gpu("a100-80gb", 80, 2.039, 19.5, 156.0, 312.0),
        Gpu("a100-40gb", 40, 1.555, 19.5, 156.0, 312.0),
        Gpu("l40s", 48, 0.864, 91.6, 183.0, 362.0),
        Gpu("a10", 24, 0.6, 31.2, 62.5, 125.0),
        Gpu("l4", 24, 0.3, 30.3, 60.0, 121.0),
    )
}
"""NVIDIA's data sheets; H200, H100 and A100 as SXM."""


def named_gpu(name: str) -> Gpu:
    """Return the GPU; raises UserError with the known names."""
    try:
        return GPUS[name.lower()]
    except KeyError:
        raise UserError(f"--gpu {name}: not known; known: {', '.join(GPUS)}") from None
