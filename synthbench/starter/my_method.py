"""A method of your own: synthbench imports the class named in my_method.yaml."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from synthbench.api import GenerationContext, Method, RecordKind, ScoredPair, SyntheticDataset


class WordsLeftOut(Method):
    """Pair each sentence with itself without every n-th word; the score is the share of words that stay."""

    version = 1  # raise it when the same settings give other records
    record_kind = RecordKind.SCORED_PAIR
    source_roles: ClassVar = {"sentences": RecordKind.SENTENCE}

    # Fields are settings: keys of the experiment file.
    every: int = Field(4, ge=2, description="every n-th word is left out")

    def generate(
        self, sources: Mapping[str, SyntheticDataset], context: GenerationContext
    ) -> Iterator[ScoredPair]:
        """Yield one pair for each sentence of at least `every` words."""
        for record in sources["sentences"]:
            words = record.sentence.split()
            kept = [word for number, word in enumerate(words, start=1) if number % self.every]
            if len(kept) < len(words):
                yield ScoredPair(
                    sentence1=record.sentence, sentence2=" ".join(kept), score=len(kept) / len(words)
                )
