"""Pairs that stand in two data sets: what training data must not share with a test set."""

from collections.abc import Iterator, Sequence

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind

STANDS_IN_GOLD = "stands in the gold data"


def pair_key(first: str, second: str) -> tuple[str, str]:
    """Return the same key for both orders of a pair; sentences are equal if their text is, ends stripped."""
    first, second = first.strip(), second.strip()
    return (first, second) if first <= second else (second, first)


def drop_pairs_in(test: SyntheticDataset, gold: Sequence[SyntheticDataset]) -> SyntheticDataset:
    """Return `test` without the pairs that stand in any of the `gold` sets, in either order.

    The number dropped is in the manifest under `STANDS_IN_GOLD`, 0 if none. Whoever trains on STSb drops its
    training and dev pairs this way: it was drawn from the shared tasks of 2012 to 2017, and 1,002 of STS12's
    and 597 of STS13's test pairs stand in its training part.
    """
    known = {key for data in gold for keys in _pairs(data) for key in keys}
    kept = [record for record, keys in zip(test, _pairs(test), strict=True) if known.isdisjoint(keys)]
    dropped = test.manifest.dropped.get(STANDS_IN_GOLD, 0) + len(test) - len(kept)
    return test.with_records(kept, dropped={**test.manifest.dropped, STANDS_IN_GOLD: dropped})


def _pairs(data: SyntheticDataset) -> Iterator[list[tuple[str, str]]]:
    """Yield each record's pairs: the first sentence, or each of several queries, with each of the others."""
    if data.kind == RecordKind.RANKING:
        for each in data:
            yield [pair_key(query, text) for query in each.queries for text in each.candidates]
        return
    for anchor, *others in data.text_rows():
        yield [pair_key(anchor, text) for text in others]
