"""BM25 neighbours of every sentence: CPU seconds of one thread, beside rank-bm25's loop and bm25s.

    python benchmarks/bm25.py [--sizes 60000 100000 300000] [--rounds 1]

Sentences are those of STSb and SICK (for 30,000, also of MRPC and MR) if SYNTHBENCH_DATA names a folder with
so many; else generated with word frequencies proportional to 1 / rank, as in English. bm25s is left out
unless installed: pip install bm25s numba. Its scores are of another BM25 variant, so only rank-bm25's are
compared. Memory is what the search allocates beside the index. Exit code 1 if a goal is missed or a score
differs.
"""

import argparse
import importlib.util
import logging
import os
import random
import tracemalloc
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"))

import numpy as np
from measure import exit_with, interleave, optional_data_folder
from rank_bm25 import BM25Okapi

from synthbench.bm25.index import BM25Index
from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench.words.scripts import words_between_spaces as tokens

if TYPE_CHECKING:
    from collections.abc import Callable

K = 5
SIZES = 1_000, 10_000, 30_000
RANK_BM25_GOALS = {1_000: 60, 10_000: 200, 30_000: 400}
"""Number of sentences -> goal from there on."""
BM25S_GOAL = 1.0  # at most this multiple of bm25s' seconds
LARGEST_DIFFERENCE, MOST_MEMORY_MB = 1e-9, 400
FEW = ("STSb", "train"), ("SICK-R", "train")
MANY = *FEW, ("STSb", "test"), ("SICK-R", "test"), ("MRPC-all", "test"), ("MR", "test")


def real_sentences(data: Path, number: int) -> list[str]:
    """Return `number` distinct sentences of STSb and SICK; if these are too few, also of MRPC and MR."""
    for tasks in (FEW, MANY):
        sources = (TaskSource.model_validate({"task": task, "split": split}) for task, split in tasks)
        found = list(
            dict.fromkeys(text for source in sources for text in source.load(Roots(data=data)).texts)
        )
        if len(found) >= number:
            break
    random.Random(0).shuffle(found)
    return found[:number] if len(found) >= number else made_sentences(number)


def made_sentences(number: int) -> list[str]:
    """Return distinct sentences of 5 to 20 words out of 20,000."""
    generator = random.Random(0)
    words = [f"word{rank}" for rank in range(20_000)]
    shares = list(accumulate(1 / rank for rank in range(1, len(words) + 1)))
    made: dict[str, None] = {}
    while len(made) < number:
        length = generator.randint(5, 20)
        made[" ".join(generator.choices(words, cum_weights=shares, k=length))] = None
    return list(made)


def ask(okapi: BM25Okapi, sentences: list[str], queries: range) -> None:
    """Do the work of a loop over rank-bm25: all scores, then the best K and the sentence itself."""
    for query in queries:
        np.argsort(okapi.get_scores(tokens(sentences[query])))[::-1][: K + 1]


def bm25s_search(sentences: list[str]) -> Any:  # noqa: ANN401 - bm25s is untyped
    """Return each sentence's best K and itself, by bm25s with numba on one thread."""
    from bm25s import BM25
    from bm25s.tokenization import Tokenized

    vocabulary: dict[str, int] = {}
    words = [
        [vocabulary.setdefault(word, len(vocabulary)) for word in tokens(sentence)] for sentence in sentences
    ]
    corpus = Tokenized(ids=words, vocab=vocabulary)
    index = BM25(method="robertson", backend="numba")
    index.index(corpus, show_progress=False)
    return index.retrieve(corpus, k=K + 1, show_progress=False, n_threads=1)


def has_bm25s() -> bool:
    """Compile bm25s' functions, untimed; return False, with a line, if it is not installed."""
    if importlib.util.find_spec("bm25s") is None or importlib.util.find_spec("numba") is None:
        print("bm25s is left out: pip install bm25s numba")
        return False
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    bm25s_search(made_sentences(100))
    return True


def num_timed(number: int) -> int:
    """Return how many queries rank-bm25 answers: its time is scaled to all."""
    return max(5, min(200, 500_000 // number))


def searched(okapi: BM25Okapi, sentences: list[str]) -> tuple[float, float]:
    """Return the largest difference of any score from rank-bm25's, and the MB that a search allocates.

    Compares all scores of the timed queries, and those of their neighbours at each rank.
    """
    index, queries = BM25Index(sentences), range(num_timed(len(sentences)))
    tracemalloc.start()
    nearest = index.nearest(K)[1][: len(queries)]
    memory = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    expected = np.array([okapi.get_scores(tokens(sentences[query])) for query in queries])
    of_all = np.abs(index.scores(0, len(queries)) - expected).max()
    expected[queries, queries] = -np.inf
    best = -np.sort(-expected, axis=1)[:, :K]
    return float(max(of_all, np.abs(nearest - best).max())), memory


def compare(sentences: list[str], rounds: int, *, beside_bm25s: bool) -> bool:
    """Print the figures of one size; return whether the goals are met."""
    number = len(sentences)
    corpus = [tokens(sentence) for sentence in sentences]
    okapi, queries = BM25Okapi(corpus), range(num_timed(number))
    variants: dict[str, Callable[[], Any]] = {
        "ours": lambda: BM25Index(sentences).nearest(K),
        "indexing": lambda: BM25Okapi(corpus),
        "queries": lambda: ask(okapi, sentences, queries),
    }
    if beside_bm25s:
        variants["bm25s"] = lambda: bm25s_search(sentences)
    seconds = {name: timing.seconds for name, timing in interleave(variants, rounds).items()}
    peer = seconds["indexing"] + seconds["queries"] * number / len(queries)
    ratio = peer / seconds["ours"]
    goal = RANK_BM25_GOALS[max(size for size in RANK_BM25_GOALS if size <= max(number, SIZES[0]))]
    difference, memory = searched(okapi, sentences)
    print(
        f"n = {number:6,}  rank-bm25 {peer:8.2f} s "
        f"({len(queries)} queries timed and scaled)  synthbench {seconds['ours']:6.3f} s  "
        f"{ratio:5.0f}x (goal {goal}x)  largest score difference {difference:.1e}; {memory:.0f} MB"
    )
    share = seconds["ours"] / seconds.get("bm25s", np.inf)
    if beside_bm25s:
        print(f"            bm25s {seconds['bm25s']:.3f} s; ours takes {share:.2f}x (goal {BM25S_GOAL}x)")
    met = ratio >= goal and share <= BM25S_GOAL
    return met and difference <= LARGEST_DIFFERENCE and memory <= MOST_MEMORY_MB


def main() -> int:
    """Compare at each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    data = optional_data_folder()
    print(f"top {K} of every sentence, indexing included, CPU seconds of one thread, median; ", end="")
    print("real sentences" if data else "made sentences")
    beside_bm25s = has_bm25s()
    met = []
    for number in given.sizes:
        sentences = real_sentences(data, number) if data else made_sentences(number)
        met.append(compare(sentences, given.rounds, beside_bm25s=beside_bm25s))
    return 0 if all(met) else 1


if __name__ == "__main__":
    exit_with(main)
