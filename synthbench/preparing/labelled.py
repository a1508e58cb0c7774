"""Steps that keep records confirmed by a labeller or an LLM."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.data.answer_kinds import kind_in
from synthbench.data.draws import digest, rounded
from synthbench.data.records import RECORD_TYPES, Pair, Record, RecordKind, ScoredPair, Triplet
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.judging import Question, Verdict, verdicts
from synthbench.plugins.contracts import Records, Step, StepContext, TrainedModel
from synthbench.plugins.labellers import Labeller, Texts
from synthbench.preparing.sampling import check_amount

LABELLER, KEEP_BEST = "labeller", "keep-best"


class WithLabellers(Step):
    """A step that may have labellers; `sources` names the data that trained labellers learn from."""

    sources: dict[Literal["gold", "dev"], str] = Field(
        default_factory=dict,
        description="sources for a trained labeller: `gold` (training pairs) and `dev` (model selection)",
    )
    seed: int = Field(0, ge=0, lt=2**32, description="seed of the labeller's training")

    @model_validator(mode="after")
    def _check_labeller_data(self) -> Self:
        labellers = self.labellers().values()
        if any(labeller.learns for labeller in labellers):
            if "gold" not in self.sources:
                raise ValueError("a trained labeller needs sources: {gold: NAME}")
        elif self.sources:
            kinds = ", ".join(f"`{labeller.kind}`" for labeller in labellers) or "none"
            raise ValueError(f"the labeller {kinds} learns nothing; leave out sources")
        return self

    @abstractmethod
    def labellers(self) -> Mapping[str, Labeller]:
        """Return key in the settings -> labeller."""

    def needs_llm(self) -> bool:
        """Return whether any labeller is an LLM."""
        return any(labeller.uses_llm for labeller in self.labellers().values())

    def needs(self) -> Mapping[str, TrainedModel]:
        """Return the models of all labellers."""
        gold, dev = self.sources.get("gold", ""), self.sources.get("dev", "")
        return {
            name: model
            for key, labeller in self.labellers().items()
            for name, model in labeller.needs(key, self.seed, gold=gold, dev=dev).items()
        }

    def others(self) -> tuple[str, ...]:
        """Return the sources for the labeller's training and selection."""
        return tuple(self.sources.values())


class LabelledStep(WithLabellers):
    """A step that scores each pair of a record's first sentence and one of its other sentences."""

    labeller: Labeller = Field(description="the labeller that scores pairs")

    def labellers(self) -> Mapping[str, Labeller]:
        """Return the labeller."""
        return {LABELLER: self.labeller}

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return a lower bound of requests and tokens: one request per record; None without an LLM.

        A triplet takes a request for its positive and a request for each negative.
        """
        return self.labeller.asks(num_records)

    def _scored(
        self, records: Records, score: "Scoring", context: StepContext
    ) -> Iterator[tuple[Record, Sequence[float]]]:
        """Yield each record with its pairs' scores; drop and count records with an unclear score."""
        pairs = sorted({pair for texts in records.text_rows() for pair in _pairs(texts)})
        found = score(len(pairs), pairs.__getitem__, LABELLER, context)
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
"""A labeller's function that yields each pair's index and verdict: `own_scores` or `verdicts`."""


class KeepConsistent(LabelledStep):
    """Keep records whose intended label a labeller confirms.

    Scored pairs: the labeller's score differs from the record's score by at most `tolerance`. Pairs: the
    labeller's score is at least 1 - `tolerance`. Triplets: the positive's score exceeds each negative's score
    by at least `margin`.
    """

    version = 1
    kinds = frozenset({RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET})
    after_answers = frozenset({"tolerance", "margin"})

    tolerance: float = Field(
        0.25,
        ge=0.0,
        lt=1.0,
        description="for pairs and scored pairs: maximum difference between the labeller's score and the "
        "intended score, which is 1 for pairs",
    )
    margin: float = Field(
        0.0,
        ge=0.0,
        lt=1.0,
        description="for triplets: minimum of the positive's score minus any negative's score",
    )

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the confirmed records; all others are dropped and counted."""
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


class KeepBest(WithLabellers):
    """Keep the records whose first two sentences a labeller scores highest, or an LLM's likeliest pairs.

    InPars-v2 (Jeronymo et al. 2023) keeps the best 10 % of the LLM's queries by a reranker's score.
    InPars (Bonifacio et al. 2022) keeps the queries whose tokens have the highest mean log-probability.
    """

    version = 1
    kinds = frozenset({RecordKind.SCORED_PAIR, RecordKind.PAIR, RecordKind.TRIPLET})
    after_answers = frozenset({"size", "fraction"})

    labeller: Labeller | None = added_field(
        None,
        description="the labeller that scores pairs; set this or `by`",
    )
    by: Literal["likelihood"] | None = added_field(
        None,
        description="likelihood: keep the pairs with the highest `likelihood`, the LLM's probability of their"
        " anchors' tokens; some methods store this column if they have `likelihoods: true`",
    )
    size: int | None = Field(None, ge=1, description="number of records to keep; set this or `fraction`")
    fraction: float | None = Field(None, gt=0.0, le=1.0, description="share of the records to keep")

    @model_validator(mode="after")
    def _one_amount(self) -> Self:
        if (self.size is None) == (self.fraction is None):
            raise ValueError("give either size or fraction")
        if (self.labeller is None) == (self.by is None):
            raise ValueError("needs either `labeller` or `by: likelihood`")
        return self

    def labellers(self) -> Mapping[str, Labeller]:
        """Return the labeller, if there is one."""
        return {} if self.labeller is None else {LABELLER: self.labeller}

    def obstacle(self, kind: RecordKind) -> str:
        """Return why records of this kind are not accepted, "" if they are."""
        if self.by and kind != RecordKind.PAIR:
            return f"`by: likelihood` is for pair records, not for {kind} records"
        return super().obstacle(kind)

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return requests and tokens: one request per record; None without an LLM."""
        return None if self.labeller is None else self.labeller.asks(num_records)

    def expected(self, num_records: int) -> int:
        """Return how many records to keep; if fewer have a clear score or likelihood, fewer are kept."""
        return rounded(num_records * (self.fraction or 0.0)) if self.size is None else self.size

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the kept records in input order; among equal scores, a hash of the id decides.

        Raises UserError if there are fewer records than `size`, if `fraction` keeps none of them, or if no
        pair has a likelihood.
        """
        size = self.expected(len(records))
        check_amount(KEEP_BEST, size, self.fraction, len(records))
        if self.labeller is None:
            pairs = (record for record in records if isinstance(record, Pair))
            clear, unclear = {pair.id: pair.likelihood for pair in pairs if pair.likelihood}, "no likelihood"
            if len(records) and not clear:
                raise UserError(
                    f"{KEEP_BEST}: no pair has a likelihood; some methods store it by `likelihoods: true`"
                )
        else:
            scores = _of_first_two(self.labeller.own_scores, records, context)
            clear = {key: verdict.value for key, verdict in scores if verdict.value is not None}
            unclear = "no clear score"
        ranked = sorted(clear, key=lambda key: (-clear[key], digest(KEEP_BEST, key)))
        kept = set(ranked[:size])
        context.count_dropped(unclear, len(records) - len(clear))
        context.count_dropped("not among the best", len(clear) - len(kept))
        return (record for record in records if record.id in kept)


class ScoreTriplets(LabelledStep):
    """Add a teacher's scores of the positive and the negatives to each triplet, for margin-MSE.

    The teacher is the labeller. `scale: own` uses its raw scores, such as the logits of MS MARCO
    cross-encoders without an activation (Wang et al. 2022, GPL, section 3.2). `scale: logit` turns a score s
    in [0, 1] into log(s / (1 - s)), the logit of a cross-encoder with a sigmoid; s is first limited to
    [0.0001, 0.9999].
    """

    version = 1
    kinds = frozenset({RecordKind.TRIPLET})
    scores_triplets = True
    after_answers = frozenset({"scale"})

    scale: Literal["own", "logit"] = Field(
        "own",
        description="own: the labeller's scores unchanged, in any range; logit: the logits of its scores "
        "in [0, 1]",
    )

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return a lower bound of requests and tokens: two requests per triplet; None without an LLM.

        Each further negative takes one more request.
        """
        return super().asks(2 * num_records)

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
"""Scores are moved at least this far from 0 and 1, where logits are unbounded."""


def _logit(score: float) -> float:
    limited = min(max(score, LEAST), 1 - LEAST)
    return math.log(limited / (1 - limited))


ROUNDING = 1e-9
"""Tolerance of comparisons: 0.9 - 0.65 is a little more than 0.25 in binary."""


def _pairs(texts: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return the pairs to score: a record's first sentence with each of its other sentences."""
    first, *others = texts
    return [(first, other) for other in others]


class JudgeStep(WithLabellers):
    """Keep records for which an LLM answers a question with yes, or with a high enough grade.

    With `labeller` instead of `question`, keep records whose first two sentences get a high enough score.
    """

    version = 1
    uses_llm = True
    after_answers = frozenset({"least", "unclear"})

    question: Question | None = added_field(
        None,
        description="the question about each record, of any kind; slots are the record's texts, such as"
        " {sentence1}, and {instruction} and {label}",
    )
    labeller: Labeller | None = added_field(
        None,
        description="the labeller that scores pairs, instead of a question",
    )
    sources: dict[Literal["gold", "dev"], str] = added_field(
        {},
        description="sources for a trained labeller: `gold` (training pairs) and `dev` (model selection)",
    )
    seed: int = added_field(0, ge=0, lt=2**32, description="seed of the labeller's training")
    least: float | None = Field(
        None,
        description="the lowest grade to keep; with a labeller, the lowest score to keep, in [0, 1]. Default:"
        " the middle of the scale",
    )
    unclear: Literal["drop", "keep"] = Field(
        "drop",
        description="whether to drop or keep records with an unclear answer; either way they are counted",
    )

    @model_validator(mode="after")
    def _is_a_grade(self) -> Self:
        if (self.question is None) == (self.labeller is None):
            raise ValueError("needs either `question` or `labeller`")
        if self.least is None:
            return self
        if self.question is not None and self.question.grades is None:
            raise ValueError("least needs question.grades; without them yes stays")
        lowest, highest = self._grades
        if not lowest < self.least <= highest:
            raise ValueError(f"least: must be above {lowest:g} and at most {highest:g}, is {self.least:g}")
        return self

    @property
    def _grades(self) -> tuple[float, float]:
        """The lowest and highest grade; 0 and 1 for a labeller and for answers of yes or no."""
        return (0, 1) if self.question is None or self.question.grades is None else self.question.grades

    def labellers(self) -> Mapping[str, Labeller]:
        """Return the labeller, if there is one."""
        return {} if self.labeller is None else {LABELLER: self.labeller}

    def needs_llm(self) -> bool:
        """Return whether the step asks an LLM its question, or has an LLM as labeller."""
        return self.question is not None or super().needs_llm()

    def obstacle(self, kind: RecordKind) -> str:
        """Return why this kind of record can't be judged, "" if it can."""
        names = RECORD_TYPES[kind].text_fields
        if self.question is None:
            two = len(names) > 1 and "candidates" not in names
            return super().obstacle(kind) or ("" if two else f"a labeller scores pairs, not {kind} records")
        columns = [name for name in names if name != "candidates"]
        return super().obstacle(kind) or self.question.obstacle((*columns, "instruction", "label"))

    def asks(self, num_records: int) -> ChatAmount | None:
        """Return requests and tokens: one request per record; None without an LLM."""
        if self.question is not None:
            return self.question.asks(num_records)
        return None if self.labeller is None else self.labeller.asks(num_records)

    def apply(self, records: Records, context: StepContext) -> Iterable[Record]:
        """Yield the kept records; unclear answers are counted, whether kept or dropped."""
        found = dict(self._verdicts(records, context))
        unclear = {key for key, verdict in found.items() if verdict.value is None}
        high = {key for key, verdict in found.items() if self._is_high(verdict)}
        stay = high | (unclear if self.unclear == "keep" else set())
        if self.unclear == "drop":
            # Incomplete answers are counted by kind, apart from complete but unclear ones.
            for key in unclear:
                context.count_dropped(kind_in(found[key].reason) or "unclear answer")
        context.measure("judge: unclear answers", float(len(unclear)))
        is_graded = self.question is None or self.question.grades is not None
        context.count_dropped("low grade" if is_graded else "no", len(found) - len(high | unclear))
        return (record for record in records if record.id in stay)

    def _verdicts(self, records: Records, context: StepContext) -> Iterator[tuple[str, Verdict]]:
        """Yield each record's id and verdict."""
        if self.labeller is not None:
            yield from _of_first_two(self.labeller.verdicts, records, context)
        elif self.question is not None:
            asked = ((record.id, _texts(record)) for record in records)
            with context.progress.task("asking about records", len(records)) as task:
                for each in verdicts(self.question, asked, context.llm):
                    yield each
                    task.advance(1)

    def _is_high(self, verdict: Verdict) -> bool:
        lowest, highest = self._grades
        least = 0.5 if self.least is None else (self.least - lowest) / (highest - lowest)
        return verdict.value is not None and verdict.value >= least - ROUNDING


def _of_first_two(score: "Scoring", records: Records, context: StepContext) -> Iterator[tuple[str, Verdict]]:
    """Yield each record's id, and the verdict on its first two sentences."""
    texts = [(record.id, record.texts()[:2]) for record in records]
    pairs = sorted({pair for _, pair in texts})
    scored = score(len(pairs), lambda index: (pairs[index][0], pairs[index][1]), LABELLER, context)
    found = {pairs[index]: verdict for index, verdict in scored}
    return ((key, found[pair]) for key, pair in texts)


def _texts(record: Record) -> dict[str, str]:
    return {name: value for name, value in record.values().items() if isinstance(value, str)}
