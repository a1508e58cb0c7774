"""Train, dev and test parts for a source without splits: drawn by hashes of its texts, balanced by class."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.grouping import grouped
from synthbench.data.draws import digest
from synthbench.data.records import Record
from synthbench.sources.tasks import Split

CONNECTS_PARTS = "would connect parts"
MOST_CLASSES = 10
_Groups = Sequence[Sequence[int]]


class SourcePart(BaseModel):
    """One part of a source's records; sources that differ only in `take` share no record."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    take: Split = Field(description="the part to take, which becomes the records' split")
    shares: Mapping[Split, Annotated[float, Field(gt=0, lt=1)]] = Field(
        {"train": 0.7, "dev": 0.1, "test": 0.2},
        description="part -> share of the records; the shares sum to 1",
    )
    by: Literal["sentence", "record", "subset"] = Field(
        "sentence",
        description="what no two parts share; `record` divides each subset (in-topic), `subset` divides"
        " none (cross-topic)",
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the division")

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if not math.isclose(sum(self.shares.values()), 1, abs_tol=1e-6):
            raise ValueError(f"shares: their sum is {sum(self.shares.values()):g}, not 1")
        if self.take not in self.shares:
            raise ValueError(f"take: shares has no '{self.take}', only {', '.join(self.shares)}")
        return self


def divide(records: Sequence[Record], part: SourcePart) -> list[Split | None]:
    """Return the part of each record; None for a record whose sentences fall into several parts.

    Some records stay together, by `part.by`. sentence: records connected by shared sentences; subset: records
    of one subset; record: records with the same sentences. Large groups come first. Each goes to the part
    that is furthest behind its share of the group's classes. A class is the label, or one of at most ten
    distinct scores. Only a group connected by sentences is ever cut, if it exceeds the largest part: a
    breadth-first search fills one part after the other.

    The order of the records does not matter. Raises UserError if `by` is subset and a record has none.
    """
    found: list[Split | None] = [None] * len(records)
    keys = [_key(record) for record in records]
    of_class = classes(records)
    filling = _Filling(part.shares, len(records))
    groups = _GROUPINGS[part.by](records, keys)
    for rows in sorted(groups, key=_order(records, keys, of_class, part)):
        if part.by == "sentence" and len(rows) > filling.most:
            # Records with the same sentences may have them in different order; start the search from one
            # order.
            cut = _cut(records, sorted(rows, key=lambda row: (keys[row], records[row].texts())), part)
        else:
            cut = dict.fromkeys(rows, filling.furthest_behind([of_class[row] for row in rows]))
        for row, split in cut.items():
            found[row] = split
            filling.add(split, of_class[row])
    return found


class _Filling:
    """The number of records of each class that each part has so far."""

    def __init__(self, shares: Mapping[Split, float], total: int) -> None:
        self.shares = shares
        self._room = {split: math.ceil(share * total) for split, share in shares.items()}
        self.most = max(self._room.values())
        self._have: dict[Split, Counter[str]] = {split: Counter() for split in shares}

    def add(self, split: Split, name: str) -> None:
        self._have[split][name] += 1
        self._room[split] -= 1

    def furthest_behind(self, classes: Sequence[str]) -> Split:
        """Return the part furthest behind its share of these classes, among parts with room if any."""
        numbers = Counter(classes)
        fitting = [split for split, room in self._room.items() if room >= len(classes)]

        def progress(split: Split) -> float:
            have = self._have[split]
            done = sum(number * (have[name] + number / 2) for name, number in numbers.items())
            return done / self.shares[split]

        return min(fitting or self._room, key=progress)


def _key(record: Record) -> str:
    """Return a key that is equal for records with the same sentences, in any order."""
    return "\x1f".join(sorted(text.strip() for text in record.texts()))


def classes(records: Sequence[Record]) -> list[str]:
    """Return each record's class: its label, else its score, else "".

    Scores are classes only if there are at most ten distinct scores.
    """
    scores = [str(getattr(record, "score", "")) for record in records]
    are_classes = len({*scores}) <= MOST_CLASSES
    return [
        record.label or (score if are_classes else "") for record, score in zip(records, scores, strict=True)
    ]


def _order(
    records: Sequence[Record], keys: Sequence[str], of_class: Sequence[str], part: SourcePart
) -> Callable[[Sequence[int]], tuple[int, str, str, bytes]]:
    """Return a sort key for groups: large groups first, then by subset and class if `by: record`.

    Sizes with the same number of binary digits count as equal. A hash with the seed orders equal groups.
    """

    def order(rows: Sequence[int]) -> tuple[int, str, str, bytes]:
        key, *stratum = min((keys[row], records[row].subset, of_class[row]) for row in rows)
        subset, name = stratum if part.by == "record" else ("", "")
        return -len(rows).bit_length(), subset, name, digest("part", part.seed, key, *stratum)

    return order


def _equal(records: Sequence[Record], keys: Sequence[str]) -> _Groups:
    return list(grouped((key, row) for row, key in enumerate(keys)).values())


def _subsets(records: Sequence[Record], keys: Sequence[str]) -> _Groups:
    without = next((record.id for record in records if not record.subset), None)
    if without is not None:
        raise UserError(f"part.by: {without} has no subset; `columns: {{subset: ...}}` names its column")
    return _equal(records, [record.subset for record in records])


def _connected(records: Sequence[Record], keys: Sequence[str]) -> _Groups:
    above: dict[str, str] = {}

    def top(text: str) -> str:
        while above.setdefault(text, text) != text:
            above[text] = above[above[text]]
            text = above[text]
        return text

    firsts = []
    for record in records:
        first, *others = (text.strip() for text in record.texts())
        firsts.append(first)
        for other in others:
            above[top(other)] = top(first)
    return _equal(records, [top(first) for first in firsts])


_GROUPINGS: Mapping[str, Callable[[Sequence[Record], Sequence[str]], _Groups]] = {
    "sentence": _connected,
    "record": _equal,
    "subset": _subsets,
}


def _cut(records: Sequence[Record], rows: Sequence[int], part: SourcePart) -> dict[int, Split]:
    """Return row -> part for connected records, without the rows that have sentences in several parts."""
    position = {text: position for position, text in enumerate(_searched(records, rows))}
    positions = {row: [position[text.strip()] for text in records[row].texts()] for row in rows}
    last = sorted(max(each) for each in positions.values())
    ends, done = [], 0.0
    for share in part.shares.values():
        done += share
        ends.append(last[min(len(last), max(1, round(done * len(last)))) - 1])

    def split_at(position: int) -> Split:
        return next(split for split, end in zip(part.shares, ends, strict=True) if position <= end)

    found = {row: {split_at(position) for position in each} for row, each in positions.items()}
    return {row: splits.pop() for row, splits in found.items() if len(splits) == 1}


def _searched(records: Sequence[Record], rows: Sequence[int]) -> Iterator[str]:
    """Yield the sentences of connected records, breadth-first from the first record's first sentence."""
    beside: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        texts = [text.strip() for text in records[row].texts()]
        for text in texts:
            beside[text].update(dict.fromkeys(texts))
    start = records[rows[0]].texts()[0].strip()
    seen, waiting = {start}, deque([start])
    while waiting:
        text = waiting.popleft()
        yield text
        new = [other for other in beside[text] if other not in seen]
        seen.update(new)
        waiting.extend(new)
