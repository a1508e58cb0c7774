"""Run the tests as other machines would: `python tests/machines.py [--numeric | --surroundings]`.

Numeric tests (generation, training, models, statistics, golden outputs) run on other instruction sets and
with one and two threads, so that no tolerance is this machine's. The other tests run once as another user
than root, with a home and a SYNTHBENCH_HOME that hold a space, and without bytecode.
"""

import argparse
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
NUMERIC = (
    "tests/generation",
    "tests/training",
    "tests/models",
    "tests/evaluators",
    "tests/statistics",
    "tests/contract/test_golden_outputs.py",
)
INSTRUCTION_SETS: tuple[Mapping[str, str], ...] = (
    {"ATEN_CPU_CAPABILITY": "default"},
    {"ATEN_CPU_CAPABILITY": "avx2"},
    {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    {"MKL_CBWR": "COMPATIBLE"},
)
THREADS = ("1", "2")
OTHER_USER = "nobody"


def main() -> int:
    """Run the requested tests, and return the number of failed runs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    only = parser.add_mutually_exclusive_group()
    only.add_argument(
        "--numeric", action="store_true", help="only the numeric tests, on other instruction sets"
    )
    only.add_argument("--surroundings", action="store_true", help="only the rest, as another user")
    asked = parser.parse_args()
    failed: list[str] = []
    if not asked.surroundings:
        failed += numeric()
    if not asked.numeric:
        failed += surroundings()
    print(f"failed: {', '.join(failed) or 'none'}")
    return len(failed)


def numeric() -> list[str]:
    """Run the numeric tests on each instruction set with each number of threads; return those that failed."""
    failed = []
    for machine in INSTRUCTION_SETS:
        for threads in THREADS:
            name = " ".join(
                f"{key}={value}" for key, value in {**machine, "OMP_NUM_THREADS": threads}.items()
            )
            environment = {**os.environ, **machine, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
            print(f"== {name}", flush=True)
            workers = str(max(1, (os.cpu_count() or 1) // int(threads)))
            if _pytest(["-n", workers, *NUMERIC], environment):
                failed.append(name)
    return failed


def surroundings() -> list[str]:
    """Run all other tests with spaces in the names of folder, home and store; return the failures."""
    print("== another user, spaces in paths, no bytecode", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="synth bench "))
    try:
        home = folder / "a home"
        home.mkdir()
        environment = {
            **os.environ,
            "HOME": str(home),
            "TMPDIR": str(home),
            "SYNTHBENCH_HOME": str(home / "synth bench"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": str(ROOT),
        }
        ignored = [f"--ignore={path}" for path in NUMERIC]
        user: dict[str, object] = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam(OTHER_USER)
            for path in (folder, home):
                os.chown(path, account.pw_uid, account.pw_gid)
            user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        arguments = ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "-p", "no:cacheprovider", *ignored]
        return ["another user"] if _pytest(arguments, environment, user) else []
    except PermissionError as error:
        print(
            f"{OTHER_USER} can't run {error.filename}: the interpreter must lie where every user reaches it"
        )
        return ["another user"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pytest(
    arguments: Sequence[str], environment: Mapping[str, str], user: Mapping[str, object] | None = None
) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not experiments", *arguments]
    environment = {**environment, "TOKENIZERS_PARALLELISM": "false"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, **(user or {})).returncode  # type: ignore[call-overload]


if __name__ == "__main__":
    sys.exit(main())
