"""Near-duplicates in bounded memory and time: MinHash finds candidates, their exact similarity decides.

Sentences that share a band of their sketches share a bucket. Sentences of one template share most buckets, so
comparing all of them would take n^2 pairs. Therefore a bucket holds at most `MOST_IN_BUCKET` sentences, and a
sentence is compared with at most `MOST_COMPARED` bucket neighbours, those that share most buckets first.
Which sentences a full bucket keeps depends on their texts, or on the caller's ranks, never on their order.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from synthbench.data.checking import fingerprint
from synthbench.data.likeness import NEAR, shingles, similarity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rensa import RMinHash

NUM_PERMUTATIONS = 128
NUM_BANDS, MORE_BANDS = 32, 64
"""With four values per band, sentences at a similarity of 0.8 share a bucket except once in 10^7 pairs. At
0.5, the lowest threshold, four values would miss 1 pair in 8, and two values miss 1 in 10^8."""
SEED = 1
MOST_IN_BUCKET = 128
MOST_COMPARED = 64
MOST_UNBOUNDED, LARGEST_UNBOUNDED = 50_000, 512
"""Limits of rensa's index: known sentences, at 6 kB each, and the size of its largest bucket."""
CELLS = 4_000_000
"""Candidates in memory at once."""
AT_ONCE = 4_096
_MIX = 0x9E3779B97F4A7C15


class NearDuplicates:
    """Finds near-duplicates among known sentences."""

    def __init__(self, bare_texts: Sequence[str], threshold: float = NEAR) -> None:
        self._texts = bare_texts
        self._threshold = threshold
        keys = band_keys(bare_texts, threshold)
        is_small = len(bare_texts) <= MOST_UNBOUNDED and _largest_bucket(keys) <= LARGEST_UNBOUNDED
        index = _SmallIndex if is_small else _BoundedIndex
        self._candidates = index(bare_texts, keys, threshold).candidates

    def find(self, bare_texts: Sequence[str]) -> Iterator[tuple[int, ...]]:
        """Yield, for each text, the indices of the known sentences at least as similar as the threshold."""
        for text, numbers in zip(bare_texts, self._candidates(bare_texts), strict=True):
            similar = (each for each in numbers if similarity(text, self._texts[each]) >= self._threshold)
            yield tuple(sorted(similar))


class _SmallIndex:
    """Rensa's index, for known sentences with small buckets."""

    def __init__(self, bare_texts: Sequence[str], keys: "NDArray[np.uint32]", threshold: float) -> None:
        from rensa import RMinHashLSH

        self._index = RMinHashLSH(threshold, NUM_PERMUTATIONS, keys.shape[1])
        self._index.insert_many(_sketches(bare_texts))

    def candidates(self, bare_texts: Sequence[str]) -> Iterator[Sequence[int]]:
        """Yield, for each text, the indices of the known sentences that share a bucket with it."""
        for start in range(0, len(bare_texts), AT_ONCE // 4):
            yield from self._index.query_all(_sketches(bare_texts[start : start + AT_ONCE // 4]))


class _BoundedIndex:
    """Index of each band's sorted keys; a bucket keeps the members whose texts have the smallest hashes."""

    def __init__(self, bare_texts: Sequence[str], keys: "NDArray[np.uint32]", threshold: float) -> None:
        import numpy as np

        self._threshold = threshold
        hashes = np.fromiter(map(fingerprint, bare_texts), np.uint64, len(bare_texts))
        ranks = np.argsort(hashes, kind="stable")
        self._numbers = ranks.astype(np.uint32)
        self._bands: list[tuple[NDArray[np.uint32], NDArray[np.uint32]]] = []
        for column in keys.T:
            ranked = column[ranks]
            order = np.argsort(ranked, kind="stable").astype(np.uint32)
            self._bands.append((ranked[order], order))

    def candidates(self, bare_texts: Sequence[str]) -> Iterator[Sequence[int]]:
        """Yield, for each text, the indices of the known sentences to compare it with."""
        size = max(1, CELLS // (MOST_IN_BUCKET * len(self._bands)))
        for start in range(0, len(bare_texts), size):
            some = bare_texts[start : start + size]
            yield from self._of_keys(band_keys(some, self._threshold))

    def _of_keys(self, keys: "NDArray[np.uint32]") -> "Iterator[Sequence[int]]":
        import numpy as np

        members = [self._members(band, column) for band, column in zip(self._bands, keys.T, strict=True)]
        # Each query's members are sorted by themselves, which is several times faster than all at once.
        nobody = np.full((len(keys), 1), len(self._numbers), np.uint32)
        found = np.sort(np.concatenate([*members, nobody], axis=1), axis=1)
        is_first = np.ones(found.shape, bool)
        np.not_equal(found[:, 1:], found[:, :-1], out=is_first[:, 1:])
        firsts = np.flatnonzero(is_first)
        shared = np.diff(firsts, append=found.size).astype(np.uint64)
        ordered = (np.uint64(len(self._bands)) - shared) << np.uint64(32) | found.ravel()[firsts]
        start = 0
        for end in np.cumsum(is_first.sum(axis=1)).tolist():
            nearest = np.sort(ordered[start : end - 1])[:MOST_COMPARED].astype(np.uint32)
            yield self._numbers[nearest].tolist()
            start = end

    def _members(
        self, band: "tuple[NDArray[np.uint32], NDArray[np.uint32]]", keys: "NDArray[np.uint32]"
    ) -> "NDArray[np.uint32]":
        """Return the lowest ranks in each key's bucket, a row per key, padded with len(self._numbers)."""
        import numpy as np

        known, order = band
        first = np.searchsorted(known, keys, side="left")
        number = np.searchsorted(known, keys, side="right") - first
        places = np.arange(min(number.max(), MOST_IN_BUCKET))
        members = order.take(first[:, None] + places, mode="clip")
        members[places >= number[:, None]] = len(self._numbers)
        return members


class Buckets:
    """Buckets of rows; the candidates of a row are among the rows added so far.

    `keys` come from `band_keys`, shape (rows, bands). The array is overwritten with bucket numbers; 0 for a
    bucket of a single row, which has no candidates.
    """

    def __init__(self, keys: "NDArray[np.uint32]") -> None:
        import numpy as np

        sizes = [np.zeros(1, np.uint32)]
        last = 0
        for band in range(keys.shape[1]):
            _, numbers, counts = np.unique(keys[:, band], return_inverse=True, return_counts=True)
            is_shared = counts > 1
            names = np.where(is_shared, last + np.cumsum(is_shared), 0).astype(np.uint32)
            keys[:, band] = names[numbers]
            sizes.append(np.minimum(counts[is_shared], MOST_IN_BUCKET).astype(np.uint32))
            last += int(is_shared.sum())
        capacity = np.concatenate(sizes)
        self._rows = keys
        self._ends = np.cumsum(capacity, dtype=np.uint32)
        self._next = self._ends - capacity
        self._starts = self._next.copy()
        self._members = np.empty(int(self._ends[-1]), np.uint32)

    def has_company(self) -> "NDArray[np.bool_]":
        """Return, for each row, whether another row shares a bucket with it; shape (rows,)."""
        import numpy as np

        return np.asarray(self._rows.any(axis=1))

    def number_of_candidates(self, row: int) -> int:
        """Return the number of rows added to `row`'s buckets; rows in several of them count several times."""
        mine = self._rows[row]
        return int((self._next[mine] - self._starts[mine]).sum())

    def candidates(self, row: int) -> list[int]:
        """Return the rows to compare `row` with: those that share most buckets first, ties by row number."""
        import numpy as np

        mine = self._rows[row]
        starts, ends = self._starts[mine], self._next[mine]
        some = [self._members[start:end] for start, end in zip(starts, ends, strict=True) if end > start]
        if not some:
            return []
        known, shared = np.unique(np.concatenate(some), return_counts=True)
        nearest: list[int] = known[np.argsort(-shared, kind="stable")[:MOST_COMPARED]].tolist()
        return nearest

    def add(self, row: int) -> None:
        """Add a row to each of its buckets that is not full."""
        mine = self._rows[row]
        places = self._next[mine]
        has_room = places < self._ends[mine]
        self._members[places[has_room]] = row
        self._next[mine[has_room]] += 1


def num_bands(threshold: float) -> int:
    """Return the number of bands into which a sketch is divided for a similarity threshold."""
    return NUM_BANDS if threshold >= NEAR else MORE_BANDS


def band_keys(bare_texts: Sequence[str], threshold: float) -> "NDArray[np.uint32]":
    """Return the bucket keys, shape (texts, bands): equal keys in a column share a bucket."""
    import numpy as np

    number = num_bands(threshold)
    width = NUM_PERMUTATIONS // number
    factors = np.array([_MIX * (2 * place + 1) & (2**64 - 1) for place in range(width)], np.uint64)
    keys = np.empty((len(bare_texts), number), np.uint32)
    for start in range(0, len(bare_texts), AT_ONCE):
        some = _digests(bare_texts[start : start + AT_ONCE]).reshape(-1, number, width)
        mixed = (some * factors).sum(axis=2, dtype=np.uint64)
        keys[start : start + len(some)] = _folded(mixed)
    return keys


def _folded(numbers: "NDArray[np.uint64]") -> "NDArray[np.uint32]":
    import numpy as np

    mixed = (numbers ^ numbers >> np.uint64(29)) * np.uint64(_MIX)
    high: NDArray[np.uint32] = (mixed >> np.uint64(32)).astype(np.uint32)
    return high


def _digests(bare_texts: Sequence[str]) -> "NDArray[np.uint64]":
    """Return the MinHash sketches, shape (texts, permutations)."""
    import numpy as np
    from rensa import RMinHash

    rows = RMinHash.digests_from_token_sets(map(shingles, bare_texts), NUM_PERMUTATIONS, SEED)
    values = np.fromiter(chain.from_iterable(rows), np.uint64, len(bare_texts) * NUM_PERMUTATIONS)
    return values.reshape(-1, NUM_PERMUTATIONS)


def _sketches(bare_texts: Sequence[str]) -> "list[RMinHash]":
    from rensa import RMinHash

    made: list[RMinHash] = RMinHash.from_token_sets(map(shingles, bare_texts), NUM_PERMUTATIONS, SEED)
    return made


def _largest_bucket(keys: "NDArray[np.uint32]") -> int:
    import numpy as np

    largest = (np.unique(column, return_counts=True)[1].max(initial=0) for column in keys.T)
    return int(max(largest, default=0))
