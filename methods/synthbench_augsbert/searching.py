"""One semantic search for all of AugSBERT's shards, run before them."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from synthbench.api import (
    Expected,
    GenerationContext,
    Method,
    Need,
    Pair,
    RecordKind,
    SyntheticDataset,
    Work,
)
from synthbench_augsbert.gold import SENTENCES, GoldSentences, IndexPair
from synthbench_augsbert.samplers import SemanticSearchSampler

SOURCES: Mapping[str, RecordKind] = {"gold": RecordKind.SCORED_PAIR}
OPTIONAL_SOURCES: Mapping[str, RecordKind] = {
    "dev": RecordKind.SCORED_PAIR,
    SENTENCES: RecordKind.SENTENCE,
}


class FoundPairs(Method):
    """Unlabelled pairs of each sentence with its neighbours, nearest first: input of AugSBERT's shards."""

    version = 1
    record_kind = RecordKind.PAIR
    source_roles: ClassVar[Mapping[str, RecordKind]] = SOURCES
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = OPTIONAL_SOURCES

    sampler: SemanticSearchSampler
    seed: int

    def needs(self) -> Mapping[str, Need]:
        """Return the bi-encoder."""
        return self.sampler.needs(self.seed)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most k pairs per sentence; a gold pair has two sentences."""
        number = self.sampler.most_pairs(num_records.get(SENTENCES, 2 * num_records.get("gold", 0)))
        return Expected(number, Work("", 0.0, number)) if number else Expected()

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Pair]:
        """Yield the pairs; `source_id` holds the indices of their sentences."""
        pool = GoldSentences.of_sources(sources)
        for row, other in self.sampler.search(pool, self.seed, context):
            yield Pair(anchor=pool.texts[row], positive=pool.texts[other], source_id=f"{row}-{other}")


def already_found(found: SyntheticDataset, context: GenerationContext) -> Iterator[IndexPair]:
    """Yield the pairs of indices in `FoundPairs`' data, and copy the recall that it measured."""
    for name, value in found.manifest.measured.items():
        context.measure(name, value)
    for pair in found:
        first, second = pair.source_id.split("-")
        yield int(first), int(second)
