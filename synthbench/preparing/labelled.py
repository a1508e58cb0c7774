"""Steps that keep records confirmed by a labeller or an LLM."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from synthbench.data.answer_kinds import kind_in
from synthbench.data.records import RECORD_TYPES, Record, RecordKind, ScoredPair, Triplet
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.judging import Question, Verdict, verdicts
from synthbench.plugins.contracts import Records, Step, StepContext, TrainedModel
from synthbench.plugins.labellers import Labeller, Texts


class LabelledStep(Step):
    """Score each record's first sentence with each of its others, and use the scores."""

    labeller: Labeller = Field(description="the labeller that scores pairs")
    sources: dict[Literal["gold", "dev"], str] = Field(
        default_factory=dict,
        description="data of a trained labeller: `gold`, its training pairs, and `dev`, for selection",
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the labeller's training")

    @model_validator(mode="after")
    def _check_labeller_data(self) -> Self:
        if self.labeller.learns and "gold" not in self.sources:
            raise ValueError("a trained labeller needs sources: {gold: NAME}")
        if not self.labeller.learns and self.sources:
            raise ValueError(f"the labeller `{self.labeller.kind}` learns nothing; leave out sources")
        return self

    def needs_llm(self) -> bool:
        """Return whether the labeller is an LLM."""
        return self.labeller.uses_llm

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the labeller's model."""
        gold, dev = self.sources.get("gold", ""), self.sources.get("dev", "")
        return self.labeller.needs("labeller", self.seed, gold=gold, dev=dev)

    def others(self) -> tuple[str, ...]:
        """Return the sources for the labeller's training and selection."""
        return tuple(self.sources.values())

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return one request per record, a lower bound: triplets need one for each further negative."""
        return self.labeller.asks(num_records)

    def _scored(
        self, records: Records, score: "Scoring", context: StepContext
    ) -> Iterator[tuple[Record, Sequence[float]]]:
        """Yield the records with their scores; records without a clear score are dropped and counted."""
        pairs = sorted({pair for texts in records.text_rows() for pair in _pairs(texts)})
        found = score(len(pairs), pairs.__getitem__, "labeller", context)
        scores = {pairs[index]: verdict.value for index, verdict in found}
        num_clear = 0
        for record in records:
            values = [scores[pair] for pair in _pairs(record.texts())]
            clear = [value for value in values if value is not None]
            if len(clear) == len(values):
                num_clear += 1
                yield record, clear
        context.count_dropped("no clear score", len(records) - num_clear)


Scoring = Callable[[int, Texts, str, StepContext], Iterator[tuple[int, Verdict]]]
"""A labeller's function for scoring pairs."""


class KeepConsistent(LabelledStep):
    """Keep records whose intended label a labeller confirms.

    Scored pairs: the labeller's score differs by at most `tolerance`. Pairs: it is at most `tolerance` below
    1. Triplets: the positive's score is at least `margin` above every negative's.
    """

    version = 1
    kinds = frozenset({RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET})

    tolerance: float = Field(
        0.25,
        ge=0.0,
        lt=1.0,
        description="for pairs: maximum difference between the labeller's and the intended score",
    )
    margin: float = Field(
        0.0,
        ge=0.0,
        lt=1.0,
        description="for triplets: minimum difference between the positive's and a negative's score",
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the confirmed records; records without a clear score are dropped and counted."""
        num_unconfirmed = 0
        for record, scores in self._scored(records, self.labeller.verdicts, context):
            if self._confirms(record, scores):
                yield record
            else:
                num_unconfirmed += 1
        context.count_dropped("the labeller disagrees", num_unconfirmed)

    def _confirms(self, record: Record, labels: Sequence[float]) -> bool:
        if isinstance(record, Triplet):
            positive, *negatives = labels
            return all(positive - negative >= self.margin for negative in negatives)
        intended = record.score if isinstance(record, ScoredPair) else 1.0
        return abs(labels[0] - intended) <= self.tolerance + ROUNDING


class ScoreTriplets(LabelledStep):
    """Add a teacher's scores of positive and negatives to each triplet, for margin-MSE.

    `scale: own` uses the labeller's output, such as the logits of MS MARCO cross-encoders without an
    activation (Wang et al. 2022, GPL, section 3.2). `scale: logit` uses log(s / (1 - s)) of a score s in [0,
    1], the logit of a cross-encoder with a sigmoid; s is first limited to [0.0001, 0.9999].
    """

    version = 1
    kinds = frozenset({RecordKind.TRIPLET})
    scores_triplets = True

    scale: Literal["own", "logit"] = Field(
        "own",
        description="own: the labeller's scores unchanged, in any range; logit: the logits of its scores "
        "in [0, 1]",
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the triplets with scores; triplets without a clear score are dropped and counted."""
        labeller = self.labeller
        score = labeller.own_scores if self.scale == "own" else labeller.verdicts
        return (
            replace(record, scores=tuple(map(_logit, scores) if self.scale == "logit" else scores))
            for record, scores in self._scored(records, score, context)
            if isinstance(record, Triplet)
        )


LEAST = 1e-4
"""Distance of scores from 0 and 1 at least, since logits are unbounded there."""


def _logit(score: float) -> float:
    limited = min(max(score, LEAST), 1 - LEAST)
    return math.log(limited / (1 - limited))


ROUNDING = 1e-9
"""0.9 - 0.65 is a little more than 0.25 in binary."""


def _pairs(texts: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return the pairs to score: a record's first sentence with each of the others."""
    first, *others = texts
    return [(first, other) for other in others]


class JudgeStep(Step):
    """Keep records for which an LLM answers yes, or gives a high enough grade."""

    version = 1
    uses_llm = True

    question: Question = Field(description="the question about each record")
    least: float | None = Field(
        None, description="with `grades`: the lowest grade to keep. Default: the middle of the grades"
    )
    unclear: Literal["drop", "keep"] = Field(
        "drop", description="keep or drop records with an unclear answer; they are counted"
    )

    @model_validator(mode="after")
    def _is_a_grade(self) -> Self:
        grades = self.question.grades
        if self.least is None:
            return self
        if grades is None:
            raise ValueError("least needs question.grades; without them yes stays")
        if not grades[0] < self.least <= grades[1]:
            raise ValueError(f"least: must be above {grades[0]} and at most {grades[1]}, is {self.least:g}")
        return self

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the question can't be asked about this kind of record, "" if it can."""
        columns = [name for name in RECORD_TYPES[kind].text_fields if name != "candidates"]
        return super().obstacle(kind) or self.question.obstacle((*columns, "instruction", "label"))

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return one request per record."""
        return self.question.asks(num_records)

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the kept records; unclear answers are counted, whether kept or dropped."""
        asked = ((record.id, _texts(record)) for record in records)
        with context.progress.task("asking about records", len(records)) as task:
            found: dict[str, Verdict] = {}
            for key, verdict in verdicts(self.question, asked, context.llm):
                found[key] = verdict
                task.advance(1)
        unclear = {key for key, verdict in found.items() if verdict.value is None}
        high = {key for key, verdict in found.items() if verdict.value is not None and self._is_high(verdict)}
        stay = high | (unclear if self.unclear == "keep" else set())
        if self.unclear == "drop":
            for reason, number in self._reasons(found[key] for key in unclear).items():
                context.count_dropped(reason, number)
        context.measure("judge: unclear answers", float(len(unclear)))
        context.count_dropped(
            "no" if self.question.grades is None else "low grade", len(found) - len(high | unclear)
        )
        return (record for record in records if record.id in stay)

    def _reasons(self, unclear: Iterable[Verdict]) -> Counter[str]:
        """Count incomplete answers by kind, apart from complete but unclear ones."""
        return Counter(kind_in(verdict.reason) or "unclear answer" for verdict in unclear)

    def _is_high(self, verdict: Verdict) -> bool:
        grades = self.question.grades
        least = 0.5
        if grades is not None and self.least is not None:
            least = (self.least - grades[0]) / (grades[1] - grades[0])
        return verdict.value is not None and verdict.value >= least - ROUNDING


def _texts(record: Record) -> dict[str, str]:
    return {name: value for name, value in record.values().items() if isinstance(value, str)}
