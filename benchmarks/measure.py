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
from typing import Any


@dataclass(frozen=True)
class Timing:
    """The median CPU seconds of a variant, and its last call's result."""

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


def print_ratio(timings: Mapping[str, Timing], ours: str, peer: str, goal: float) -> float:
    """Print how much faster `ours` is than `peer`, beside the goal; return the ratio."""
    ratio = timings[peer].seconds / timings[ours].seconds
    verdict = "reached" if ratio >= goal else "MISSED"
    print(
        f"{ours}: {timings[ours].seconds:.2f} s CPU; {peer}: {timings[peer].seconds:.2f} s CPU; "
        f"{ratio:.2f}x, goal {goal:.2f}x {verdict}"
    )
    return ratio


def data_folder() -> Path:
    """Return the folder of real data sets, or exit with a message."""
    folder = os.environ.get("SYNTHBENCH_DATA")
    if not folder:
        sys.exit("set SYNTHBENCH_DATA to a folder with SentEval's STS and SICK folders")
    return Path(folder)
