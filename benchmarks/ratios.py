"""Ratios of the hot paths with their peers, on this machine, in at most 15 minutes.

    python benchmarks/ratios.py [--minutes 15]

Runs the benchmarks that stand beside a peer one after another, with less data and fewer rounds than for the
recorded figures, each on one thread in a process of its own. Prints what they print, then a line for each.
One that takes more than its share of the time left is stopped. Those that need SYNTHBENCH_DATA are left out
without it. Exit code 1 if a benchmark missed a goal, failed or was stopped.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from measure import optional_data_folder

FOLDER = Path(__file__).parent
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
MOST_OF_A_SHARE = 1.5
"""A benchmark may take so many times the even share of the time left."""


@dataclass(frozen=True)
class Part:
    """A benchmark, its arguments, and whether it needs the folder of real data."""

    script: str
    arguments: tuple[str, ...] = ()
    needs_data: bool = False

    @property
    def title(self) -> str:
        """The command line without Python."""
        return " ".join((self.script, *self.arguments))


PARTS = (
    Part("bm25.py", ("--sizes", "1000", "10000", "--rounds", "3")),
    Part("sts.py", ("--sample", "0.05"), needs_data=True),
    Part("silver.py", ("--sentences", "200"), needs_data=True),
    Part("training.py", ("--steps", "8", "--rounds", "2")),
    Part("simcse.py", ("--steps", "3", "--rounds", "1")),
    Part("training_memory.py", ("--steps", "20", "--rounds", "1")),
    Part("starting.py"),
    Part("chat.py", ("--requests", "1000", "--sentences", "20000")),
    Part("store_requests.py", ("--others", "200")),
    Part("scheduler.py"),
    Part("dino.py", ("--x1", "24", "--samples", "2", "--peer-x1", "1", "--rounds", "1")),
)


def run(part: Part, seconds: float) -> str:
    """Run one benchmark, print its output as it comes, and return what became of it."""
    command = [sys.executable, str(FOLDER / part.script), *part.arguments]
    print(f"\n== {part.title}", flush=True)
    with TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            code = subprocess.run(
                command, env={**os.environ, **ONE_THREAD}, stderr=errors, timeout=seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return f"stopped after {seconds:.0f} s"
        errors.seek(0)
        said = errors.read()
    if code == 0:
        return "goals reached"
    # A missed goal and an exception end with the same exit code.
    if code == 1 and "Traceback" not in said:
        return "a goal MISSED"
    last = said.rstrip().rpartition("\n")[2]
    return f"failed with exit code {code}: {last}"


def machine() -> str:
    """Return the machine's processor, cores, load and libraries."""
    import torch

    models = []
    if (table := Path("/proc/cpuinfo")).exists():  # Linux
        lines = table.read_text(encoding="utf-8").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    capability = torch.backends.cpu.get_cpu_capability()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    name = models[0] if models else platform.processor()
    return f"{name} ({capability}), {os.cpu_count()} cores, load {load}; torch {torch.__version__}"


def main() -> int:
    """Run all parts and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    given = parser.parse_args()
    print(machine(), flush=True)
    begun = time.monotonic()
    parts = [part for part in PARTS if optional_data_folder() or not part.needs_data]
    found = []
    for number, part in enumerate(parts):
        left, started = given.minutes * 60 - (time.monotonic() - begun), time.monotonic()
        limit = min(1, MOST_OF_A_SHARE / (len(parts) - number)) * left
        found.append((part, run(part, limit), time.monotonic() - started))
    print(f"\n{machine()}")
    for part, outcome, seconds in found:
        print(f"{part.title}: {outcome}, {seconds:.0f} s")
    print(f"{(time.monotonic() - begun) / 60:.1f} minutes")
    return int(any(outcome != "goals reached" for _, outcome, _ in found))


if __name__ == "__main__":
    sys.exit(main())
