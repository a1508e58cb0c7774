"""CLAIF: pairs by filling masks, with similarity grades by the LLM."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import Field

from synthbench.api import (
    ChatAmount,
    ChatRequest,
    Expected,
    Failure,
    GeneratedData,
    GenerationContext,
    Grades,
    Judge,
    Need,
    ScoredPair,
    SyntheticDataset,
    Unit,
    Verdict,
    added_field,
    answered_items,
)
from synthbench_claif.pairs import SENTENCES, CLAIFPairs, Filling

PAIRS = "pairs"


class ExplainedGrade(Judge):
    """The question about a pair's similarity, by default with an explanation and grades of 0 to 10."""

    grades: Grades = Field((0, 10), description=Judge.model_fields["grades"].description)
    explanation: bool = added_field(
        False, default=True, description=Judge.model_fields["explanation"].description or ""
    )


class CLAIF(Filling):
    """Pairs made by filling masked sentences, graded by the LLM with an explanation (Cheng et al. 2023)."""

    version = 2

    judge: ExplainedGrade = Field(
        ExplainedGrade(),
        description="the question to the LLM about each pair; its grade becomes the score",
    )

    def needs(self) -> Mapping[str, Need]:
        """Return the pairs as a dependency, which rows share even if their question differs."""
        settings = self.model_dump(mode="json", include=set(CLAIFPairs.model_fields))
        return {PAIRS: GeneratedData("claif-pairs", settings, {SENTENCES: SENTENCES})}

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the LLM requests and tokens for the grades; `claif-pairs` counts those for the pairs."""
        number = self._num_graded(num_records)
        return None if number is None else self.judge.asks(number)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one record per pair."""
        return Expected(self._num_graded(num_records))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit per pair."""
        pairs = [record for record in context.dataset(PAIRS) if isinstance(record, ScoredPair)]
        asked = ((pair.id, pair) for pair in pairs)
        for about in answered_items("asking for grades", len(pairs), asked, self._request, context):
            yield self._unit(about.position, about.item, self.judge.verdict(about.answer))

    def _request(self, index: int, pair: ScoredPair) -> Mapping[str, ChatRequest]:
        texts = {"sentence1": pair.sentence1, "sentence2": pair.sentence2}
        return {"": self.judge.request(str(index), texts)}

    def _num_graded(self, num_records: Mapping[str, int]) -> int | None:
        return num_records.get(PAIRS, self.num_pairs(num_records))

    def _unit(self, index: int, pair: ScoredPair, verdict: Verdict) -> Unit:
        if verdict.value is None:
            failed = Failure(
                reason=verdict.reason,
                raw_text=verdict.answered,
                method="claif",
                generator=pair.generator,
                source_id=pair.source_id,
                instruction=pair.instruction,
                seed=self.seed,
            )
            return Unit(pair.id, index, (failed,))
        return Unit(pair.id, index, (replace(pair, id="", score=verdict.value, method="claif"),))
