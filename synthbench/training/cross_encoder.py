"""The cross-encoder: both sentences are read together, which is slow and accurate."""

from collections.abc import Mapping, Sequence

from pydantic import Field, field_validator

from synthbench.data.dataset import SyntheticDataset
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import Pretrained
from synthbench.models.work import Work
from synthbench.plugins.contracts import TrainingContext, TrainingSummary
from synthbench.training.settings import BothOrders, LearningRate, Scheduler, TrainingSettings, WarmupRatio


class CrossEncoder(TrainingSettings):
    """Fine-tunes a cross-encoder; learning rate and batch size as in Thakur et al. 2021, section 4.

    The paper names no schedule for it; linear with a tenth of warm-up is sentence-transformers' habit. Nor
    does it name the activation of its hidden layer; tanh is that of BERT's own head.
    """

    version = 1
    model_kind = ModelKind.PAIR_SCORER

    learning_rate: LearningRate = 1e-5
    scheduler: Scheduler = "linear"
    warmup_ratio: WarmupRatio = 0.1
    both_orders: BothOrders = False
    hidden_size: int | None = Field(
        None,
        ge=1,
        le=65_536,
        exclude_if=lambda size: size is None,
        description="size of a layer with tanh between the vector of [CLS] and the score; null: the head that"
        " the base's own architecture has",
    )

    @field_validator("base")
    @classmethod
    def _reads_pairs(cls, base: Pretrained) -> Pretrained:
        if fault := base.why_no_pair_reader():
            raise ValueError(fault)
        return base

    def pair_readers(self) -> Mapping[str, bool]:
        """Return the base, unless a hidden layer takes the place of its head."""
        return {} if self.hidden_size is not None else {"base": False}

    def why_no_start(self) -> str:
        """Return why it can't start from a trained model: a new head would replace the trained one."""
        return (
            "" if self.hidden_size is None else "hidden_size makes a new head, the trained one would be lost"
        )

    @property
    def losses(self) -> tuple[str, ...]:
        """The library's loss."""
        return ("BinaryCrossEntropyLoss",)

    def work(self, num_records: int | None, num_dev: int | None) -> Work | None:
        """Return what the steps and the scoring of dev pairs compute; None if the steps are unknown."""
        # It is trained on gold alone, as a rule: every pair counts twice in both orders.
        doubled = num_records if num_records is None or not self.both_orders else 2 * num_records
        return super().work(doubled, num_dev)

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", other kinds than scored pairs converted to them.

        Raises UserError if there are none, or the base can't be found.
        """
        from synthbench.base.runtime import device_name
        from synthbench.models.artifact import save_model
        from synthbench.models.pretrained import build_cross_encoder, build_with_hidden_layer
        from synthbench.training.loop import TrainingJob, fit
        from synthbench.training.objectives import BINARY_CROSS_ENTROPY, training_table

        table = training_table(
            data, BINARY_CROSS_ENTROPY, both_orders=self.both_orders, weights=context.weights
        )
        device = device_name(context.runtime)
        if self.hidden_size is None:
            model = build_cross_encoder(self.base, context.seed, device)
        else:
            model = build_with_hidden_layer(self.base, self.hidden_size, context.seed, device)

        summary = fit(TrainingJob(model, BINARY_CROSS_ENTROPY.loss(model), table), self, context)
        save_model(model, context.output, self.base.precision, self.base.dtype)
        return summary
