"""What starting costs: commands and workers beside bare imports, and `--jobs` beside processes of their own.

    python benchmarks/starting.py

`validate` and `plan` of the quickstart, and a worker's imports, stand beside two processes that do nothing
but import: every module that the command has loaded at its end, and those of them that are not ours. Then
wall and CPU seconds of 1, 2 and 4 processes that import by themselves ("spawn"), and of those of `--jobs`,
which are forked from one process with all imports. The first of these pays for the imports. Exit code 1 if a
goal is missed.

CPU seconds grow by two thirds or more where no bytecode lies beside the libraries (docs/installing.md).
"""

import importlib
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import cpu_seconds

from synthbench.engine.workers import PRELOADED, worker_context

ROOT = Path(__file__).parents[1]
ROUNDS = 3
COMMAND = """\
import sys
from synthbench.cli.main import main
sys.argv = ["synthbench", *sys.argv[2:]]
main()
"""
WORKER = f"import sys, {PRELOADED}\n"
LIST = """\
import atexit, sys
file = open(sys.argv[1], "w")
atexit.register(lambda: file.write(" ".join(sys.modules)))
"""
"""Writes the names of all modules that are loaded at the end, in the order of their imports."""
IMPORT = """\
import importlib, sys
for name in open(sys.argv[1]).read().split():
    try:
        importlib.import_module(name)
    except Exception:
        pass  # modules that others made under a name of their own
"""
STARTS = {
    "validate": (COMMAND, ("validate", "experiments/quickstart.yaml"), 1.2),
    "plan": (COMMAND, ("plan", "experiments/quickstart.yaml"), 1.5),
    "worker": (WORKER, (), 1.2),
}
"""Name -> code, arguments, and the goal: at most this many times the imports of the same modules."""


def child_seconds(code: str, *arguments: str) -> float:
    """Return the CPU seconds of a Python process that runs the code in the project's folder."""
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{arguments}: exit code {child.returncode}")
    return used.ru_utime + used.ru_stime


def beside_imports(folder: Path) -> bool:
    """Print each start beside the imports of the modules that it loads; return whether the goals are met."""
    met = True
    for name, (code, arguments, goal) in STARTS.items():
        everything, foreign = folder / f"{name}.all", folder / f"{name}.foreign"
        child_seconds(LIST + code, str(everything), *arguments)
        loaded = everything.read_text().split()
        foreign.write_text(" ".join(each for each in loaded if not each.startswith("synthbench")))
        calls = {
            "start": (code, str(foreign), *arguments),
            "all": (IMPORT, str(everything)),
            "foreign": (IMPORT, str(foreign)),
        }
        seconds: dict[str, list[float]] = {each: [] for each in calls}
        for _ in range(ROUNDS):
            for each, call in calls.items():
                seconds[each].append(child_seconds(*call))
        start, all_, others = (statistics.median(seconds[each]) for each in calls)
        verdict = "reached" if start <= goal * all_ else "MISSED"
        met &= start <= goal * all_
        print(
            f"{name}: {start:.2f} s of CPU, {len(loaded):,} modules; their imports alone {all_:.2f} s, "
            f"{start / all_:.2f}x, goal at most {goal:.2f}x {verdict}; those of other packages alone "
            f"{others:.2f} s, {start / others:.2f}x",
            flush=True,
        )
    return met


def jobs() -> None:
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
    with TemporaryDirectory() as scratch:
        is_met = beside_imports(Path(scratch))
    jobs()
    sys.exit(0 if is_met else 1)
