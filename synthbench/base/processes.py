"""Process set-up: no telemetry, idle waiting, children that end with their parent, cores and memory."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

SECONDS_BETWEEN_LOOKS = 1
SPINS = "1000"
"""How often an idle thread polls before it sleeps; all polls together take microseconds."""
QUOTA = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU quota as Linux writes it: microseconds per period, or "max"."""
MOST_MEMORY, MEMORY_IN_USE = (Path(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
"""A container's memory limit in bytes, or "max", and the bytes in use."""
# HF's libraries and MLflow all understand "true"; MLflow does not understand "1" for DO_NOT_TRACK.
OPT_OUTS = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "true",
    "HF_UPDATE_DOWNLOAD_COUNTS": "false",
}


def disable_telemetry() -> None:
    """Opt out of usage statistics of Hugging Face's libraries and MLflow, by environment variables.

    Variables that the user has set stay. The libraries read the variables at import, so call this before
    importing any of these libraries.
    """
    for name, value in OPT_OUTS.items():
        os.environ.setdefault(name, value)


def wait_idly() -> None:
    """Let idle OpenMP threads sleep soon, unless the user has set OMP_WAIT_POLICY or GOMP_SPINCOUNT.

    By default idle threads spin: they poll for work. Beside other busy processes, a small training by two
    threads took 1.5 to 2.9 times as long by default as with a short spin. On idle cores, the time by default
    was from 10 % longer to 25 % shorter (benchmarks/waiting.py, on two machines). Results do not change.
    GNU's OpenMP, which torch for Linux uses, reads GOMP_SPINCOUNT when torch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


def collect_rarely() -> None:
    """Look for cyclic garbage after every 50,000 new objects instead of 700.

    Imports make hundreds of thousands of objects and hardly any garbage. By default the collector takes a
    tenth of a short command's time, and of the time of a worker's imports (benchmarks/starting.py).
    """
    gc.set_threshold(50_000, *gc.get_threshold()[1:])


def free_memory() -> int:
    """Return the bytes of memory that the system, or a container's limit, leaves to this process."""
    import psutil

    found = [int(psutil.virtual_memory().available)]
    with suppress(OSError, ValueError):  # no container, or one without a limit
        found.append(int(MOST_MEMORY.read_text()) - int(MEMORY_IN_USE.read_text()))
    return max(0, min(found))


def usable_cores() -> int:
    """Return the number of CPU cores that this process may use, at least 1.

    The system may grant fewer cores than the machine has (taskset, Slurm), and a container may have a CPU
    quota. With more threads than usable cores, threads would wait for each other.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    left = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([left, *_quota()]))


def threads_each(num_processes: int) -> int:
    """Return how many threads each of `num_processes` processes gets: at least 1, at most OMP_NUM_THREADS."""
    return max(1, min([usable_cores() // num_processes, *_limit()]))


def _quota() -> Iterator[int]:
    """Yield a container's CPU quota in cores, rounded down, if there is a quota."""
    with suppress(OSError, ValueError):
        quota, period = QUOTA.read_text(encoding="ascii").split()
        if quota != "max":
            yield int(quota) // int(period)


def _limit() -> Iterator[int]:
    """Yield the number in OMP_NUM_THREADS, if set; of a list (for nested loops), the first number."""
    with suppress(ValueError):
        yield int(os.environ.get("OMP_NUM_THREADS", "").partition(",")[0])


def follow_parent(parent: int) -> None:
    """Make this process ignore Ctrl-C, and end it once the parent process with this id has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import psutil

    def watch() -> None:
        try:
            followed = psutil.Process(parent)
            while followed.is_running() and followed.status() != psutil.STATUS_ZOMBIE:
                time.sleep(SECONDS_BETWEEN_LOOKS)
        except psutil.Error:
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def start_child(module: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start one of our modules as a child process whose standard input closes when this process ends.

    The module has to call `when_parent_ends`. Ctrl-C in the terminal does not reach the child.
    """
    # The child imports the same packages as this process.
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109 - "" is the current folder
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )


def end_child(process: "subprocess.Popen[str]", patience_seconds: float) -> None:
    """End a child by SIGTERM, and by SIGKILL if it still runs after `patience_seconds`."""
    process.terminate()
    try:
        process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in filter(None, (process.stdin, process.stdout)):
        stream.close()


def when_parent_ends(end: Callable[[], object]) -> None:
    """Call a function, in a thread, once the parent that called `start_child` is gone."""

    def watch() -> None:
        sys.stdin.read()
        end()

    threading.Thread(target=watch, daemon=True).start()
