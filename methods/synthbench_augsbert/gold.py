"""What the samplers know of the gold data: its sentences, and which pairs of them are labelled already."""

from collections.abc import Iterable
from dataclasses import dataclass

from synthbench.api import Record, UserError

IndexPair = tuple[int, int]


@dataclass(frozen=True)
class GoldSentences:
    """The distinct sentences of the gold pairs, in order of first appearance.

    `source_ids` holds for each the id of the first record it stands in, `pairs` the gold pairs as
    (lower index, higher index), a sentence's pair with itself left out.
    """

    texts: tuple[str, ...]
    source_ids: tuple[str, ...]
    pairs: frozenset[IndexPair]

    @classmethod
    def of(cls, records: Iterable[Record]) -> "GoldSentences":
        """Collect the sentences of the pairs of split "train".

        Raises UserError if there are fewer than two distinct ones.
        """
        index: dict[str, int] = {}
        source_ids: list[str] = []
        pairs: set[IndexPair] = set()
        for record in records:
            if record.split != "train":
                continue
            for text in record.texts():
                if text not in index:
                    index[text] = len(index)
                    source_ids.append(record.id)
            first, second = sorted(index[text] for text in record.texts())
            if first != second:
                pairs.add((first, second))
        if len(index) < 2:
            raise UserError(
                f"augsbert: the source 'gold' has {len(index)} distinct sentences in split 'train'; "
                "at least 2 are needed to make new pairs"
            )
        return cls(tuple(index), tuple(source_ids), frozenset(pairs))
