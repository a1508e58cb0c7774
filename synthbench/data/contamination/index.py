"""The sentences of test sets, and what finds them in other texts."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from synthbench.data.likeness import NEAR, NearDuplicates, bare, directions, grams

if TYPE_CHECKING:
    from synthbench.data.likeness import Encode

Row = tuple[str, ...]
SIMILAR = 0.95
_AT_ONCE = 512
"""Sentences whose cosines with all test sentences are in memory together."""


class Check(StrEnum):
    """How a test sentence is recognised; what the first finds, the second does, that the third and fourth."""

    EXACT = "exact"
    NORMALISED = "normalised"
    GRAMS = "13-gram"
    NEAR = "near-duplicate"
    EMBEDDING = "embedding"


class Finder(Protocol):
    """Finds test sentences in texts."""

    def find(self, texts: Sequence[str]) -> Iterator[Collection[int]]:
        """Yield for each text the numbers of the test sentences that stand in it."""


class TestIndex:
    """Distinct test sentences, numbered, of test sets each of whose items is a row of sentences.

    The checks are: equal but for white space at the ends; equal without case, punctuation and white space; a
    common 13-gram of words, or the whole sentence where it is shorter; a Jaccard similarity of 5-grams of
    characters of at least `near`, found by MinHash; and, with `encode`, a cosine of at least `similar`.
    Of the first four only those in `checks` are prepared.
    """

    __test__ = False

    def __init__(
        self,
        tests: Mapping[str, Iterable[Row]],
        *,
        checks: Collection[Check] = (Check.EXACT, Check.NORMALISED, Check.GRAMS, Check.NEAR),
        near: float = NEAR,
        encode: "Encode | None" = None,
        similar: float = SIMILAR,
    ) -> None:
        numbers: dict[str, int] = {}
        self.items = {
            name: tuple(tuple(numbers.setdefault(text.strip(), len(numbers)) for text in row) for row in rows)
            for name, rows in tests.items()
        }
        self.sentences = tuple(numbers)
        self.sets_of = self._sets_of()
        bare_sentences = [bare(text) for text in self.sentences]
        makers: dict[Check, Callable[[], Finder]] = {
            Check.EXACT: lambda: _Lookup(lambda text: (text.strip(),), self.sentences),
            Check.NORMALISED: lambda: _Lookup(lambda text: (bare(text),), self.sentences),
            Check.GRAMS: lambda: _Lookup(lambda text: grams(bare(text)), self.sentences),
            Check.NEAR: lambda: _Near(bare_sentences, near),
        }
        self.finders = {check: make() for check, make in makers.items() if check in checks}
        if encode is not None:
            self.finders[Check.EMBEDDING] = _Nearest(encode, self.sentences, similar)
        self._groups: dict[str, int] = {}
        self._group_of = [self._groups.setdefault(text, len(self._groups)) for text in bare_sentences]
        self.pairs = self._pairs()

    def group(self, text: str) -> int | None:
        """Return the number of the test sentences that are equal to a text once normalised."""
        return self._groups.get(bare(text))

    def has_pair(self, row: Row) -> bool:
        """Tell whether the first sentence of a row is, with another one, a pair of the test sets."""
        first, *others = (self.group(text) for text in row)
        pairs = (ordered(first, other) for other in others if first is not None and other is not None)
        return any(pair in self.pairs for pair in pairs)

    def _sets_of(self) -> list[tuple[str, ...]]:
        found: list[dict[str, None]] = [{} for _ in self.sentences]
        for name, items in self.items.items():
            for item in items:
                for number in item:
                    found[number][name] = None
        return [tuple(names) for names in found]

    def _pairs(self) -> dict[tuple[int, int], list[tuple[str, int]]]:
        """Return for each pair of the test sets, normalised and in one order, the items that it is in."""
        found: dict[tuple[int, int], list[tuple[str, int]]] = {}
        for name, items in self.items.items():
            for place, (first, *others) in enumerate(items):
                for other in others:
                    key = ordered(self._group_of[first], self._group_of[other])
                    found.setdefault(key, []).append((name, place))
        return found


def ordered(first: int, second: int) -> tuple[int, int]:
    """Return the same pair for both orders."""
    return (first, second) if first <= second else (second, first)


class _Lookup:
    """Finds sentences that have a key in common with a text."""

    def __init__(self, keys: Callable[[str], Iterable[str]], sentences: Sequence[str]) -> None:
        self._keys = keys
        self._known: dict[str, set[int]] = {}
        for number, sentence in enumerate(sentences):
            for key in keys(sentence):
                self._known.setdefault(key, set()).add(number)

    def find(self, texts: Sequence[str]) -> Iterator[Collection[int]]:
        for text in texts:
            found = [self._known[key] for key in self._keys(text) if key in self._known]
            yield set().union(*found) if len(found) > 1 else (found[0] if found else ())


class _Near:
    """Finds sentences that are nearly the same."""

    def __init__(self, bare_sentences: Sequence[str], threshold: float) -> None:
        self._index = NearDuplicates(bare_sentences, threshold)

    def find(self, texts: Sequence[str]) -> Iterator[Collection[int]]:
        return self._index.find([bare(text) for text in texts])


class _Nearest:
    """Finds sentences whose embeddings have at least a given cosine with a text's."""

    def __init__(self, encode: "Encode", sentences: Sequence[str], threshold: float) -> None:
        self._encode = encode
        self._matrix = directions(encode(sentences)) if sentences else None
        self._threshold = threshold

    def find(self, texts: Sequence[str]) -> Iterator[Collection[int]]:
        for start in range(0, len(texts), _AT_ONCE):
            some = texts[start : start + _AT_ONCE]
            if self._matrix is None:
                yield from (() for _ in some)
                continue
            for cosines in directions(self._encode(some)) @ self._matrix.T:
                yield tuple((cosines >= self._threshold).nonzero()[0].tolist())
