"""The sandbox's sets as records."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from synthbench.data.records import Ranking, Record, ScoredPair, Sentence, Triplet
from synthbench.sandbox.duplicates import duplicates
from synthbench.sandbox.rankings import rankings
from synthbench.sandbox.six_classes import six_classes
from synthbench.sandbox.streams import Scope, pairs, sentences
from synthbench.sandbox.triplets import triplets
from synthbench.sandbox.two_classes import two_classes


def records(name: str, scope: Scope, num_candidates: int) -> Iterator[Record]:
    """Yield the endless records of a set; `num_candidates` matters for rankings only."""
    if name == "rankings":
        return _rankings(scope, num_candidates)
    return _SETS[name](scope)


def _pairs(scope: Scope) -> Iterator[Record]:
    for pair in pairs(scope):
        yield ScoredPair(
            **_shared(scope, pair.sentence1, pair.sentence2),
            subset=pair.register,
            label=pair.relation.value,
            sentence1=pair.sentence1,
            sentence2=pair.sentence2,
            score=pair.score,
        )


def _sentences(scope: Scope) -> Iterator[Record]:
    for text, register, event in sentences(scope):
        yield Sentence(**_shared(scope, text), subset=register, label=event.domain, sentence=text)


def _triplets(scope: Scope) -> Iterator[Record]:
    for each in triplets(scope):
        yield Triplet(
            **_shared(scope, each.anchor, each.positive, each.negative),
            subset=each.register,
            anchor=each.anchor,
            positive=each.positive,
            negative=each.negative,
        )


def _rankings(scope: Scope, num_candidates: int) -> Iterator[Record]:
    for each in rankings(scope, num_candidates):
        yield Ranking(
            **_shared(scope, each.query, *each.candidates),
            subset=each.register,
            query=each.query,
            candidates=each.candidates,
            grades=each.grades,
        )


def _duplicates(scope: Scope) -> Iterator[Record]:
    for pair in duplicates(scope):
        yield ScoredPair(
            **_shared(scope, pair.sentence1, pair.sentence2),
            subset=pair.topic,
            label="duplicate" if pair.is_duplicate else "different",
            sentence1=pair.sentence1,
            sentence2=pair.sentence2,
            score=float(pair.is_duplicate),
        )


def _two_classes(scope: Scope) -> Iterator[Record]:
    for text, register, label in two_classes(scope):
        yield Sentence(**_shared(scope, text), subset=register, label=label, sentence=text)


def _six_classes(scope: Scope) -> Iterator[Record]:
    for text, register, label in six_classes(scope):
        yield Sentence(**_shared(scope, text), subset=register, label=label, sentence=text)


_SETS: Mapping[str, Callable[[Scope], Iterator[Record]]] = {
    "pairs": _pairs,
    "sentences": _sentences,
    "triplets": _triplets,
    "duplicates": _duplicates,
    "two-classes": _two_classes,
    "six-classes": _six_classes,
}


def _shared(scope: Scope, *texts: str) -> dict[str, Any]:
    """Return split, seed and id of a record: equal sentences have one id in every source."""
    digest = hashlib.sha256("\x1f".join(texts).encode()).hexdigest()
    return {"id": f"sandbox/{digest[:16]}", "split": scope.split, "seed": scope.seed}
