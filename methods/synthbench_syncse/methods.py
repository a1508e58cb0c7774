"""Methods for triplets: SynCSE-partial, SynCSE-scratch, and naive generation."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from synthbench.api import (
    EXEMPLARS,
    ChatAmount,
    Expected,
    GeneratedData,
    GenerationContext,
    Need,
    RecordKind,
    SyntheticDataset,
    Unit,
    WithExemplars,
)
from synthbench_syncse.filters import FiltersOfAnyLength
from synthbench_syncse.labelling import Labelling
from synthbench_syncse.prompts import LABELS, SENTENCES, sentences_of
from synthbench_syncse.sentences import WithSubject, check_subject
from synthbench_syncse.settings import WithLabels, WithSentences

_SENTENCE_SETTINGS = {"size", "sentences", "seed", "filters", "genres", "domain"}


class SynCSEPartial(WithLabels, WithExemplars):
    """SynCSE-partial: positives and hard negatives for given sentences."""

    version = 3
    record_kind = RecordKind.TRIPLET
    source_roles: ClassVar[Mapping[str, RecordKind]] = {SENTENCES: RecordKind.SENTENCE}
    optional_source_roles: ClassVar[Mapping[str, RecordKind]] = {EXEMPLARS: RecordKind.TRIPLET}

    filters: FiltersOfAnyLength = Field(FiltersOfAnyLength(), description="filters for sentences")

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the expected LLM requests and tokens."""
        if SENTENCES not in num_records:
            return None
        return Labelling(self, "syncse-partial").asks(num_records[SENTENCES])

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one triplet per sentence."""
        return Expected(num_records.get(SENTENCES))

    def check_data(self, sources: Mapping[str, SyntheticDataset]) -> None:
        """Raise UserError for faulty exemplars, or if a limit on words would count a sentence as one word."""
        super().check_data(sources)
        self.filters.check_words(sources[SENTENCES].column("sentence"))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per sentence."""
        exemplars = {
            kind: self.source_exemplars(sources, self.seed, {"sentence": "anchor", "answer": kind})
            for kind in LABELS
        }
        return Labelling(self, "syncse-partial", exemplars=exemplars).units(sources[SENTENCES], context)


class _Written(WithSentences, WithLabels):
    """Triplets from the sentences of `syncse-sentences`: the LLM adds a positive and a hard negative."""

    record_kind = RecordKind.TRIPLET
    title: ClassVar[str]
    is_naive: ClassVar[bool] = False

    def prompt_names(self) -> tuple[str, ...]:
        """Return the names of the prompts for positives and negatives, not of those for sentences."""
        return LABELS

    def needs(self) -> Mapping[str, Need]:
        """Return the data set of sentences."""
        return {SENTENCES: GeneratedData("syncse-sentences", self._sentence_settings(), sources={})}

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount:
        """Return the LLM requests and tokens for triplets; `syncse-sentences` counts those for sentences."""
        return self._labelling().asks(self.size)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one triplet per sentence."""
        return Expected(self.size)

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per sentence."""
        return self._labelling().units(context.dataset(SENTENCES), context)

    def _labelling(self) -> Labelling:
        return Labelling(self, self.title, is_fixed=self.is_naive)

    def _sentence_settings(self) -> dict[str, Any]:
        own = self.model_dump(mode="json", include=_SENTENCE_SETTINGS)
        given = {name: value for name, value in own.items() if value is not None}
        given |= self.own_prompts([SENTENCES])
        return {**given, "naive": True} if self.is_naive else given


class SynCSEScratch(WithSubject, _Written):
    """SynCSE-scratch: sentences of all genres, or of a domain, and their positives and hard negatives."""

    version = 3
    title = "syncse-scratch"


class SynCSENaive(_Written):
    """Triplets by naive generation: no genres or topics, and always the same prompt and exemplars."""

    version = 3
    title = "syncse-naive"
    is_naive = True

    @model_validator(mode="after")
    def _sentences_can_be_asked_for(self) -> Self:
        check_subject(sentences_of(self.all_prompts), {"naive": True})
        return self
