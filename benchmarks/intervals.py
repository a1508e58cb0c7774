"""Standard errors of ranks against bootstraps, and the speed of the largest report.

    python benchmarks/intervals.py [--resamples 600] [--only ranks|speed] [--tasks 12]

`ranks` compares influence functions with bootstraps that compute ranks again; `speed` takes 50 variants x 10
seeds x 12 tasks x 5,000 pairs from files to the whole report: tables, comparisons, figures, page. Exit code 1
if a goal is missed. Coverage and type 1 errors: `shared_sentences.py` and `seeds.py`.
"""

import argparse
import math
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from synthbench.api import spearman_influence
from synthbench.config.experiment import Variant
from synthbench.engine.artifacts import write_json
from synthbench.engine.plan import PlannedRun
from synthbench.engine.stage import Stage
from synthbench.engine.store import Store
from synthbench.reporting.files import write_report
from synthbench.reporting.results import ExperimentResult, RunResult, TaskScores
from synthbench.results.item_noise import item_noise
from synthbench.stages.evaluation import ITEMS_FILE, SCORES_FILE, Evaluate
from synthbench_sts import STS

Array = NDArray[np.float64]
RESAMPLES = 600
VARIANTS, RUNS, TASKS, PAIRS = 50, 10, 12, 5_000
SECONDS, MEGABYTES = 60, 2_000


def ranks(number: int) -> bool:
    """Print standard errors of a correlation and a difference: influence, fixed ranks, new ranks."""
    generator = np.random.default_rng(0)
    for num_pairs in (400, 1_379, PAIRS):
        gold = np.round(generator.uniform(0, 5, num_pairs) * 5) / 25
        shared = generator.normal(size=num_pairs)
        models = [
            quality * gold * 3 + 0.5 * shared + 0.6 * generator.normal(size=num_pairs) for quality in (1, 1.1)
        ]
        influences = np.stack([spearman_influence(gold, each) for each in models])
        fixed = np.stack([_fixed_rank_influence(gold, each) for each in models])
        again = np.array([_ranked_anew(gold, models, generator) for _ in range(number)])
        for name, kind in (("influence", influences), ("fixed ranks", fixed)):
            one = kind[0].std() / math.sqrt(num_pairs) / again[:, 0].std()
            two = (kind[0] - kind[1]).std() / math.sqrt(num_pairs) / (again[:, 0] - again[:, 1]).std()
            print(
                f"{num_pairs:5} pairs, {name}: {one:.3f} of the standard error ranked anew of a score,"
                f" {two:.3f} of a difference"
            )
    print(
        f"(a standard error from {number:,} resamples is itself known to {100 / math.sqrt(2 * number):.1f} %)"
    )
    return True


def _ranked_anew(gold: Array, models: Sequence[Array], generator: np.random.Generator) -> list[float]:
    drawn = generator.integers(0, len(gold), len(gold))
    return [spearmanr(gold[drawn], each[drawn]).statistic for each in models]


def _fixed_rank_influence(gold: Array, predicted: Array) -> Array:
    """Return the influences on Pearson's correlation of the ranks, as if the ranks were fixed."""
    from scipy.stats import rankdata

    first, second = ((rank - rank.mean()) / rank.std() for rank in map(rankdata, (gold, predicted)))
    return np.asarray(first * second - (first * second).mean() * (first**2 + second**2) / 2)


def speed(num_tasks: int) -> bool:
    """Print the time of the largest report from all runs' files; return whether the goal is met."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        runs = _written(store, num_tasks)
        start, cpu = time.perf_counter(), time.process_time()
        noise = tuple(item_noise(runs, lambda variant: True, store))
        collected = time.perf_counter() - start
        result = ExperimentResult(
            experiment="large",
            identity="",
            baseline="row-0",
            runs=tuple(_result(run) for run in runs),
            item_noise=noise,
        )
        files = write_report(result, Path(folder) / "report")
        written = sum(file.stat().st_size for file in files)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{VARIANTS} variants x {RUNS} seeds x {num_tasks} tasks x {PAIRS:,} pairs: {wall:.1f} s wall,"
        f" {cpu:.1f} s CPU, {collected:.1f} s wall for the files of the items; {megabytes:,.0f} MB at most;"
        f" {len(result.model_dump_json()) / 1e6:.1f} MB result, {written / 1e6:.1f} MB in {len(files)} files"
    )
    return wall <= SECONDS and megabytes <= MEGABYTES


def _written(store: Store, num_tasks: int) -> list[PlannedRun]:
    """Write the items of all runs; test sets share files, but each is read as if it had its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    gold = np.round(generator.uniform(0, 5, PAIRS) * 5) / 25
    items = {"id": [f"pair-{number:05}" for number in range(PAIRS)], "subset": [""] * PAIRS, "gold": gold}
    operation = Evaluate("sts", STS())
    runs = []
    for row in range(VARIANTS):
        for seed in range(RUNS):
            own = store.root / f"items-{row}-{seed}"
            predicted = gold * (1 + row / 100) + generator.normal(size=PAIRS)
            pq.write_table(pa.table({**items, "predicted": predicted}), own)
            stages = {}
            for task in range(num_tasks):
                stage = Stage(operation, {f"{row} {seed} {task}": Stage(operation)})
                target = store.folder(stage.identity)
                target.mkdir(parents=True)
                (target / ITEMS_FILE).hardlink_to(own)
                write_json(target / SCORES_FILE, {"scores": {"spearman_all": generator.normal(0.7, 0.01)}})
                stages[f"task-{task}"] = stage
            runs.append(PlannedRun(Variant(f"row-{row}", {}, (), {}), seed, {}, (), None, stages, {}))
    return runs


def _result(run: PlannedRun) -> RunResult:
    generator = np.random.default_rng(run.seed)
    scores = tuple(
        TaskScores(
            task=task,
            evaluator="sts",
            main_score="spearman_all",
            scores={"spearman_all": float(generator.normal(0.7, 0.01))},
            num_items=PAIRS,
            stage="",
        )
        for task in run.evaluations
    )
    return RunResult(variant=run.variant.name, seed=run.seed, identity="", scores=scores)


def main() -> int:
    """Run all parts, or one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    parser.add_argument("--only", choices=("ranks", "speed"))
    parser.add_argument("--tasks", type=int, default=TASKS)
    given = parser.parse_args()
    parts = {
        "ranks": lambda: ranks(given.resamples),
        "speed": lambda: speed(given.tasks),
    }
    met = [part() for name, part in parts.items() if given.only in (None, name)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
