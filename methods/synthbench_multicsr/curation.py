"""Stage 2, self-curation: the LLM grades both pairs of a triplet, and poor triplets are dropped."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Self

from pydantic import Field, model_validator

from synthbench.api import (
    EXEMPLARS,
    ChatAmount,
    ChatRequest,
    Expected,
    Failure,
    GeneratedData,
    GenerationContext,
    Judge,
    Need,
    SyntheticDataset,
    Triplet,
    Unit,
    Verdict,
    answered_items,
)
from synthbench_multicsr.prompts import NEGATIVE, POSITIVE
from synthbench_multicsr.writing import (
    OF_THE_LLM,
    SENTENCES,
    MultiCSRTriplets,
    TripletWriting,
)

TRIPLETS = "triplets"
ROUNDING = 1e-9


class MultiCSR(TripletWriting):
    """Triplets that an LLM writes, grades and curates (Wang et al. 2023).

    `scores` are the grades of both pairs, scaled to [0, 1]. If the contradiction has the higher grade,
    positive and negative are swapped before curation, and `label` is "turned".
    """

    version = 1

    judge: Judge = Field(Judge(), description="the question to the LLM about each pair of a triplet")
    positive_from: float = Field(
        3.0, description="minimum grade of the positive. Default: 60 % of the way up judge.grades"
    )
    negative_to: float = Field(
        3.0, description="maximum grade of the negative. Default: 60 % of the way up judge.grades"
    )
    gap: float = Field(
        1.0, ge=0, description="minimum difference of the two grades. Default: 20 % of judge.grades' range"
    )

    @model_validator(mode="after")
    def _is_graded(self) -> Self:
        if self.judge.grades is None:
            raise ValueError("judge.grades: curation compares grades; give a range, such as [0, 5]")
        lowest, highest = self.judge.grades
        length = highest - lowest
        middle = lowest + 0.6 * length
        for name, default, least, most in (
            ("positive_from", middle, lowest, highest),
            ("negative_to", middle, lowest, highest),
            ("gap", 0.2 * length, 0, length),
        ):
            if name not in self.model_fields_set:
                object.__setattr__(self, name, default)
            value = getattr(self, name)
            if not least <= value <= most:
                grades = f"judge.grades of {lowest} to {highest}"
                raise ValueError(f"{name}: must be from {least} to {most} with {grades}, is {value:g}")
        return self

    def needs(self) -> Mapping[str, Need]:
        """Return the triplets of stage 1 as a dependency, shared by rows that differ only in curation."""
        own = set(MultiCSRTriplets.model_fields) - (OF_THE_LLM if self.seq2seq else set())
        settings = self.model_dump(mode="json", include=own)
        roles = (SENTENCES,) if self.num_exemplars is None else (SENTENCES, EXEMPLARS)
        return {TRIPLETS: GeneratedData("multicsr-triplets", settings, {role: role for role in roles})}

    def asks(self, num_records: Mapping[str, int]) -> ChatAmount | None:
        """Return the LLM requests and tokens for the grades: two requests for each triplet."""
        number = num_records.get(TRIPLETS, num_records.get(SENTENCES))
        return None if number is None else self.judge.asks(2 * number)

    def expected(self, num_records: Mapping[str, int]) -> Expected:
        """Return the expected size: at most one triplet for each triplet of stage 1."""
        return Expected(num_records.get(TRIPLETS, num_records.get(SENTENCES)))

    def generate(self, sources: Mapping[str, SyntheticDataset], context: GenerationContext) -> Iterator[Unit]:
        """Yield one unit for each triplet of stage 1."""
        triplets = [record for record in context.dataset(TRIPLETS) if isinstance(record, Triplet)]
        asked = ((triplet.id, triplet) for triplet in triplets)
        for about in answered_items("asking for grades", len(triplets), asked, self._requests, context):
            found = {kind: self.judge.verdict(answer) for kind, answer in about.answers.items()}
            yield self._unit(about.position, about.item, found)

    def _requests(self, index: int, triplet: Triplet) -> Mapping[str, ChatRequest]:
        texts = {POSITIVE: triplet.positive, NEGATIVE: triplet.negative}
        return {
            kind: self.judge.request(f"{kind}|{index}", {"sentence1": triplet.anchor, "sentence2": text})
            for kind, text in texts.items()
        }

    def _unit(self, index: int, triplet: Triplet, found: Mapping[str, Verdict]) -> Unit:
        for kind in (POSITIVE, NEGATIVE):
            if found[kind].value is None:
                failed = Failure(
                    reason=f"{kind}: {found[kind].reason}",
                    raw_text=found[kind].answered,
                    method="multicsr",
                    generator=triplet.generator,
                    source_id=triplet.source_id,
                    seed=self.seed,
                )
                return Unit(triplet.id, index, (failed,))
        graded = replace(
            triplet,
            id="",
            method="multicsr",
            scores=(found[POSITIVE].value or 0.0, found[NEGATIVE].value or 0.0),
        )
        if graded.scores[0] < graded.scores[1]:
            graded = replace(
                graded,
                positive=graded.negative,
                negative=graded.positive,
                scores=graded.scores[::-1],
                label="turned",
            )
        reason = self._fault(*map(self._grade, graded.scores))
        return Unit(triplet.id, index, (), {reason: 1}) if reason else Unit(triplet.id, index, (graded,))

    def _grade(self, score: float) -> float:
        lowest, highest = self.judge.grades or (0, 1)
        return lowest + score * (highest - lowest)

    def _fault(self, positive: float, negative: float) -> str:
        """Return why a triplet with these grades is dropped, "" to keep it."""
        if positive < self.positive_from - ROUNDING:
            return "the positive's grade is too low"
        if negative > self.negative_to + ROUNDING:
            return "the negative's grade is too high"
        if positive - negative < self.gap - ROUNDING:
            return "both grades are too near"
        return ""
