"""The cross-encoder: both sentences are read together, which is slow and accurate."""

from collections.abc import Sequence

from pydantic import field_validator

from synthbench.data.dataset import SyntheticDataset
from synthbench.models.interfaces import ModelKind, PairScorer
from synthbench.models.pretrained import Pretrained
from synthbench.plugins import TrainingContext, TrainingSummary
from synthbench.training.settings import LearningRate, Scheduler, TrainingSettings, WarmupRatio


class CrossEncoder(TrainingSettings):
    """Fine-tunes a cross-encoder; learning rate and batch size as in Thakur et al. 2021, section 4.

    The paper names no schedule for it; linear with a tenth of warm-up is sentence-transformers' habit.
    """

    version = 1
    model_kind = ModelKind.PAIR_SCORER

    learning_rate: LearningRate = 1e-5
    scheduler: Scheduler = "linear"
    warmup_ratio: WarmupRatio = 0.1

    @field_validator("base")
    @classmethod
    def _reads_pairs(cls, base: Pretrained) -> Pretrained:
        if base.static or base.pooling is not None:
            raise ValueError("a cross-encoder has no static and no pooling")
        return base

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", other kinds than scored pairs converted to them.

        Raises UserError if there are none, or the base can't be found.
        """
        from synthbench.models.artifact import save_cross_encoder
        from synthbench.models.device import device_name
        from synthbench.models.pair_scorer import LengthBatchedPairScorer
        from synthbench.models.pretrained import build_cross_encoder
        from synthbench.training.examples import training_table
        from synthbench.training.loop import Job, fit
        from synthbench.training.objectives import BINARY_CROSS_ENTROPY

        table = training_table(data, BINARY_CROSS_ENTROPY)
        model = build_cross_encoder(self.base, context.seed, device_name(context.runtime))

        def scorer() -> PairScorer:
            return LengthBatchedPairScorer(model, context.runtime.batch_tokens)

        summary = fit(Job(model, BINARY_CROSS_ENTROPY.loss(model), table, scorer), self, context)
        save_cross_encoder(model, context.output)
        return summary
