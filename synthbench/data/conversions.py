"""Conversions between record kinds, so that every method can feed every trainer.

The manifest notes the conversion. Records that could not be converted count as dropped. A new record has the
subset, split and provenance of its original, whose id becomes its `source_id`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from synthbench.base.errors import UserError
from synthbench.base.frozen import Constant
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import Pair, Ranking, Record, RecordKind, ScoredPair, Sentence, Triplet

INHERITED = ("split", "subset", "label", "method", "generator", "instruction", "seed")


@dataclass(frozen=True)
class Thresholds:
    """Score thresholds: at least `high` makes a positive, at most `low` a hard negative; both in [0, 1].

    The defaults are the highest and the lowest of DINO's smoothed labels 0.9, 0.5, 0.1. Random negatives (0)
    and the top grade of a human scale (1) meet them, too.
    """

    high: float = 0.9
    low: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 <= self.low < self.high <= 1.0:
            raise UserError(
                f"thresholds: low {self.low}, high {self.high}; they must satisfy 0 <= low < high <= 1"
            )


def thresholds(*names: str) -> dict[str, Constant]:
    """Return the named defaults of `Thresholds` as constants; changing one changes stage identities."""
    frozen = {"high": 0.9, "low": 0.1}
    return {f"thresholds.{name}": Constant(getattr(Thresholds, name), frozen[name]) for name in names}


def convert(
    dataset: SyntheticDataset,
    kind: RecordKind,
    *,
    high: float = Thresholds.high,
    low: float = Thresholds.low,
    repeats: bool = False,
) -> SyntheticDataset:
    """Return the data set, failures kept, as records of another kind; unchanged if it has that kind.

    `high` and `low` (in [0, 1]) matter only where scores decide, see `Thresholds`. With `repeats`, sentences
    are kept as often as they occur (only for `kind` sentence).

    Raises UserError if no such conversion exists, or if no record meets the thresholds.
    """
    bounds = Thresholds(high, low)
    if kind == dataset.kind:
        return dataset
    obstacle = why_impossible(dataset.kind, kind)
    if obstacle:
        raise UserError(obstacle)
    if repeats and kind == RecordKind.SENTENCE:
        outcome = all_sentences(dataset)
    else:
        outcome = CONVERSIONS[dataset.kind][kind](tuple(dataset), bounds)
    if len(dataset) and not outcome.records:
        needed = outcome.note.partition("; lost")[0]
        raise UserError(
            f"no {kind} can be made of these {len(dataset)} {dataset.kind} records: needed are {needed}"
        )
    dropped = Counter(dataset.manifest.dropped)
    dropped.update({f"to {kind}: {reason}": count for reason, count in outcome.dropped.items() if count})
    note = f"converted from {dataset.kind} to {kind}: {outcome.note}"
    return dataset.with_records(
        outcome.records, kind=kind, dropped=dict(dropped), notes=[*dataset.manifest.notes, note]
    )


@dataclass(frozen=True)
class Conversion:
    """A conversion's records, a note on what was lost, and the dropped records by reason."""

    records: Sequence[Record]
    note: str
    dropped: dict[str, int]


_Conversion = Callable[[Sequence[Any], Thresholds], Conversion]
_LOST = "lost: which sentences belong together, scores and labels"


def _inherited(record: Record, suffix: str) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in INHERITED}
    return values | {"id": f"{record.id}/{suffix}", "source_id": record.id}


def _triplets_to_scored_pairs(triplets: Sequence[Triplet], _: Thresholds) -> Conversion:
    def pairs() -> Iterator[ScoredPair]:
        for one in triplets:
            for name, sentence in list(zip(one.text_names(), one.texts(), strict=True))[1:]:
                score = float(name == "positive")
                yield ScoredPair(
                    sentence1=one.anchor, sentence2=sentence, score=score, **_inherited(one, name)
                )

    lost = "a teacher's scores" if any(one.scores for one in triplets) else ""
    note = f"positives score 1, negatives 0; {f'lost: {lost}' if lost else 'nothing lost'}"
    return Conversion(tuple(pairs()), note, {})


def _pairs_to_scored_pairs(pairs: Sequence[Pair], _: Thresholds) -> Conversion:
    records = [
        ScoredPair(
            sentence1=pair.anchor, sentence2=pair.positive, score=1.0, **_inherited(pair, "scored_pair")
        )
        for pair in pairs
    ]
    lost = "lost: likelihoods" if any(pair.likelihood for pair in pairs) else "nothing lost"
    return Conversion(records, f"each scores 1; {lost}", {})


def _triplets_to_pairs(triplets: Sequence[Triplet], _: Thresholds) -> Conversion:
    records = [
        Pair(anchor=one.anchor, positive=one.positive, **_inherited(one, "positive")) for one in triplets
    ]
    return Conversion(records, "lost: the negatives", {})


def _to_sentences(records: Sequence[Record], _: Thresholds) -> Conversion:
    return distinct_sentences(records)


def distinct_sentences(records: Iterable[Record]) -> Conversion:
    """Return each distinct sentence once, with the split and provenance of its first record."""
    found: dict[str, Sentence] = {}
    num_texts = 0
    for record in records:
        for name, text in zip(record.text_names(), record.texts(), strict=True):
            if text not in found:
                found[text] = _sentence(record, name, text)
            num_texts += 1
    note = f"each distinct sentence once; {_LOST}"
    return Conversion(tuple(found.values()), note, {"repeated sentence": num_texts - len(found)})


def all_sentences(records: Iterable[Record]) -> Conversion:
    """Return each sentence as often as it occurs, with the split and provenance of its record."""
    found = (
        _sentence(record, name, text)
        for record in records
        for name, text in zip(record.text_names(), record.texts(), strict=True)
    )
    return Conversion(tuple(found), f"each sentence as often as it occurs; {_LOST}", {})


def _sentence(record: Record, name: str, text: str) -> Sentence:
    return Sentence(sentence=text, **_inherited(record, name) | {"label": ""})


def _rankings_to_scored_pairs(rankings: Sequence[Ranking], _: Thresholds) -> Conversion:
    records = [
        ScoredPair(sentence1=one.query, sentence2=text, score=grade, **_inherited(one, name))
        for one in rankings
        for name, text, grade in zip(one.candidate_names(), one.candidates, one.grades, strict=True)
    ]
    note = "the query with each candidate, whose grade is the score; lost: that a query is one item of a test"
    num_further = sum(len(one.further_queries) for one in rankings)
    note += f", and {num_further} further queries" if num_further else ""
    return Conversion(records, note, {})


def _by_way_of_scored_pairs(kind: RecordKind) -> _Conversion:
    """Return a conversion from rankings to `kind` in two steps, by way of scored pairs."""

    def convert_rankings(rankings: Sequence[Ranking], thresholds: Thresholds) -> Conversion:
        pairs = _rankings_to_scored_pairs(rankings, thresholds)
        outcome = CONVERSIONS[RecordKind.SCORED_PAIR][kind](pairs.records, thresholds)
        rankings_of = {pair.id: pair.source_id for pair in pairs.records}
        records = tuple(replace(one, source_id=rankings_of[one.source_id]) for one in outcome.records)
        return Conversion(records, f"{outcome.note}; before: {pairs.note}", outcome.dropped)

    return convert_rankings


def _scored_pairs_to_pairs(pairs: Sequence[ScoredPair], thresholds: Thresholds) -> Conversion:
    records = [
        Pair(anchor=pair.sentence1, positive=pair.sentence2, **_inherited(pair, "positive"))
        for pair in pairs
        if pair.score >= thresholds.high
    ]
    note = f"pairs of score >= {thresholds.high}; lost: the scores and all other pairs"
    return Conversion(records, note, {"below the threshold": len(pairs) - len(records)})


def _scored_pairs_to_triplets(pairs: Sequence[ScoredPair], thresholds: Thresholds) -> Conversion:
    """Join the n-th best positive of a sentence1 with its n-th hardest negative, within one split.

    The order of the records does not matter: ids break ties of scores.
    """
    positives: dict[tuple[str, str], list[ScoredPair]] = defaultdict(list)
    negatives: dict[tuple[str, str], list[ScoredPair]] = defaultdict(list)
    for pair in pairs:
        if pair.score >= thresholds.high:
            positives[pair.split, pair.sentence1].append(pair)
        elif pair.score <= thresholds.low:
            negatives[pair.split, pair.sentence1].append(pair)
    records = [
        Triplet(
            anchor=positive.sentence1,
            positive=positive.sentence2,
            negative=negative.sentence2,
            **_inherited(positive, negative.id),
        )
        for key in sorted(positives.keys() & negatives.keys())
        for positive, negative in zip(_ranked(positives[key]), _ranked(negatives[key]), strict=False)
    ]
    num_outer = sum(len(group) for groups in (positives, negatives) for group in groups.values())
    note = (
        f"positives of score >= {thresholds.high} joined with hard negatives of score <= {thresholds.low} "
        "of the same sentence1; lost: the scores and the pairs without a partner; "
        "a triplet's provenance is its positive's, its id ends in the negative's id"
    )
    dropped = {
        "between the thresholds": len(pairs) - num_outer,
        "without a partner": num_outer - 2 * len(records),
    }
    return Conversion(records, note, dropped)


def _ranked(pairs: Iterable[ScoredPair]) -> list[ScoredPair]:
    return sorted(pairs, key=lambda pair: (-pair.score, pair.id))


CONVERSIONS: dict[RecordKind, dict[RecordKind, _Conversion]] = {
    RecordKind.TRIPLET: {
        RecordKind.SCORED_PAIR: _triplets_to_scored_pairs,
        RecordKind.PAIR: _triplets_to_pairs,
        RecordKind.SENTENCE: _to_sentences,
    },
    RecordKind.PAIR: {
        RecordKind.SCORED_PAIR: _pairs_to_scored_pairs,
        RecordKind.SENTENCE: _to_sentences,
    },
    RecordKind.SCORED_PAIR: {
        RecordKind.TRIPLET: _scored_pairs_to_triplets,
        RecordKind.PAIR: _scored_pairs_to_pairs,
        RecordKind.SENTENCE: _to_sentences,
    },
    RecordKind.RETRIEVAL: {RecordKind.SENTENCE: _to_sentences},
    RecordKind.RANKING: {
        RecordKind.SCORED_PAIR: _rankings_to_scored_pairs,
        RecordKind.TRIPLET: _by_way_of_scored_pairs(RecordKind.TRIPLET),
        RecordKind.PAIR: _by_way_of_scored_pairs(RecordKind.PAIR),
        RecordKind.SENTENCE: _to_sentences,
    },
}


def why_impossible(have: RecordKind, want: RecordKind) -> str:
    """Return why records of one kind can't become records of another, or "" if they can."""
    if want == have or want in CONVERSIONS.get(have, {}):
        return ""
    possible = ", ".join(CONVERSIONS.get(have, {}))
    reason = f"they can become {possible}" if possible else "they can't become anything else"
    if have == RecordKind.SENTENCE:
        reason = "a sentence has no partner; let a method make pairs or triplets of the sentences"
    if (have, want) == (RecordKind.PAIR, RecordKind.TRIPLET):
        reason = f"a pair has no negative; let a method make triplets ({reason})"
    return f"{have} records can't become {want}: {reason}"
