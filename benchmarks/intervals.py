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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from synthbench.api import RecordKind, ScoredPair, SyntheticDataset, spearman_influence
from synthbench.engine.artifacts import DATASET_FOLDER, Artifacts, write_json
from synthbench.engine.stage import Operation, Stage
from synthbench.engine.store import Store
from synthbench.engine.workspace import Workspace
from synthbench.reporting.files import write_report
from synthbench.reporting.model.analysis import Analysis
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
        result = ExperimentResult(experiment="large", identity="", baseline="row-0", runs=tuple(runs))
        start, cpu = time.perf_counter(), time.process_time()
        noise = item_noise(Analysis(result), lambda score: STS(), Artifacts(store))
        result = result.model_copy(update={"item_noise": tuple(noise)})
        collected = time.perf_counter() - start
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


@dataclass(frozen=True)
class TestSet(Operation):
    """A test set, or a model, by its name."""

    kind: ClassVar[str] = "source"
    component: ClassVar[str] = "simulated"
    version: ClassVar[int] = 1
    name: str

    def config(self) -> Mapping[str, Any]:
        """Return the name."""
        return {"name": self.name}

    def run(self, inputs: Mapping[str, Path], work: Workspace) -> None:
        """Do nothing: `_written` writes the pairs."""


def _test_set(store: Store, name: str) -> Stage:
    """Commit a test set: sentence1 is one of 2,000, some of them far more often, sentence2 occurs once."""
    shares = 1 / np.arange(20, 2_020)
    first = np.random.default_rng(0).choice(2_000, PAIRS, p=shares / shares.sum())
    pairs = [
        ScoredPair(
            id=f"pair-{number:05}",
            sentence1=f"{name} shared {sentence}",
            sentence2=f"{name} own {number}",
            score=0.5,
        )
        for number, sentence in enumerate(first.tolist())
    ]
    stage = Stage(TestSet(name))
    folder = store.workspace(stage.identity) / "output" / DATASET_FOLDER
    folder.mkdir()
    SyntheticDataset.create(RecordKind.SCORED_PAIR, pairs).write(folder)
    store.commit(stage.identity, {"spec": stage.spec})
    return stage


def _written(store: Store, num_tasks: int) -> list[RunResult]:
    """Write the items of all runs; test sets share files, but each is read as if it had its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    generator = np.random.default_rng(0)
    gold = np.round(generator.uniform(0, 5, PAIRS) * 5) / 25
    items = {"id": [f"pair-{number:05}" for number in range(PAIRS)], "subset": [""] * PAIRS, "gold": gold}
    tasks = {f"task-{number}": _test_set(store, f"task-{number}") for number in range(num_tasks)}
    runs = []
    for row in range(VARIANTS):
        for seed in range(RUNS):
            own = store.root / f"items-{row}-{seed}"
            predicted = gold * (1 + row / 100) + generator.normal(size=PAIRS)
            pq.write_table(pa.table({**items, "predicted": predicted}), own)
            model = Stage(TestSet(f"model {row} {seed}"))
            scores = [
                _score(store, name, {"task": task, "model": model}, own) for name, task in tasks.items()
            ]
            runs.append(RunResult(variant=f"row-{row}", seed=seed, identity="", scores=tuple(scores)))
    return runs


def _score(store: Store, task: str, inputs: Mapping[str, Stage], items: Path) -> TaskScores:
    """Commit an evaluation."""
    stage = Stage(Evaluate("sts", STS()), inputs)
    folder = store.workspace(stage.identity) / "output"
    (folder / ITEMS_FILE).hardlink_to(items)
    score = float(np.random.default_rng(int(stage.identity[:8], 16)).normal(0.7, 0.01))
    scores = {"main_score": "spearman_all", "scores": {"spearman_all": score}, "num_items": PAIRS}
    write_json(folder / SCORES_FILE, scores)
    store.commit(stage.identity, {"spec": stage.spec})
    return TaskScores(task=task, evaluator="sts", stage=stage.identity, **scores)


def main() -> int:
    """Run all parts, or one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    parser.add_argument("--only", choices=("ranks", "speed"))
    parser.add_argument("--tasks", type=int, default=TASKS)
    given = parser.parse_args()
    parts: dict[str, Callable[[], bool]] = {
        "ranks": lambda: ranks(given.resamples),
        "speed": lambda: speed(given.tasks),
    }
    met = [part() for name, part in parts.items() if given.only in (None, name)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
