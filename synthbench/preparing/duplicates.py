"""Steps that keep one of several records whose sentences are nearly the same, by letters or by meaning."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

from pydantic import Field

from synthbench.data.draws import rank_of
from synthbench.data.likeness import NEAR, NearDuplicates, bare, directions, similarity
from synthbench.data.records import Record
from synthbench.plugins import Step, StepContext, TrainedModel

Near = Callable[[str, str], bool]
ENCODER = "encoder"
MOST_AT_ONCE = 4096
"""Sentences that are looked up together."""


class _KeepOneOfNear(Step):
    """Keep, of records that are near each other, the one whose id comes first in a shuffle by `seed`.

    Two records are near if each sentence is near the one in the same place of the other record. A record
    goes if it is near one that stays: the order of records makes no difference.
    """

    seed: int = Field(0, description="decides which of several near records stays")

    @abstractmethod
    def nearness(self, texts: Sequence[str], context: StepContext) -> "tuple[list[Collection[int]], Near]":
        """Return the numbers of the texts near each text, and what tells whether any two texts are near."""

    def kept(self, records: Sequence[Record], context: StepContext, name: str) -> Sequence[Record]:
        """Return the records that stay, in their order; `name` is the draw's."""
        texts = sorted({text for record in records for text in record.texts()})
        numbers = {text: number for number, text in enumerate(texts)}
        neighbours, is_near = self.nearness(texts, context)
        by_first: dict[int, list[Record]] = {}
        stay: set[str] = set()
        for record in sorted(records, key=rank_of(name, self.seed)):
            first, *others = record.texts()
            candidates = (
                known for number in neighbours[numbers[first]] for known in by_first.get(number, ())
            )
            if any(_all_near(others, known.texts()[1:], is_near) for known in candidates):
                continue
            by_first.setdefault(numbers[first], []).append(record)
            stay.add(record.id)
        return [record for record in records if record.id in stay]


def _all_near(first: Sequence[str], second: Sequence[str], is_near: Near) -> bool:
    return len(first) == len(second) and all(map(is_near, first, second))


class DropNearDuplicates(_KeepOneOfNear):
    """Of records whose sentences are nearly the same keep one: by 5-grams of characters, as `data inspect`.

    Case, punctuation and white space make no difference. Of several that are near each other, hashes of their
    ids decide which stays, so the order of records makes no difference.
    """

    version = 1

    threshold: float = Field(
        NEAR, ge=0.5, le=1.0, description="Jaccard similarity of two sentences' 5-grams that makes them near"
    )

    def nearness(self, texts: Sequence[str], context: StepContext) -> "tuple[list[Collection[int]], Near]":
        """Find near texts by sketches, and compare them exactly."""
        bare_texts = [bare(text) for text in texts]
        found: list[Collection[int]] = list(NearDuplicates(bare_texts, self.threshold).find(bare_texts))

        def is_near(first: str, second: str) -> bool:
            return first == second or similarity(bare(first), bare(second)) >= self.threshold

        return [{*near, number} for number, near in enumerate(found)], is_near

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        """Return one record of each group of near ones."""
        return self.kept(records, context, "drop-near-duplicates")


class SemanticDedup(_KeepOneOfNear):
    """Of records whose sentences mean nearly the same keep one: by the cosine of an encoder (SemDeDup).

    Abbas et al. 2023, arXiv 2303.09540, keep one sentence of each group of close embeddings. Of several that
    are near each other, hashes of their ids decide which stays.
    """

    version = 1

    encoder: dict[str, Any] = Field(
        description="the encoder: the settings of the trainer `none`, such as `base: {model: ...}`"
    )
    threshold: float = Field(0.95, gt=0.0, le=1.0, description="cosine of two sentences that makes them near")

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the encoder."""
        return {ENCODER: TrainedModel("none", self.encoder, (), 0)}

    def nearness(self, texts: Sequence[str], context: StepContext) -> "tuple[list[Collection[int]], Near]":
        """Search all sentences within the threshold, by faiss."""
        import faiss

        vectors = directions(context.encoder(ENCODER).encode(texts))
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        found: list[Collection[int]] = []
        with context.progress.task("looking for near sentences", len(texts)) as task:
            for start in range(0, len(texts), MOST_AT_ONCE):
                some = vectors[start : start + MOST_AT_ONCE]
                limits, _, near = index.range_search(some, self.threshold - ROUNDING)
                found += [
                    {*near[low:high].tolist(), start + row}
                    for row, (low, high) in enumerate(pairwise(limits))
                ]
                task.advance(len(some))
        numbers = {text: number for number, text in enumerate(texts)}
        return found, lambda first, second: numbers[second] in found[numbers[first]]

    def apply(self, records: Sequence[Record], context: StepContext) -> Sequence[Record]:
        """Return one record of each group of near ones."""
        return self.kept(records, context, "semantic-dedup")


ROUNDING = 1e-6
"""A cosine of 1 is a little less in float32."""
