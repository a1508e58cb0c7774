"""Peak memory of AugSBERT's KDE sampler: labelling a million random pairs, and choosing among them.

    python benchmarks/augsbert_memory.py [--pairs 1000000] [--sentences 5000]

Runs both stages, each in a process of its own, and prints the peak memory above that of the loaded libraries.
A stand-in for the cross-encoder scores by a hash, so that the pairs are measured, not the model. Exit code 1
if a goal is missed.
"""

import argparse
import contextlib
import multiprocessing
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from synthbench.base.runtime import Runtime
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind, ScoredPair
from synthbench.engine.workspace import Workspace
from synthbench.stages.asking import NEED, Context
from synthbench.stages.generation import SOURCE, Generate
from synthbench_augsbert import AugSBERT

MOST_MEGABYTES = 400.0
WORDS_OF_A_SENTENCE = 12
CROSS_ENCODER = {"base": {"model": "sandbox/cross-encoder"}}


class Scorer:
    """Scores pairs by a hash; most scores are low, as for random pairs."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return a score for each pair."""
        hashes = (zlib.crc32(f"{first}\x1f{second}".encode()) for first, second in pairs)
        return (np.fromiter(hashes, np.float64, len(pairs)) / 2**32) ** 4


class Quiet:
    """Progress that prints its lines but no bars."""

    @contextlib.contextmanager
    def task(self, description: str, total: int) -> Iterator["Quiet"]:
        """Open nothing."""
        yield self

    def advance(self, amount: int = 1) -> None:
        """Count nothing."""

    def say(self, message: str) -> None:
        """Print a line."""
        print(message, flush=True)


def write_gold(folder: Path, number: int) -> None:
    """Write gold pairs of `number` sentences of made-up words."""
    generator = np.random.default_rng(0)
    words = [f"word{index}" for index in range(5000)]
    sentences = [" ".join(generator.choice(words, WORDS_OF_A_SENTENCE)) for _ in range(number)]
    scores = generator.beta(1.2, 1.2, number // 2)
    records = (
        ScoredPair(sentence1=first, sentence2=second, score=float(score))
        for first, second, score in zip(sentences[::2], sentences[1::2], scores, strict=True)
    )
    (folder / "dataset").mkdir(parents=True)
    SyntheticDataset.create(RecordKind.SCORED_PAIR, records).write(folder / "dataset")


def generate(folder: Path, sampler: str, number: int) -> None:
    """Run the method's stage, and print its time and the peak of its memory."""
    import faiss  # noqa: F401 - loaded before measuring, as are scipy and pyarrow
    import pyarrow.parquet  # noqa: F401
    import scipy.ndimage  # noqa: F401

    work = Workspace(folder / sampler, Runtime(device="cpu", threads=1), Quiet())
    work.output.mkdir(parents=True)
    settings = {"sampler": {"name": sampler, "size": number}, "cross_encoder": CROSS_ENCODER}
    method = AugSBERT.model_validate(settings)
    inputs = {f"{SOURCE}gold": folder / "gold", f"{NEED}labelled": folder / "random" / "output"}
    before, started = _peak(), time.process_time()
    with mock.patch.object(Context, "pair_scorer", lambda context, need: Scorer()):
        Generate("augsbert", method).run(inputs, work)
    used, seconds = _peak() - before, time.process_time() - started
    print(
        f"{sampler}, {number:,} pairs: {used:.0f} MB above {before:.0f} (goal {MOST_MEGABYTES:.0f}), "
        f"{seconds:.0f} s CPU",
        flush=True,
    )
    sys.exit(used > MOST_MEGABYTES)


def _peak() -> float:
    """Return this process's peak memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _in_process(target: Callable[..., None], *arguments: object) -> int:
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode or 0


def main() -> int:
    """Measure labelling, then choosing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--sentences", type=int, default=5000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_gold(folder / "gold", given.sentences)
        missed = [_in_process(generate, folder, sampler, given.pairs) for sampler in ("random", "kde")]
    return max(missed)


if __name__ == "__main__":
    sys.exit(main())
