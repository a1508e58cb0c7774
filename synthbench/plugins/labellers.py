"""Labellers: what gives two sentences a score of their similarity."""

import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from synthbench.base.errors import UserError
from synthbench.llm.endpoint import ChatAmount
from synthbench.llm.judging import Question, Verdict, verdicts
from synthbench.models.batching import length_sorted_units
from synthbench.models.interfaces import PairScorer, symmetric_scores
from synthbench.models.pretrained import Pretrained
from synthbench.plugins.contracts import PluginContext, TrainedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH_PAIRS = 1024
"""Pairs that are scored in one call: all that a killed run has to score again."""
SEED_OPTIMIZATION = "seed_optimization"
SENTENCES = ("sentence1", "sentence2")
LABELLERS = ("cross_encoder", "ready_cross_encoder", "encoder", "judge")
BEYOND = 0.5
"""A ready cross-encoder whose scores leave [0, 1] by more than this gives no similarities."""
Texts = Callable[[int], tuple[str, str]]
"""The two sentences of a pair by its index."""


class Judge(Question):
    """An LLM as judge: the question on two sentences, {sentence1} and {sentence2}."""

    prompt: str = Field(
        "How similar in meaning are the two sentences? 5: they say the same. 4: they differ in a small"
        " detail. 3: nearly the same, but something that matters differs. 2: they share some details. 1: they"
        " share the topic alone. 0: they have nothing in common.\nSentence 1: {sentence1}\nSentence 2:"
        " {sentence2}",
        description="the question; {sentence1} and {sentence2} stand for the texts, how to answer is added",
    )
    grades: tuple[int, int] | None = Field(
        (0, 5), description="the lowest and the highest grade that may be answered; null: yes or no"
    )

    @model_validator(mode="after")
    def _is_on_pairs(self) -> Self:
        wrong = self.obstacle(SENTENCES)
        if wrong:
            raise ValueError(wrong)
        return self


class Labeller(BaseModel):
    """What gives a pair a score in [0, 1]: one of four keys says which."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    cross_encoder: dict[str, Any] | None = Field(
        None,
        description="trained on gold pairs: the settings of the trainer `cross-encoder`, such as"
        " `base: {model: ...}`; `seed_optimization`, as `train` has it, may be given beside them",
    )
    ready_cross_encoder: dict[str, Any] | None = Field(
        None, description="a cross-encoder as it is: the settings of the trainer `none-cross-encoder`"
    )
    encoder: dict[str, Any] | None = Field(
        None, description="the cosine of an encoder as it is, at least 0: the settings of the trainer `none`"
    )
    judge: Judge | None = Field(None, description="an LLM that is asked about each pair")
    both_orders: bool = Field(
        True,
        description="of a cross-encoder, take the mean score of (a, b) and (b, a); false: of (a, b) only",
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
        """The key that is given."""
        return next(name for name in LABELLERS if getattr(self, name) is not None)

    @property
    def learns(self) -> bool:
        """Whether it is trained on gold pairs."""
        return self.cross_encoder is not None

    @property
    def uses_llm(self) -> bool:
        """Whether it asks an LLM."""
        return self.judge is not None

    def needs(self, key: str, seed: int, *, gold: str = "gold", dev: str = "dev") -> dict[str, TrainedModel]:
        """Return the dependency, if there is one, for a labeller that stands under `key` of the settings.

        `gold` and `dev` are what the plug-in calls the pairs to train on and those that select.
        """
        if self.cross_encoder is not None:
            return {self._name(key): trained_on_gold("cross-encoder", self.cross_encoder, seed, gold, dev)}
        if self.ready_cross_encoder is not None:
            return {self._name(key): TrainedModel("none-cross-encoder", self.ready_cross_encoder, (), 0)}
        if self.encoder is not None:
            return {self._name(key): TrainedModel("none", self.encoder, (), 0)}
        return {}

    def asks(self, num_pairs: int) -> ChatAmount | None:
        """Return the requests and tokens that so many pairs take; None without an LLM."""
        return None if self.judge is None else self.judge.asks(num_pairs)

    @property
    def base(self) -> Pretrained | None:
        """The model that scores, or that training starts from; None of an LLM, or if it is not readable."""
        settings = self.cross_encoder or self.ready_cross_encoder or self.encoder or {}
        try:
            return Pretrained.model_validate_json(json.dumps(settings.get("base")))
        except ValidationError:
            return None

    def verdicts(
        self,
        number: int,
        texts: Texts,
        key: str,
        context: PluginContext,
        is_done: Callable[[int], bool] = lambda _: False,
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield the index and the verdict of each pair that is not done, in any order.

        A model scores in batches of like length; a batch that is not wholly done is scored whole. Raises
        UserError if a ready cross-encoder's scores are no similarities in [0, 1].
        """
        return self._verdicts(number, texts, key, context, is_done, self._limited)

    def own_scores(
        self, number: int, texts: Texts, key: str, context: PluginContext
    ) -> Iterator[tuple[int, Verdict]]:
        """Yield the index and score of each pair as the labeller gives it: a cross-encoder's may be logits.

        An encoder's are cosines in [-1, 1], a judge's grades in [0, 1].
        """
        return self._verdicts(number, texts, key, context, lambda _: False, lambda scores: scores)

    def _verdicts(
        self,
        number: int,
        texts: Texts,
        key: str,
        context: PluginContext,
        is_done: Callable[[int], bool],
        limit: "Callable[[NDArray[np.float64]], NDArray[np.float64]]",
    ) -> Iterator[tuple[int, Verdict]]:
        with context.progress.task("labelling pairs", number) as task:
            if self.judge is not None:
                asked = (
                    (str(index), dict(zip(SENTENCES, texts(index), strict=True)))
                    for index in range(number)
                    if context.is_mine(index) and not is_done(index)
                )
                for name, verdict in verdicts(self.judge, asked, context.chat()):
                    yield int(name), verdict
                    task.advance(1)
                return
            for batch, scores in scored_batches(
                lambda: self._scorer(key, context),
                number,
                texts,
                both_orders=self._reads_both,
                is_due=lambda piece, batch: context.is_mine(piece) and not all(map(is_done, batch)),
            ):
                if len(scores):
                    labels = zip(batch, limit(scores).tolist(), strict=True)
                    yield from ((index, Verdict(score)) for index, score in labels if not is_done(index))
                task.advance(len(batch))

    @property
    def _reads_both(self) -> bool:
        return self.both_orders and self.encoder is None

    def _scorer(self, key: str, context: PluginContext) -> PairScorer:
        if self.encoder is None:
            return context.pair_scorer(self._name(key))
        from synthbench.models.pair_scorer import pair_scorer

        return pair_scorer(context.encoder(self._name(key)))

    def _limited(self, scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return similarities in [0, 1]; raise UserError if these are none."""
        lowest, highest = float(scores.min()), float(scores.max())
        if self.ready_cross_encoder is not None and (lowest < -BEYOND or highest > 1 + BEYOND):
            model = "" if self.base is None else self.base.model
            raise UserError(
                f"the cross-encoder {model} gives scores from {lowest:.2f} to {highest:.2f}; a labeller gives"
                " similarities from 0 to 1, as one that was trained on STS does"
            )
        return scores.clip(0.0, 1.0)

    def _name(self, key: str) -> str:
        return f"{key}.{self.kind}"


def trained_on_gold(
    trainer: str, settings: Mapping[str, Any], seed: int, gold: str = "gold", dev: str = "dev"
) -> TrainedModel:
    """Return a dependency: a model trained on gold and, if `dev` has a source, selected on it.

    `settings` are those of the trainer, beside which `seed_optimization` may be given.
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


def scored_batches(
    load: Callable[[], PairScorer],
    number: int,
    texts: Texts,
    *,
    both_orders: bool,
    is_due: Callable[[int, Sequence[int]], bool],
) -> "Iterator[tuple[Sequence[int], NDArray[np.float64]]]":
    """Yield the indices of a batch of pairs of like length with their scores; without those, if not due.

    `is_due` is given the batch's number and its indices. All pairs of a batch are scored, done ones too: the
    last bits of a score depend on its batch. The scorer is loaded for the first batch that is due.
    """
    import numpy as np

    scorer: PairScorer | None = None
    lengths = array("L", (sum(map(len, texts(index))) for index in range(number)))
    for piece, batch in enumerate(length_sorted_units(lengths, BATCH_PAIRS)):
        if not is_due(piece, batch):
            yield batch, np.zeros(0)
            continue
        scorer = scorer or load()
        pairs = [texts(index) for index in batch]
        yield batch, symmetric_scores(scorer, pairs) if both_orders else scorer.score(pairs)
