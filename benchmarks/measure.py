"""A fair clock for a busy machine: CPU seconds of one thread, alternating variants, ratios instead of times.

CPU seconds of one thread repeat within a few per cent whatever else runs; wall seconds do not.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import psutil

from synthbench.base.errors import UserError


@dataclass(frozen=True)
class Timing:
    """The median seconds of a variant (of the CPU; with a GPU, of the clock), and its last call's result."""

    seconds: float
    result: Any


def one_thread() -> None:
    """Limit torch to one thread; numpy's libraries obey OMP_NUM_THREADS=1 at start-up."""
    import torch

    torch.set_num_threads(1)


def interleave(variants: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Timing]:
    """Call the variants alternately, `rounds` times; return each one's median CPU seconds and result."""
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, call in variants.items():
            start = time.process_time()
            results[name] = call()
            seconds[name].append(time.process_time() - start)
    return {name: Timing(statistics.median(seconds[name]), results[name]) for name in variants}


def wall_times(variants: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Timing]:
    """Call the variants alternately and return each one's median wall seconds, including the GPU's work."""
    import torch

    seconds: dict[str, list[float]] = {name: [] for name in variants}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for name, call in variants.items():
            start = time.perf_counter()
            results[name] = call()
            torch.cuda.synchronize()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(statistics.median(seconds[name]), results[name]) for name in variants}


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its descendants."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in times))


def print_ratio(timings: Mapping[str, Timing], ours: str, peer: str, goal: float) -> float:
    """Print how much faster `ours` is than `peer`, beside the goal; return the ratio."""
    ratio = timings[peer].seconds / timings[ours].seconds
    verdict = "reached" if ratio >= goal else "MISSED"
    print(
        f"{ours}: {timings[ours].seconds:.2f} s; {peer}: {timings[peer].seconds:.2f} s; "
        f"{ratio:.2f}x, goal {goal:.2f}x {verdict}"
    )
    return ratio


def data_folder() -> Path:
    """Return the folder of real data sets; raise UserError without one."""
    folder = optional_data_folder()
    if folder is None:
        raise UserError("SYNTHBENCH_DATA is not set; it must name the folder of the real data sets")
    return folder


def optional_data_folder() -> Path | None:
    """Return the folder of real data sets if SYNTHBENCH_DATA names one."""
    folder = os.environ.get("SYNTHBENCH_DATA")
    if folder and not Path(folder).is_dir():
        raise UserError(f"SYNTHBENCH_DATA: {folder} is not a folder")
    return Path(folder) if folder else None


def exit_with(main: Callable[[], int | None]) -> NoReturn:
    """Exit with what `main` returns; print wrong input or a missing file as one line, with exit code 2."""
    try:
        sys.exit(main())
    except UserError as error:
        message = str(error)
    except (FileNotFoundError, NotADirectoryError) as error:
        message = f"{error.filename}: {error.strerror}"
    print(message, file=sys.stderr)
    sys.exit(2)
