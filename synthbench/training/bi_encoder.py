"""The bi-encoder: sentences are embedded one by one, similarity is the cosine."""

from collections.abc import Sequence

from synthbench.data.dataset import SyntheticDataset
from synthbench.models.interfaces import ModelKind
from synthbench.plugins import TrainingContext, TrainingSummary
from synthbench.training.settings import BothOrders, LearningRate, Scheduler, TrainingSettings, WarmupRatio


class BiEncoder(TrainingSettings):
    """Fine-tunes an encoder; defaults as in Thakur et al. 2021, section 4 and table 8."""

    version = 1
    model_kind = ModelKind.ENCODER

    learning_rate: LearningRate = 2e-5
    scheduler: Scheduler = "constant"
    warmup_ratio: WarmupRatio = 0.0
    both_orders: BothOrders = False

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Train on all records with split "train", other kinds than scored pairs converted to them.

        Raises UserError if there are none, or the base can't be found.
        """
        from synthbench.models.artifact import save_model
        from synthbench.models.pretrained import build_encoder
        from synthbench.runtime import device_name
        from synthbench.training.loop import Job, fit
        from synthbench.training.objectives import COSINE_SIMILARITY, training_table

        table = training_table(data, COSINE_SIMILARITY, both_orders=self.both_orders)
        model = build_encoder(self.base, context.seed, device_name(context.runtime))

        summary = fit(Job(model, COSINE_SIMILARITY.loss(model), table), self, context)
        save_model(model, context.output)
        return summary
