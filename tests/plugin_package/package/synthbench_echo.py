"""The smallest method: every sentence means the same as itself."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from synthbench.api import GenerationContext, Method, RecordKind, ScoredPair, SyntheticDataset


class Echo(Method):
    """Pairs each sentence with itself."""

    version = 1
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar = {"texts": RecordKind.SENTENCE}
    score: float = 1.0

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[ScoredPair]:
        for record in sources["texts"]:
            yield ScoredPair(sentence1=record.sentence, sentence2=record.sentence, score=self.score)
