"""Going through training data once, whatever its size, and counting what of the test sets stands there."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, Field

from synthbench.data.contamination.index import Check, Row, TestIndex, ordered


class Counts(BaseModel):
    """What one check found of one test set."""

    model_config = ConfigDict(frozen=True)

    training_sentences: int = Field(description="distinct sentences of the training data that stand there")
    sentences: int = Field(description="distinct sentences of the test set that were found")
    items: int = Field(description="its items (pairs, queries) of which a sentence was found")
    whole_items: int = Field(description="its items of which every sentence was found")


class TestOverlap(BaseModel):
    """What of one test set stands in the training data."""

    __test__ = False
    model_config = ConfigDict(frozen=True)

    name: str
    num_items: int
    num_sentences: int = Field(description="distinct sentences")
    items_as_pairs: int = Field(
        description="items with a pair that is a pair of the training data, normalised, in either order"
    )
    checks: dict[Check, Counts]


@dataclass
class Findings:
    """What was found of an index's sentences and pairs; findings in several data sets can be put together."""

    checks: tuple[Check, ...]
    sentences: dict[Check, set[int]] = field(default_factory=dict)
    pairs: set[tuple[int, int]] = field(default_factory=set)
    training: dict[Check, Counter[str]] = field(default_factory=dict)
    anywhere: Counter[Check] = field(default_factory=Counter)
    """Distinct training sentences that stand in any of the test sets."""
    num_records: int = 0

    def __post_init__(self) -> None:
        for check in self.checks:
            self.sentences.setdefault(check, set())
            self.training.setdefault(check, Counter())

    def together(self, other: "Findings") -> "Findings":
        """Return what was found in either data set; training sentences of both count twice."""
        return Findings(
            self.checks,
            {check: self.sentences[check] | other.sentences[check] for check in self.checks},
            self.pairs | other.pairs,
            {check: self.training[check] + other.training[check] for check in self.checks},
            self.anywhere + other.anywhere,
            self.num_records + other.num_records,
        )

    def overlaps(self, index: TestIndex) -> tuple[TestOverlap, ...]:
        """Return the figures of each test set of the index that was searched for."""
        return tuple(self._overlap(index, name) for name in index.items)

    def _overlap(self, index: TestIndex, name: str) -> TestOverlap:
        items = index.items[name]
        numbers = {number for item in items for number in item}
        as_pairs = {place for pair in self.pairs for of, place in index.pairs[pair] if of == name}
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
    """Go through batches of training records, each a row of its sentences, the first paired with the others.

    Memory grows with the number of training sentences that are found, not with that of all.
    """
    running = _Search(index)
    for rows in batches:
        running.go_through(rows)
    return running.findings


class _Search:
    def __init__(self, index: TestIndex) -> None:
        self.index = index
        self.findings = Findings(tuple(index.finders))
        self.counted: dict[Check, set[str]] = {check: set() for check in index.finders}

    def go_through(self, rows: Sequence[Row]) -> None:
        self.findings.num_records += len(rows)
        texts = list(dict.fromkeys(text for row in rows for text in row))
        for check, finder in self.index.finders.items():
            for text, numbers in zip(texts, finder.find(texts), strict=True):
                if numbers:
                    self._note(check, text, numbers)
        groups = {text: group for text in texts if (group := self.index.group(text)) is not None}
        for first, *others in rows:
            if first in groups:
                self._note_pairs(groups[first], (groups[other] for other in others if other in groups))

    def _note(self, check: Check, text: str, numbers: Collection[int]) -> None:
        self.findings.sentences[check].update(numbers)
        if text not in self.counted[check]:
            self.counted[check].add(text)
            self.findings.anywhere[check] += 1
            names = {name for number in numbers for name in self.index.sets_of[number]}
            self.findings.training[check].update(names)

    def _note_pairs(self, first: int, others: Iterable[int]) -> None:
        keys = (ordered(first, other) for other in others)
        self.findings.pairs.update(key for key in keys if key in self.index.pairs)
