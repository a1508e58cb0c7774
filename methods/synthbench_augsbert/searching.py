"""Sharded semantic search for AugSBERT: each shard encodes some sentences, then searches for some."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from synthbench.api import (
    Expected,
    GenerationContext,
    Method,
    Need,
    Pair,
    RecordKind,
    Sentence,
    SyntheticDataset,
    Unit,
    Work,
    encoded_batches,
)
from synthbench_augsbert.gold import SENTENCES, GoldSentences, IndexPair
from synthbench_augsbert.samplers import BI_ENCODER, SemanticSearchSampler

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SOURCES: Mapping[str, RecordKind] = {"gold": RecordKind.SCORED_PAIR}
OPTIONAL_SOURCES: Mapping[str, RecordKind] = {
    "dev": RecordKind.SCORED_PAIR,
    SENTENCES: RecordKind.SENTENCE,
}
SINGLE = "<f4"


class _Searching(Method):
    """Settings of both parts of the search: all that its results depend on."""

    version = 1
    source_roles: ClassVar[Mapping[str, RecordKind]] = SOURCES
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = OPTIONAL_SOURCES

    sampler: SemanticSearchSampler
    seed: int

    def needs(self) -> Mapping[str, Need]:
        """Return the bi-encoder."""
        return self.sampler.needs(self.seed)

    def can_be_sharded(self) -> bool:
        """True: sentences are encoded by batch, and neighbours searched by block."""
        return True


class SentenceVectors(_Searching):
    """The vectors of all sentences, as base64 of little-endian single precision."""

    record_kind = RecordKind.SENTENCE

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return at most two sentences per gold pair, or the given ones."""
        return Expected(_most_sentences(num_records) or None)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per batch. Batches are the same with or without shards."""
        pool = GoldSentences.of_sources(sources)
        self.sampler.check(pool)

        def is_due(number: int, rows: Sequence[int]) -> bool:
            return context.is_mine(number) and str(rows[0]) not in context.finished_units

        for rows, vectors in encoded_batches(context.encoder(BI_ENCODER), pool.texts, is_due):
            pairs = zip(rows, vectors.astype(SINGLE), strict=True)
            records = tuple(
                Sentence(sentence=base64.b64encode(vector.tobytes()).decode(), source_id=str(row))
                for row, vector in pairs
            )
            yield Unit(key=str(rows[0]), position=rows[0], records=records)


class FoundPairs(_Searching):
    """Each sentence with its neighbours, nearest first, unlabelled; AugSBERT's shards read it."""

    record_kind = RecordKind.PAIR

    def shared_by_shards(self) -> SentenceVectors:
        """Return the vectors of all sentences, which each shard searches."""
        return SentenceVectors(sampler=self.sampler, seed=self.seed)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the neighbours of at most two sentences per gold pair, or of the given ones."""
        number = self.sampler.most_pairs(_most_sentences(num_records))
        return Expected(number, Work("", 0.0, number)) if number else Expected()

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per block of sentences; `source_id` has the numbers of a pair's sentences."""
        texts = GoldSentences.of_sources(sources).texts
        shared = context.shared()
        vectors = context.encoder(BI_ENCODER).encode(texts) if shared is None else vectors_of(shared)
        found = self.sampler.search(vectors, self.seed, context, lambda number: _is_due(number, context))
        for number, block in enumerate(found.blocks):
            if _is_due(number, context):
                rows = range(len(texts))[block]
                neighbours = zip(rows, found.indices[block].tolist(), strict=True)
                records = tuple(
                    Pair(anchor=texts[row], positive=texts[other], source_id=f"{row}-{other}")
                    for row, others in neighbours
                    for other in others
                )
                yield Unit(key=str(number), position=number, records=records)


def already_found(found: SyntheticDataset, context: GenerationContext) -> Iterator[IndexPair]:
    """Yield each pair of a sentence and a neighbour in `FoundPairs`' data; repeat its measurements."""
    for name, value in found.manifest.measured.items():
        context.measure(name, value)
    for pair in found:
        first, second = pair.source_id.split("-")
        yield int(first), int(second)


def _is_due(number: int, context: GenerationContext) -> bool:
    return context.is_mine(number) and str(number) not in context.finished_units


def _most_sentences(num_records: Mapping[str, int]) -> int:
    return num_records.get(SENTENCES, 2 * num_records.get("gold", 0))


def vectors_of(vectors: SyntheticDataset) -> "NDArray[np.float32]":
    """Return the vectors in `SentenceVectors`' data, in the sentences' order."""
    import numpy as np

    found = {int(record.source_id): base64.b64decode(record.sentence) for record in vectors}
    joined = b"".join(found[row] for row in range(len(found)))
    return np.frombuffer(joined, SINGLE).reshape(len(found), -1).astype(np.float32)
