"""Items to judge: the sentences of each record, with the method's intended label."""

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind

MOST_DISTINCT_SCORES = 8
SCORE_EDGES = (0.25, 0.5, 0.9)
SCORE_BINS = ("0 to 0.25", "0.25 to 0.5", "0.5 to 0.9", "0.9 to 1")
WITHOUT_INTENTION = "all"


@dataclass(frozen=True, slots=True)
class Item:
    """One sentence, or a pair to compare.

    `intended` is the method's label, a column of the confusion table; `id` does not reveal this label.
    `score` is the intended score in [0, 1], or None.
    """

    id: str
    texts: tuple[str, ...]
    intended: str
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a data set.

    `intentions` are the intended labels in the order of the confusion table's columns; `text_names` name the
    texts of an item, such as "sentence1".
    """

    items: Sequence[Item]
    intentions: tuple[str, ...]
    text_names: tuple[str, ...]

    def sample(self, size: int | None, seed: int) -> "Items":
        """Return `size` random items (None: all) in random order.

        Raises UserError if there are fewer than `size`.
        """
        size = len(self.items) if size is None else size
        if size > len(self.items):
            raise UserError(
                f"the sample of {size} is larger than the data set: it has {len(self.items)} records to judge"
            )
        drawn = Random(f"audit/{seed}").sample(self.items, size)
        return Items(drawn, self.intentions, self.text_names)

    def sample_of_each(self, size: int | None, seed: int) -> "Items":
        """Return at most `size` random items of each intended label (None: all), in random order."""
        shuffled = self.sample(None, seed)
        if size is None:
            return shuffled
        seen: Counter[str] = Counter()
        kept = []
        for item in shuffled.items:
            seen[item.intended] += 1
            if seen[item.intended] <= size:
                kept.append(item)
        return Items(kept, self.intentions, self.text_names)


def items_of(dataset: SyntheticDataset) -> Items:
    """Return the items to judge.

    A scored pair's intended label is its score, or the score's bin of `SCORE_BINS` if the data set has more
    than 8 distinct scores. A pair gives one item. A triplet gives two items: its positive and its negative,
    each with the anchor. A ranking gives one item for each candidate, with the query; the candidate's grade
    is the score. Sentences have no intended label. Raises UserError for other kinds and for data sets
    without records.
    """
    makers: dict[RecordKind, Callable[[SyntheticDataset], Items]] = {
        RecordKind.SCORED_PAIR: _of_scored_pairs,
        RecordKind.PAIR: lambda pairs: _beside_anchor(pairs, ("positive",)),
        RecordKind.TRIPLET: lambda triplets: _beside_anchor(triplets, ("positive", "negative")),
        RecordKind.RANKING: _of_rankings,
        RecordKind.SENTENCE: _of_sentences,
    }
    if dataset.kind not in makers:
        raise UserError(f"{dataset.kind} records can't be audited; those that can: {', '.join(makers)}")
    if not len(dataset):
        raise UserError("the data set has no records to be audited")
    return makers[dataset.kind](dataset)


def _of_scored_pairs(dataset: SyntheticDataset) -> Items:
    return _scored((pair, "", (pair.sentence1, pair.sentence2), pair.score) for pair in dataset)


def _of_rankings(dataset: SyntheticDataset) -> Items:
    return _scored(
        (ranking, str(position), (ranking.query, candidate), grade)
        for ranking in dataset
        for position, (candidate, grade) in enumerate(zip(ranking.candidates, ranking.grades, strict=True))
    )


def _scored(given: Iterable[tuple[Any, str, tuple[str, ...], float]]) -> Items:
    """Return an item for each (record, part, texts, score); the score or its bin is the intended label.

    `part` distinguishes the items of one record.
    """
    found = list(given)
    names = tuple(f"{score:g}" for score in sorted({score for *_, score in found}))
    is_few = len(set(names)) <= MOST_DISTINCT_SCORES
    items = [
        _item(record, part, texts, f"{score:g}" if is_few else _bin(score), score)
        for record, part, texts, score in found
    ]
    columns = {item.intended for item in items}
    ordered = tuple(name for name in dict.fromkeys(names if is_few else SCORE_BINS) if name in columns)
    return Items(items, ordered, ("sentence1", "sentence2"))


def _bin(score: float) -> str:
    return SCORE_BINS[bisect_right(SCORE_EDGES, score)]


def _beside_anchor(dataset: SyntheticDataset, columns: tuple[str, ...]) -> Items:
    items = [
        _item(record, column, (record.anchor, getattr(record, column)), column)
        for record in dataset
        for column in columns
    ]
    return Items(items, columns, ("sentence1", "sentence2"))


def _of_sentences(dataset: SyntheticDataset) -> Items:
    items = [_item(record, "", (record.sentence,), WITHOUT_INTENTION) for record in dataset]
    return Items(items, (WITHOUT_INTENTION,), ("sentence",))


def _item(
    record: Any,  # noqa: ANN401 - a record of any kind
    part: str,
    texts: tuple[str, ...],
    intended: str,
    score: float | None = None,
) -> Item:
    """Return an item with an opaque, non-numeric id: a hash of record id, part and texts."""
    content = "\x1f".join((record.id, part, *texts))
    return Item(f"q{hashlib.sha256(content.encode()).hexdigest()[:15]}", texts, intended, score)
