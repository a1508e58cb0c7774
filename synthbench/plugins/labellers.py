"""Labellers: score the similarity of sentence pairs."""

import json
from array import array
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synthbench.base.errors import UserError
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.judging import Grades, Question, Verdict, verdicts
from synthbench.models.batching import length_sorted_units
from synthbench.models.interfaces import PairScorer, symmetric_scores
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.contracts import PluginContext, TrainedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_PAIRS = 1024
"""Pairs scored per call; after a kill, at most these are scored again."""
SEED_OPTIMIZATION = "seed_optimization"
SENTENCES = ("sentence1", "sentence2")
LABELLERS = ("cross_encoder", "ready_cross_encoder", "encoder", "judge")
BEYOND = 0.5
"""How far outside [0, 1] a pretrained cross-encoder's scores may be; beyond it they are no similarities."""
Texts = Callable[[int], tuple[str, str]]
"""Returns the two sentences of a pair, given its index."""


MEANINGS = (
    "they say the same",
    "they differ in a small detail",
    "nearly the same, but something that matters differs",
    "they share some details",
    "they share the topic alone",
    "they have nothing in common",
)
"""What grades mean in the default question, from the highest to the lowest."""


def similarity_question(grades: tuple[int, int] | None) -> str:
    """Return the default question for a scale, explaining up to six grades; None: a yes-or-no question."""
    texts = "\nSentence 1: {sentence1}\nSentence 2: {sentence2}"
    if grades is None:
        return f"Do the two sentences say the same?{texts}"
    lowest, highest = grades
    last = len(MEANINGS) - 1
    steps = min(last, highest - lowest)
    shares = [step / steps for step in range(steps + 1)]  # of the way down the scale
    meanings = " ".join(
        f"{round(highest - share * (highest - lowest))}: {MEANINGS[round(share * last)]}." for share in shares
    )
    return f"How similar in meaning are the two sentences? {meanings}{texts}"


class Judge(Question):
    """An LLM as judge: a question about two sentences, {sentence1} and {sentence2}."""

    explain: ClassVar[str] = "Explain in one sentence what they share and where they differ"

    prompt: str = Field(
        similarity_question((0, 5)),
        description="the question; {sentence1} and {sentence2} are replaced by the texts, and "
        "instructions for the answer are appended; the default names grades of your scale",
    )
    grades: Grades = Field((0, 5), description="lowest and highest permitted grade; `yes-no`: yes or no")

    @model_validator(mode="after")
    def _default_question_has_the_grades(self) -> Self:
        if "prompt" not in self.model_fields_set:
            object.__setattr__(self, "prompt", similarity_question(self.grades))
        return self

    @model_validator(mode="after")
    def _is_on_pairs(self) -> Self:
        wrong = self.obstacle(SENTENCES)
        if not wrong and not all(f"{{{name}}}" in self.prompt for name in SENTENCES):
            wrong = "the prompt needs both {sentence1} and {sentence2}"
        if wrong:
            raise ValueError(wrong)
        return self


class Labeller(BaseModel):
    """Scores pairs in [0, 1]; exactly one of four keys names the kind of labeller."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    cross_encoder: dict[str, Any] | None = Field(
        None,
        description="a cross-encoder trained on gold pairs: settings of the trainer `cross-encoder`, such "
        "as `base: {model: ...}`, and optionally `seed_optimization`, as in `train`",
    )
    ready_cross_encoder: dict[str, Any] | None = Field(
        None,
        description="a pretrained cross-encoder: settings of the trainer `none-cross-encoder`",
    )
    encoder: dict[str, Any] | None = Field(
        None, description="a pretrained encoder (cosines below 0 count as 0): settings of the trainer `none`"
    )
    judge: Judge | None = Field(None, description="an LLM, asked about each pair")
    both_orders: bool = Field(
        True,
        description="for a cross-encoder: mean score of (a, b) and (b, a); false: only (a, b)",
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [name for name in LABELLERS if getattr(self, name) is not None]
        if len(given) != 1:
            found = f"has {' and '.join(given)}" if given else "has none"
            raise ValueError(f"needs one of {', '.join(LABELLERS)}; {found}")
        return self

    @property
    def kind(self) -> str:
        """The kind of labeller: the key that is set, such as "judge"."""
        return next(name for name in LABELLERS if getattr(self, name) is not None)

    @property
    def learns(self) -> bool:
        """Whether the labeller is trained on gold pairs."""
        return self.cross_encoder is not None

    @property
    def uses_llm(self) -> bool:
        """Whether the labeller asks an LLM."""
        return self.judge is not None

    def needs(self, key: str, seed: int, *, gold: str = "gold", dev: str = "dev") -> dict[str, TrainedModel]:
        """Return {dependency's name: the labeller's model}, for a plug-in's `needs`; {} for an LLM judge.

        `key` is the labeller's key in the plug-in's settings. `gold` and `dev` are the plug-in's names for
        training and selection pairs.
        """
        if self.cross_encoder is not None:
            return {self._name(key): trained_on_gold("cross-encoder", self.cross_encoder, seed, gold, dev)}
        if self.ready_cross_encoder is not None:
            return {self._name(key): TrainedModel("none-cross-encoder", self.ready_cross_encoder, (), 0)}
        if self.encoder is not None:
            return {self._name(key): TrainedModel("none", self.encoder, (), 0)}
        return {}

    def asks(self, num_pairs: int) -> ChatAmount | None:
        """Return the requests and tokens for `num_pairs` pairs; None without an LLM."""
        return None if self.judge is None else self.judge.asks(num_pairs)

    @property
    def base(self) -> Pretrained | None:
        """The base model. None for an LLM judge or unreadable settings."""
        settings = self.cross_encoder or self.ready_cross_encoder or self.encoder or {}
        try:
            return Pretrained.model_validate_json(json.dumps(settings.get("base")))
        except ValidationError:
            return None

    def own_scores(
        self, number: int, texts: Texts, key: str, context: PluginContext
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield index and raw score of each of this shard's pairs; a cross-encoder's scores may be logits.

        An encoder's scores are cosines in [-1, 1], a judge's are grades scaled to [0, 1].
        """
        return self.verdicts(number, texts, key, context, is_limited=False)

    def verdicts(
        self,
        number: int,
        texts: Texts,
        key: str,
        context: PluginContext,
        is_done: Callable[[int], bool] = lambda _: False,
        *,
        is_limited: bool = True,
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield index and verdict of each of this shard's pairs that is not done, in any order.

        A model scores pairs in batches of similar length; a batch is scored whole even if some of its pairs
        are done. A judge's failed request gives a verdict without a value.

        With `is_limited`, scores are clipped to [0, 1]. Raises UserError then if a score of a pretrained
        cross-encoder lies outside [0, 1] by more than BEYOND.
        """
        with context.progress.task("labelling pairs", number) as task:
            if self.judge is not None:
                asked = (
                    (str(index), dict(zip(SENTENCES, texts(index), strict=True)))
                    for index in range(number)
                    if context.is_mine(index) and not is_done(index)
                )
                for name, verdict in verdicts(self.judge, asked, context.llm):
                    yield int(name), verdict
                    task.advance(1)
                return
            scorer: PairScorer | None = None
            lengths = array("L", (sum(map(len, texts(index))) for index in range(number)))
            for piece, batch in enumerate(length_sorted_units(lengths, BATCH_PAIRS)):
                if context.is_mine(piece) and not all(map(is_done, batch)):
                    scorer = scorer or self._scorer(key, context)
                    # Done pairs, too: the last bits of a score depend on its batch.
                    pairs = [texts(index) for index in batch]
                    both = self.reads_both_orders
                    scores = symmetric_scores(scorer, pairs) if both else scorer.score(pairs)
                    scores = self._limited(scores) if is_limited else scores
                    labels = zip(batch, scores.tolist(), strict=True)
                    yield from ((index, Verdict(score)) for index, score in labels if not is_done(index))
                task.advance(len(batch))

    def generator(self, context: PluginContext) -> str:
        """Return the labeller's name for records: the LLM's name, or the kind of labeller and its model."""
        base = self.base
        return context.llm.model if base is None else f"{self.kind} {base.model}"

    @property
    def reads_both_orders(self) -> bool:
        """Whether a cross-encoder reads each pair in both orders."""
        return self.both_orders and self.encoder is None and self.judge is None

    def _scorer(self, key: str, context: PluginContext) -> PairScorer:
        if self.encoder is None:
            return context.pair_scorer(self._name(key))
        from synthbench.models.pair_scorer import pair_scorer

        return pair_scorer(context.encoder(self._name(key)))

    def _limited(self, scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Clip scores to [0, 1]; raise UserError if a pretrained cross-encoder's are too far outside."""
        lowest, highest = float(scores.min()), float(scores.max())
        if self.ready_cross_encoder is not None and (lowest < -BEYOND or highest > 1 + BEYOND):
            model = "" if self.base is None else self.base.model
            raise UserError(
                f"the cross-encoder {model} gives scores from {lowest:.2f} to {highest:.2f}; a labeller gives"
                " similarities from 0 to 1, as one that was trained on STS does"
            )
        return scores.clip(0.0, 1.0)

    def _name(self, key: str) -> str:
        return f"{key}.{self.kind}" if key else self.kind


def trained_on_gold(
    trainer: str, settings: Mapping[str, Any], seed: int, gold: str = "gold", dev: str = "dev"
) -> TrainedModel:
    """Return a dependency: a model trained on gold and, if `dev` has a source, selected on it.

    `settings` are the trainer's, optionally with `seed_optimization`.
    """
    return TrainedModel(
        trainer=trainer,
        config={key: value for key, value in settings.items() if key != SEED_OPTIMIZATION},
        data=(gold,),
        seed=seed,
        evaluator="sts",
        selection=dev,
        seed_optimization=settings.get(SEED_OPTIMIZATION),
    )
