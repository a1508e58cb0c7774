"""BM25 neighbours of every sentence against rank-bm25's loop, in CPU seconds of one thread.

    python benchmarks/bm25.py

The sentences are STSb's and SICK's if SYNTHBENCH_DATA names a folder with them, else made from a vocabulary
in which, as in English, the r-th word has a share proportional to 1/r. Exit code 1 if a goal is missed.
"""

import os
import random
import sys
from itertools import accumulate
from pathlib import Path

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import numpy as np
from measure import interleave
from rank_bm25 import BM25Okapi

from synthbench.sources.description import Roots
from synthbench.sources.models import TaskSource
from synthbench_augsbert.bm25 import BM25Index, tokens

K = 5
GOALS = {1_000: 60, 10_000: 200}
ROUNDS = 5
TIMED_QUERIES = {1_000: 200, 10_000: 50}
LARGEST_DIFFERENCE = 1e-9


def real_sentences(data: Path) -> list[str]:
    """Return the distinct sentences of STSb train and SICK train."""
    sources = TaskSource(task="STSb", split="train"), TaskSource(task="SICK-R", split="train")
    return list(dict.fromkeys(text for source in sources for text in source.load(Roots(data=data)).texts))


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
    """Do what a loop over rank-bm25 does: all scores, then the best K and the sentence itself."""
    for query in queries:
        np.argsort(okapi.get_scores(tokens(sentences[query])))[::-1][: K + 1]


def largest_difference(sentences: list[str]) -> float:
    """Return the greatest difference of any score to rank-bm25's, over the timed queries."""
    okapi, index = BM25Okapi([tokens(sentence) for sentence in sentences]), BM25Index(sentences)
    queries = range(TIMED_QUERIES[len(sentences)])
    expected = np.array([okapi.get_scores(tokens(sentences[query])) for query in queries])
    return float(np.abs(index.scores(0, len(queries)) - expected).max())


def compare(sentences: list[str]) -> bool:
    """Print one line of figures; return whether the goals are met."""
    number = len(sentences)
    corpus = [tokens(sentence) for sentence in sentences]
    okapi, queries = BM25Okapi(corpus), range(TIMED_QUERIES[number])
    variants = {
        "ours": lambda: BM25Index(sentences).nearest(K),
        "indexing": lambda: BM25Okapi(corpus),
        "queries": lambda: ask(okapi, sentences, queries),
    }
    seconds = {name: timing.seconds for name, timing in interleave(variants, ROUNDS).items()}
    peer = seconds["indexing"] + seconds["queries"] * number / len(queries)
    ratio = peer / seconds["ours"]
    difference = largest_difference(sentences)
    print(
        f"n = {number:6,}  rank-bm25 {peer:8.2f} s "
        f"({TIMED_QUERIES[number]} queries timed and scaled)  synthbench {seconds['ours']:6.3f} s  "
        f"{ratio:5.0f}x (goal {GOALS[number]}x)  largest score difference {difference:.1e}"
    )
    return ratio >= GOALS[number] and difference <= LARGEST_DIFFERENCE


def main() -> int:
    """Compare at each size."""
    data = os.environ.get("SYNTHBENCH_DATA")
    sentences = real_sentences(Path(data)) if data else made_sentences(max(GOALS))
    random.Random(0).shuffle(sentences)
    print(f"top {K} of every sentence, indexing included, CPU seconds of one thread, median; ", end="")
    print("STSb and SICK sentences" if data else "made sentences")
    met = [compare(sentences[:number]) for number in GOALS]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
