"""The sentences that new pairs are made of, with their gold pairs; and checks of gold scores."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from synthbench.api import Record, SyntheticDataset, UserError

IndexPair = tuple[int, int]
SENTENCES = "sentences"


GOLD, NEW = "gold", "new"


@dataclass(frozen=True)
class GoldSentences:
    """The distinct sentences for new pairs, in order of first appearance.

    `source_ids` holds the id of each sentence's first record, `pairs` the gold pairs as (lower index, higher
    index), without pairs of a sentence with itself. `kind` is "new" if the sentences are those of the role
    "sentences", else "gold".
    """

    texts: tuple[str, ...]
    source_ids: tuple[str, ...]
    pairs: frozenset[IndexPair]
    kind: str = GOLD

    @property
    def num_new_pairs(self) -> int:
        """The number of pairs of these sentences that are not gold."""
        return math.comb(len(self.texts), 2) - len(self.pairs)

    @classmethod
    def of_sources(cls, sources: Mapping[str, Iterable[Record]]) -> "GoldSentences":
        """Collect the sentences of the role "sentences", if it has a source, else those of the gold pairs."""
        if SENTENCES in sources:
            return cls.of(sources[SENTENCES], sources["gold"], NEW)
        return cls.of(sources["gold"])

    @classmethod
    def of(
        cls, records: Iterable[Record], gold: Iterable[Record] | None = None, kind: str = GOLD
    ) -> "GoldSentences":
        """Collect the sentences of the train records, and the gold pairs of these sentences.

        The gold pairs come from `gold`, or from `records` if `gold` is None.

        Raises UserError if there are fewer than two distinct sentences.
        """
        known = list(records)
        index: dict[str, int] = {}
        source_ids: list[str] = []
        for record in _of_train(known):
            for text in record.texts():
                if text not in index:
                    index[text] = len(index)
                    source_ids.append(record.id)
        if len(index) < 2:
            role = "gold" if kind == GOLD else SENTENCES
            raise UserError(
                f"augsbert: the source '{role}' has {len(index)} distinct sentences in split 'train'; "
                "at least 2 are needed to make new pairs"
            )
        pairs = (record.texts() for record in _of_train(known if gold is None else gold))
        among = ((index[first], index[second]) for first, second in pairs if {first, second} <= index.keys())
        taken = {(min(pair), max(pair)) for pair in among if pair[0] != pair[1]}
        return cls(tuple(index), tuple(source_ids), frozenset(taken), kind)


def _of_train(records: Iterable[Record]) -> Iterator[Record]:
    return (record for record in records if record.split == "train")


def check_scores(method: str, sources: Mapping[str, SyntheticDataset]) -> None:
    """Raise UserError if gold has no train pairs or only equal scores; the same for dev.

    A labeller learns nothing from equal scores, and they can't select a model.
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
