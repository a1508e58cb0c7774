"""The sentences of the gold pairs, and which pairs of them are gold; checks of gold scores."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from synthbench.api import Record, SyntheticDataset, UserError

IndexPair = tuple[int, int]


@dataclass(frozen=True)
class GoldSentences:
    """The distinct sentences of the gold pairs, in order of first appearance.

    `source_ids` holds for each the id of the first record that holds it, `pairs` the gold pairs as
    (lower index, higher index), a sentence's pair with itself left out.
    """

    texts: tuple[str, ...]
    source_ids: tuple[str, ...]
    pairs: frozenset[IndexPair]

    @property
    def num_new_pairs(self) -> int:
        """How many pairs of these sentences are no gold pairs."""
        return math.comb(len(self.texts), 2) - len(self.pairs)

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


def check_scores(method: str, sources: Mapping[str, SyntheticDataset]) -> None:
    """Raise UserError unless gold's scores differ, and dev's if there is dev.

    A labeller learns nothing from equal scores, and they select nothing.
    """
    gold = sources["gold"]
    splits = zip(gold.column("score"), gold.column("split"), strict=True)
    _check_different(
        f"{method}: source 'gold', split 'train'", [score for score, split in splits if split == "train"]
    )
    if "dev" in sources:
        _check_different(f"{method}: source 'dev'", sources["dev"].column("score"))


def _check_different(where: str, scores: Sequence[float]) -> None:
    different = set(scores)
    if not different:
        raise UserError(f"{where}: there are no pairs")
    if len(different) == 1:
        only = f"{different.pop():g}"
        is_class = only in ("0", "1")
        found = only if is_class else f"{only} (of 0 to 1)"
        wanted = "of both classes, 0 and 1," if is_class else "of different scores"
        raise UserError(f"{where}: all {len(scores):,} scores are {found}; pairs {wanted} are needed")
