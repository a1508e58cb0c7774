"""How fast a device multiplies matrices: measured in half a second, then kept in the store."""

import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from synthbench.base.durability import write_atomically
from synthbench.base.processes import threads_each
from synthbench.base.runtime import Runtime
from synthbench.engine.devices import lacks_nvidia
from synthbench.engine.store import Store
from synthbench.estimates.gpus import Gpu
from synthbench.models.work import Work

CPU = "CPU"
SIZE = 512
"""Rows and columns of the matrices; a product takes milliseconds."""
SECONDS = 0.4
SCALING = 0.85
"""n threads are n ** SCALING times as fast as one: they wait for each other and for memory."""


@dataclass(frozen=True)
class Machine:
    """A device, its threads (1 unless a CPU) and its floating-point operations per second."""

    device: str
    threads: int
    rate: float
    is_measured: bool = True
    gpu: Gpu | None = None
    """A GPU that is not here: its data sheet counts in place of a rate."""

    def seconds(self, work: Work, efficiency: float) -> float:
        """Return the seconds of the operations, which must be known, at this share of the rate."""
        if self.gpu is not None:
            return self.gpu.seconds(work)
        return (work.operations or 0.0) / (self.rate * efficiency)

    def with_threads(self, threads: int) -> "Machine":
        """Return the same device with another number of threads."""
        return replace(self, threads=threads, rate=self.rate * (threads / self.threads) ** SCALING)

    @property
    def title(self) -> str:
        """The device and its rate in words."""
        how = "measured" if self.is_measured else "assumed"
        threads = f", {self.threads} thread{'s' if self.threads > 1 else ''}" if self.device == CPU else ""
        return f"{self.device}{threads}, {_rate(self.rate)} {how}"


DATA_CENTRE_GPU = Machine("data-centre GPU", 1, 20e12, is_measured=False)
"""Assumed, well below what such devices promise in fp32 on tensor cores."""


def this_machine(runtime: Runtime, store: Store) -> Machine:
    """Return the device that a run would use here, as measured now or before.

    An existing store keeps the measurement.
    """
    device = _device(runtime)
    threads = runtime.threads or threads_each(1)
    key = json.dumps([platform.node(), platform.processor(), os.cpu_count(), device])
    file = store.root / "machines" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    rate = _kept(file)
    if rate is None:
        rate = _measured(device)
        if store.root.is_dir():
            with suppress(OSError):
                file.parent.mkdir(exist_ok=True)
                write_atomically(file, json.dumps({"operations_per_second": rate}) + "\n")
    return Machine(CPU, 1, rate).with_threads(threads) if device == "cpu" else Machine(device, 1, rate)


def _device(runtime: Runtime) -> str:
    """Return torch's name of the device; loads torch, which takes seconds, only if there may be a GPU."""
    if runtime.device == "cpu" or (runtime.device == "auto" and sys.platform == "linux" and lacks_nvidia()):
        return "cpu"
    from synthbench.base.runtime import device_name

    return device_name(runtime)


def _kept(file: Path) -> float | None:
    try:
        rate = float(json.loads(file.read_text(encoding="utf-8"))["operations_per_second"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return rate if rate > 0 else None


@cache
def _measured(device: str) -> float:
    if device == "cpu":
        # CPU time, since other programs would make the machine look slow.
        return _best_rate(_numpy_product(), time.process_time)
    return _best_rate(_torch_product(device), time.perf_counter)


def _best_rate(multiply: Callable[[], None], clock: Callable[[], float]) -> float:
    multiply()
    end, best = time.perf_counter() + SECONDS, float("inf")
    while time.perf_counter() < end:
        started = clock()
        multiply()
        best = min(best, clock() - started)
    return 2.0 * SIZE**3 / max(best, 1e-9)


def _numpy_product() -> Callable[[], None]:
    """Return a product on one thread, as several would wait for other programs."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    matrix = np.ones((SIZE, SIZE), dtype=np.float32)

    def multiply() -> None:
        with threadpool_limits(1):
            matrix @ matrix

    return multiply


def _torch_product(device: str) -> Callable[[], None]:
    import torch

    matrix = torch.ones((SIZE, SIZE), device=device)

    def multiply() -> None:
        # Reading a number waits for the device.
        (matrix @ matrix)[0, 0].item()

    return multiply


def _rate(rate: float) -> str:
    return f"{rate / 1e12:,.1f} TFLOP/s" if rate >= 1e12 else f"{rate / 1e9:,.0f} GFLOP/s"
