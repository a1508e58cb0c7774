"""The cross-encoder: reads both sentences together, which is slow and accurate."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import Field, model_validator

from synthbench.base.frozen import added_field
from synthbench.data.conversions import why_impossible
from synthbench.data.dataset import SyntheticDataset
from synthbench.data.records import RecordKind
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import PairReader
from synthbench.models.work import Work
from synthbench.plugins.model_contracts import TrainingContext, TrainingSummary
from synthbench.training.list_losses import ListLoss
from synthbench.training.settings import (
    USUAL_LIST,
    BothOrders,
    LearningRate,
    Scheduler,
    TrainingSettings,
    WarmupRatio,
)


class CrossEncoder(TrainingSettings):
    """Fine-tunes a cross-encoder; learning rate and batch size as in Thakur et al. 2021, section 4.

    The paper names no schedule; linear with 10 % warm-up is usual in sentence-transformers' examples. It
    names no activation of the hidden layer either; BERT's own head has tanh.
    """

    version = 1
    model_kind = ModelKind.PAIR_SCORER

    base: PairReader = Field(description="the base model of the training")
    learning_rate: LearningRate = 1e-5
    scheduler: Scheduler = "linear"
    warmup_ratio: WarmupRatio = 0.1
    both_orders: BothOrders = False
    hidden_size: int | None = added_field(
        None,
        ge=1,
        le=65_536,
        description="size of a tanh layer between the [CLS] vector and the score. Default: the head of "
        "the base's architecture",
    )
    loss: ListLoss | None = added_field(
        None,
        description="a loss of sentence-transformers on graded lists (rankings). Default: the paper's binary "
        "cross-entropy on pairs",
    )

    @model_validator(mode="after")
    def _lists_have_one_order(self) -> Self:
        if self.loss is not None and self.both_orders:
            raise ValueError(f"both_orders needs scored pairs; loss {self.loss.name} learns from rankings")
        return self

    def pair_readers(self) -> Mapping[str, bool]:
        """Return {"base": False}: the base needs no trained head; {} if `hidden_size` makes a new one."""
        return {} if self.hidden_size is not None else {"base": False}

    def why_no_start(self) -> str:
        """Return why a trained model can't be the base: `hidden_size` replaces its head; "" if unset."""
        return (
            "" if self.hidden_size is None else "hidden_size makes a new head, the trained one would be lost"
        )

    @property
    def losses(self) -> tuple[str, ...]:
        """The class name of the loss in sentence-transformers."""
        return ("BinaryCrossEntropyLoss",) if self.loss is None else (self.loss.class_name,)

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the loss can't learn from records of this kind, "" if it can."""
        if self.loss is None:
            return why_impossible(kind, RecordKind.SCORED_PAIR)
        return self.loss.obstacle(kind)

    @property
    def sentences_per_record(self) -> float:
        """The number of sentences read per record; for rankings, 2 per candidate, whose number is assumed."""
        return 2 if self.loss is None else 2 * (USUAL_LIST - 1)

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Return the computation of training and dev evaluations; None if the number of steps is unknown."""
        # Training data are usually gold only: in both orders, every pair counts twice.
        doubled = num_records if num_records is None or not self.both_orders else 2 * num_records
        return super().work(doubled, num_dev)

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", as scored pairs or rankings, and save the model.

        Raises UserError without records, if records can't be converted, if the base can't be found, or as
        `fit` does.
        """
        from synthbench.base.runtime import device_name
        from synthbench.models.artifact import save_model
        from synthbench.models.building import build_cross_encoder, build_with_hidden_layer
        from synthbench.training.loop import TrainingJob, fit
        from synthbench.training.objectives import BINARY_CROSS_ENTROPY, training_table

        objective = BINARY_CROSS_ENTROPY if self.loss is None else self.loss.objective()
        table = training_table(data, objective, both_orders=self.both_orders, weights=context.weights)
        device = device_name(context.runtime)
        if self.hidden_size is None:
            model = build_cross_encoder(self.base, context.seed, device)
        else:
            model = build_with_hidden_layer(self.base, self.hidden_size, context.seed, device)

        summary = fit(TrainingJob(model, objective.loss(model), table), self, context)
        save_model(model, context.output, self.base.precision, self.base.dtype)
        return summary
