"""The cost of a run in which nothing changed: CPU seconds for an experiment of 50 variants x 5 seeds.

    python benchmarks/cached_run.py [--home FOLDER]

The first run computes and tracks 250 tiny trainings, which takes minutes; `--home` keeps them for later. Then
each command runs three times, in a process of its own; the median is printed.
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from hub_cache import tiny_bert
from small_experiment import write_pairs

COMMANDS = {
    "help": ("--help",),
    "validate": ("validate", "cached.yaml"),
    "plan": ("plan", "cached.yaml"),
    "run": ("run", "cached.yaml"),
}
ROUNDS = 3
NUM_VARIANTS, NUM_SEEDS = 50, 5
HEAD = """\
experiment: cached
sources:
  gold: {file: gold.tsv, kind: scored_pair}
  dev: {file: dev.tsv, kind: scored_pair, split: dev}
  test: {file: test.tsv, kind: scored_pair, split: test}
  other: {file: other.tsv, kind: scored_pair, split: test}
seeds: [SEEDS]
defaults:
  data:
    gold: {source: gold}
  train:
    trainer: bi-encoder
    base: {model: bert, static: true, static_dimension: 16}
    batch_size: 8
    max_steps: 2
    evaluations: 1
    selection: {evaluator: sts, sources: [dev]}
  evaluate:
    sts: {evaluator: sts, tasks: [test, other], exclude: [gold]}
baseline: gold-only
runtime: {device: cpu, threads: 1}
variants:
"""


def write_experiment(folder: Path) -> None:
    """Write the experiment, its data and its base model."""
    folder.mkdir(parents=True)
    draw = random.Random(0)
    for name, size in (("gold", 60), ("dev", 30), ("test", 200), ("other", 200)):
        write_pairs(folder / f"{name}.tsv", draw, size)
    (folder / "bert").mkdir()
    tiny_bert(folder / "bert")
    variants = (f"  rate-{row}: {{train.learning_rate: {row / 1000:.3f}}}" for row in range(1, NUM_VARIANTS))
    head = HEAD.replace("SEEDS", ", ".join(map(str, range(NUM_SEEDS))))
    (folder / "cached.yaml").write_text(head + "\n".join(variants) + "\n", encoding="utf-8")


def cpu_seconds(folder: Path, *arguments: str) -> float:
    """Return the CPU seconds of one command in a process of its own."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [Path(sys.executable).with_name("synthbench"), *arguments],
        cwd=folder,
        env={**os.environ, "SYNTHBENCH_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Print the CPU seconds of each command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", type=Path, help="folder of the experiment and its store")
    with tempfile.TemporaryDirectory() as temporary:
        folder = parser.parse_args().home or Path(temporary) / "cached"
        if not folder.exists():
            write_experiment(folder)
        cpu_seconds(folder, *COMMANDS["run"])
        for name, arguments in COMMANDS.items():
            seconds = statistics.median(cpu_seconds(folder, *arguments) for _ in range(ROUNDS))
            print(f"{name}: {seconds:.2f} s CPU")


if __name__ == "__main__":
    main()
