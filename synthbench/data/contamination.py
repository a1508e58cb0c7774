"""Contamination: find and count test sentences in training data, and remove them from test sets."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from synthbench.data.dataset import SyntheticDataset
from synthbench.data.likeness import NEAR, bare, directions, grams
from synthbench.data.near_duplicates import NearDuplicates
from synthbench.data.records import RecordKind

if TYPE_CHECKING:
    from synthbench.data.likeness import Encode

_T = TypeVar("_T", int, str)
Row = tuple[str, ...]
SIMILAR = 0.95
_AT_ONCE = 512
"""Sentences per block whose cosines with all test sentences are in memory at once."""


class Check(StrEnum):
    """How a test sentence is recognised.

    NORMALISED also finds what EXACT finds; GRAMS and NEAR also find what NORMALISED finds.
    """

    EXACT = "exact"
    NORMALISED = "normalised"
    GRAMS = "13-gram"
    NEAR = "near-duplicate"
    EMBEDDING = "embedding"


Find = Callable[[Sequence[str]], Iterable[Collection[int]]]
"""Yields, for each text, the numbers of the test sentences that a check finds in it."""


class TestIndex:
    """Distinct sentences of test sets, numbered; a test item is a row of sentence numbers.

    The checks are: equal up to white space at the ends; equal without case, punctuation and white space; a
    common 13-gram of words (or the whole sentence if shorter); a Jaccard similarity of character 5-grams of
    at least `near`, found by MinHash; and, with `encode`, a cosine of at least `similar`. Of the first four
    only those in `checks` are prepared. `words` names the splitter of scripts without spaces.
    """

    __test__ = False

    def __init__(
        self,
        tests: Mapping[str, Iterable[Row]],
        *,
        checks: Collection[Check] = (Check.EXACT, Check.NORMALISED, Check.GRAMS, Check.NEAR),
        near: float = NEAR,
        words: str | None = None,
        encode: "Encode | None" = None,
        similar: float = SIMILAR,
    ) -> None:
        numbers: dict[str, int] = {}
        self.items = {
            name: tuple(tuple(numbers.setdefault(text.strip(), len(numbers)) for text in row) for row in rows)
            for name, rows in tests.items()
        }
        self.sentences = tuple(numbers)
        bare_sentences = [bare(text) for text in self.sentences]
        makers: dict[Check, Callable[[], Find]] = {
            Check.EXACT: lambda: _lookup(lambda text: (text.strip(),), self.sentences),
            Check.NORMALISED: lambda: _lookup(lambda text: (bare(text),), self.sentences),
            Check.GRAMS: lambda: _lookup(lambda text: grams(bare(text), words), self.sentences),
            Check.NEAR: lambda: _near(bare_sentences, near),
        }
        self.finders = {check: make() for check, make in makers.items() if check in checks}
        if encode is not None:
            self.finders[Check.EMBEDDING] = _nearest(encode, self.sentences, similar)
        self._groups: dict[str, int] = {}
        self._group_of = [self._groups.setdefault(text, len(self._groups)) for text in bare_sentences]

    def group(self, text: str) -> int | None:
        """Return the index of the group of test sentences that equal a text after normalisation, or None."""
        return self._groups.get(bare(text))

    def has_pair(self, row: Row) -> bool:
        """Return whether a row's first sentence and another of its sentences are a pair in a test set."""
        first, *others = (self.group(text) for text in row)
        pairs = (ordered(first, other) for other in others if first is not None and other is not None)
        return any(pair in self.pairs for pair in pairs)

    @cached_property
    def sets_of(self) -> list[tuple[str, ...]]:
        """For each sentence number, the names of the test sets that contain it."""
        found: list[dict[str, None]] = [{} for _ in self.sentences]
        for name, items in self.items.items():
            for item in items:
                for number in item:
                    found[number][name] = None
        return [tuple(names) for names in found]

    @cached_property
    def pairs(self) -> dict[tuple[int, int], list[tuple[str, int]]]:
        """Ascending pair of groups (see `group`) -> (test set, item index) of each item with this pair."""
        found: dict[tuple[int, int], list[tuple[str, int]]] = {}
        for name, items in self.items.items():
            for index, (first, *others) in enumerate(items):
                for other in others:
                    key = ordered(self._group_of[first], self._group_of[other])
                    found.setdefault(key, []).append((name, index))
        return found


def ordered(first: _T, second: _T) -> tuple[_T, _T]:
    """Return the pair in ascending order."""
    return (first, second) if first <= second else (second, first)


def _lookup(keys: Callable[[str], Iterable[str]], sentences: Sequence[str]) -> Find:
    """Return a function that yields, for each text, the indices of the sentences that share a key with it."""
    # Most keys belong to one sentence, and a set takes ten times as much memory as a tuple of one.
    numbers: dict[str, tuple[int, ...] | set[int]] = {}
    for number, sentence in enumerate(sentences):
        for key in keys(sentence):
            known = numbers.setdefault(key, (number,))
            if isinstance(known, set):
                known.add(number)
            elif number not in known:
                numbers[key] = {*known, number}

    def find(texts: Sequence[str]) -> Iterator[Collection[int]]:
        for text in texts:
            found = [numbers[key] for key in keys(text) if key in numbers]
            yield set().union(*found) if len(found) > 1 else (found[0] if found else ())

    return find


def _near(bare_sentences: Sequence[str], threshold: float) -> Find:
    """Return a function that yields, for each text, the indices of its near-duplicates, found by MinHash."""
    index = NearDuplicates(bare_sentences, threshold)
    return lambda texts: index.find([bare(text) for text in texts])


def _nearest(encode: "Encode", sentences: Sequence[str], threshold: float) -> Find:
    """Return a function that yields, for each text, the indices of sentences with a cosine >= `threshold`."""
    if not sentences:
        return lambda texts: [()] * len(texts)
    matrix = directions(encode(sentences))

    def find(texts: Sequence[str]) -> Iterator[Collection[int]]:
        for start in range(0, len(texts), _AT_ONCE):
            for cosines in directions(encode(texts[start : start + _AT_ONCE])) @ matrix.T:
                yield tuple((cosines >= threshold).nonzero()[0].tolist())

    return find


class Counts(BaseModel):
    """What one check found in one test set."""

    model_config = ConfigDict(frozen=True)

    training_sentences: int = Field(description="distinct training sentences that occur in the test set")
    sentences: int = Field(description="distinct sentences of the test set that occur in the training data")
    items: int = Field(description="items (pairs, queries) of the test set with at least one sentence found")
    whole_items: int = Field(description="items of the test set with every sentence found")


class TestOverlap(BaseModel):
    """The overlap of training data with one test set."""

    __test__ = False
    model_config = ConfigDict(frozen=True)

    name: str
    num_items: int
    num_sentences: int = Field(description="distinct sentences of the test set")
    items_as_pairs: int = Field(
        description="items with a pair that also occurs as a pair in the training data, in either order,"
        " ignoring case and punctuation"
    )
    checks: dict[Check, Counts]


@dataclass
class Findings:
    """Test sentences and pairs found in training data; `combined_with` adds those of several data sets."""

    checks: tuple[Check, ...]
    sentences: dict[Check, set[int]] = field(default_factory=dict)
    pairs: set[tuple[int, int]] = field(default_factory=set)
    training: dict[Check, Counter[str]] = field(default_factory=dict)
    anywhere: Counter[Check] = field(default_factory=Counter)
    """Check -> number of distinct training sentences that occur in any test set."""
    num_records: int = 0

    def __post_init__(self) -> None:
        for check in self.checks:
            self.sentences.setdefault(check, set())
            self.training.setdefault(check, Counter())

    def combined_with(self, other: "Findings") -> "Findings":
        """Return the sum of two data sets' findings; training sentences in both count twice."""
        return Findings(
            self.checks,
            {check: self.sentences[check] | other.sentences[check] for check in self.checks},
            self.pairs | other.pairs,
            {check: self.training[check] + other.training[check] for check in self.checks},
            self.anywhere + other.anywhere,
            self.num_records + other.num_records,
        )

    def overlaps(self, index: TestIndex) -> tuple[TestOverlap, ...]:
        """Return the figures of each test set in the index."""
        return tuple(self._overlap(index, name) for name in index.items)

    def _overlap(self, index: TestIndex, name: str) -> TestOverlap:
        items = index.items[name]
        numbers = {number for item in items for number in item}
        as_pairs = {item for pair in self.pairs for of, item in index.pairs[pair] if of == name}
        return TestOverlap(
            name=name,
            num_items=len(items),
            num_sentences=len(numbers),
            items_as_pairs=len(as_pairs),
            checks={
                check: Counts(
                    training_sentences=self.training[check][name],
                    sentences=len(numbers & found),
                    items=sum(not found.isdisjoint(item) for item in items),
                    whole_items=sum(found.issuperset(item) for item in items),
                )
                for check, found in self.sentences.items()
            },
        )


def search(batches: Iterable[Sequence[Row]], index: TestIndex) -> Findings:
    """Search batches of training records for test sentences and pairs.

    The pairs of a row are its first text with each other text. Memory grows with the number of sentences
    found, not with the size of the training data.
    """
    findings = Findings(tuple(index.finders))
    counted: dict[Check, set[str]] = {check: set() for check in index.finders}
    for rows in batches:
        findings.num_records += len(rows)
        texts = list(dict.fromkeys(text for row in rows for text in row))
        for check, find in index.finders.items():
            for text, numbers in zip(texts, find(texts), strict=True):
                findings.sentences[check].update(numbers)
                if numbers and text not in counted[check]:
                    counted[check].add(text)
                    findings.anywhere[check] += 1
                    names = {name for number in numbers for name in index.sets_of[number]}
                    findings.training[check].update(names)
        groups = {text: group for text in texts if (group := index.group(text)) is not None}
        for first, *others in rows:
            if first in groups:
                keys = (ordered(groups[first], groups[other]) for other in others if other in groups)
                findings.pairs.update(key for key in keys if key in index.pairs)
    return findings


STANDS_IN_GOLD = "stands in the gold data"


def pair_key(first: str, second: str) -> tuple[str, str]:
    """Return a key of a pair that is the same in either order, with sentences normalised."""
    return ordered(bare(first), bare(second))


def drop_pairs_in(test: SyntheticDataset, gold: Sequence[SyntheticDataset]) -> SyntheticDataset:
    """Return `test` without the pairs that occur in any of the `gold` sets, in either order.

    Case, punctuation, white space and Unicode-compatible forms (NFKC) are ignored. The manifest counts
    dropped pairs under `STANDS_IN_GOLD`, 0 included. Use it with STSb's train and dev pairs as gold: STSb was
    drawn from the STS tasks of 2012 to 2017. STSb's train part has 1,003 test pairs of STS12, 597 of STS13.
    """
    known = {key for data in gold for keys in _pairs(data) for key in keys}
    kept = [record for record, keys in zip(test, _pairs(test), strict=True) if known.isdisjoint(keys)]
    dropped = test.manifest.dropped.get(STANDS_IN_GOLD, 0) + len(test) - len(kept)
    return test.with_records(kept, dropped={**test.manifest.dropped, STANDS_IN_GOLD: dropped})


def _pairs(data: SyntheticDataset) -> Iterator[list[tuple[str, str]]]:
    """Yield each record's pairs: its first sentence (or each query) with each of its other sentences."""
    if data.kind == RecordKind.RANKING:
        for each in data:
            yield [pair_key(query, text) for query in each.queries for text in each.candidates]
        return
    for anchor, *others in data.text_rows():
        yield [pair_key(anchor, text) for text in others]
