"""Leases this machine's GPUs to the processes that run stages; each process sees only its own."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synthbench.base.errors import UserError
from synthbench.base.runtime import Runtime
from synthbench.engine.stage import Stage

VISIBLE = "CUDA_VISIBLE_DEVICES"
"""CUDA reads this variable once, when a process first uses it."""
PARTS = 10_000
"""Parts per GPU: the unit of GPU shares, as in Ray."""
_NVIDIA = Path("/proc/driver/nvidia")


@dataclass(frozen=True)
class GPULease:
    """The names of a job's GPUs (perhaps none), and the job's share of each, in 1/`PARTS` of a GPU."""

    names: tuple[str, ...] = ()
    parts: int = 0


class Devices:
    """The GPUs `names`, and the free parts of each.

    `gpus_of` returns how many GPUs a stage takes; stages that read sources take none.
    """

    def __init__(self, names: Sequence[str], gpus_of: Callable[[Stage], float]) -> None:
        self._free = dict.fromkeys(names, PARTS)
        self._gpus_of = gpus_of
        self._known: dict[str, float] = {}

    def check(self, stages: Iterable[Stage], num_jobs: int) -> None:
        """Raise UserError if a stage takes more GPUs than exist, or if `num_jobs` jobs need more at once.

        The second check assumes that each job runs the GPU stage that takes the fewest GPUs, so jobs may
        still wait for a GPU.
        """
        taken = {stage: gpus for stage in stages if (gpus := self.gpus(stage))}
        number = len(self._free)
        have = f"{number} GPU{'s' * (number > 1)}"
        wrong = {(stage.kind, gpus): stage for stage, gpus in taken.items() if not side_by_side(number, gpus)}
        if wrong:
            raise UserError(
                *(
                    f"{kind} takes {gpus:g} GPUs, and this machine has {have}; state at most {number} in"
                    f" {source_of_gpus(stage)}"
                    for (kind, gpus), stage in wrong.items()
                )
            )
        if not taken:
            return
        least = min(taken, key=lambda stage: taken[stage])
        most = side_by_side(number, taken[least])
        if num_jobs > most:
            share = max(1, int(100 / -(-num_jobs // number))) / 100
            raise UserError(
                f"--jobs {num_jobs}: this machine has {have} and {least.kind} takes {taken[least]:g}, so at"
                f" most {most} run side by side; use --jobs {most}, or let stages share a GPU:"
                f" runtime.resources.{least.kind}.gpus {share:g}"
            )

    def gpus(self, stage: Stage) -> float:
        """Return how many GPUs, or which share of one, a stage takes."""
        if stage.identity not in self._known:
            self._known[stage.identity] = 0.0 if stage.operation.comes_first else self._gpus_of(stage)
        return self._known[stage.identity]

    def fits(self, stage: Stage) -> bool:
        """Return whether the GPUs that the stage takes are free now."""
        number, parts = _parts(self.gpus(stage))
        return sum(free >= parts for free in self._free.values()) >= number

    def lease(self, stage: Stage, idle: Collection[tuple[str, ...]] = ()) -> GPULease:
        """Lease GPUs to a stage that `fits`: the freest, and among equals those that an idle process sees."""
        number, parts = _parts(self.gpus(stage))
        names = tuple(sorted(self._free, key=lambda name: -self._free[name])[:number])
        most = sorted(self._free[name] for name in names)
        for seen in idle:
            if sorted(self._free[name] for name in seen) == most:
                names = seen
                break
        for name in names:
            self._free[name] -= parts
        return GPULease(names, parts)

    def give_back(self, lease: GPULease) -> None:
        """Release a lease."""
        for name in lease.names:
            self._free[name] += lease.parts


def source_of_gpus(stage: Stage) -> str:
    """Return the experiment key that sets how many GPUs the stage takes."""
    return f"runtime.resources.{stage.kind}.gpus" if stage.operation.num_devices == 1 else "train.devices"


def side_by_side(num_devices: int, gpus: float) -> int:
    """Return how many stages that take `gpus` (above 0) each fit on the devices at once."""
    number, parts = _parts(gpus)
    return num_devices // number if parts == PARTS else num_devices * (PARTS // parts)


def with_leased(runtime: Runtime, gpus: float) -> Runtime:
    """Return the runtime of a process that sees only its leased GPUs: on the CPU if it leases none.

    A device such as cuda:1 becomes cuda, since the process numbers its own GPUs from 0.
    """
    if not gpus:
        return runtime.model_copy(update={"device": "cpu"})
    return runtime.model_copy(update={"device": "cuda"}) if runtime.device.startswith("cuda") else runtime


def lacks_nvidia() -> bool:
    """Return True if this machine certainly has no NVIDIA GPU; does not import torch."""
    return sys.platform == "darwin" or (sys.platform == "linux" and not _NVIDIA.exists())


def local_gpus(device: str) -> tuple[str, ...]:
    """Return the GPUs that a run on `device` may use, named as in `CUDA_VISIBLE_DEVICES`.

    These are the variable's entries (numbers or UUIDs), if set. () for devices other than auto and cuda.
    """
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cuda") or lacks_nvidia():
        return ()
    import torch

    return visible(os.environ.get(VISIBLE), torch.cuda.device_count(), number)


def visible(variable: str | None, count: int, number: str = "") -> tuple[str, ...]:
    """Return the names of the `count` GPUs that CUDA sees, or only of the one with index `number`.

    Names are the entries of `variable` (`CUDA_VISIBLE_DEVICES`), or 0, 1, ... if it is None.
    """
    listed = [str(each) for each in range(count)] if variable is None else variable.split(",")
    names = tuple(name.strip() for name in listed[:count])
    return tuple(name for index, name in enumerate(names) if number in ("", str(index)))


def _parts(gpus: float) -> tuple[int, int]:
    """Return how many devices `gpus` takes, and how many parts of each."""
    if not gpus:
        return 0, 0
    return (int(gpus), PARTS) if gpus >= 1 else (1, max(1, int(gpus * PARTS)))
