"""The time until `--jobs` processes have imported what stages need.

    python benchmarks/starting.py

Prints wall-clock and CPU seconds for 1, 2 and 4 processes that import by themselves ("spawn"), and for those
of `--jobs`, which are forked from one process with all imports. The first of these pays for the imports.
"""

import importlib
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor

import psutil

from synthbench.engine.workers import PRELOADED, worker_context


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its descendants."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return float(sum(each.user + each.system + each.children_user + each.children_system for each in times))


def main() -> None:
    """Start spawned and forked processes, and print their times."""
    for name, context in (("spawn", multiprocessing.get_context("spawn")), ("--jobs", worker_context())):
        for number in (1, 2, 4):
            cpu, started = cpu_seconds(), time.perf_counter()
            pools = [ProcessPoolExecutor(1, context) for _ in range(number)]
            for imported in [pool.submit(_import) for pool in pools]:
                imported.result()
            seconds = time.perf_counter() - started
            print(f"{name:8} {number} processes: {seconds:5.1f} s, {cpu_seconds() - cpu:5.1f} s of CPU")
            for pool in pools:
                pool.shutdown()


def _import() -> None:
    importlib.import_module(PRELOADED)


if __name__ == "__main__":
    main()
