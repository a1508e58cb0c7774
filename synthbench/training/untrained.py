"""Baselines without training: unchanged pretrained models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from synthbench.base.errors import UserError
from synthbench.data.dataset import SyntheticDataset
from synthbench.models import reference
from synthbench.models.interfaces import ModelKind
from synthbench.models.loading import no_pair_head
from synthbench.models.pretrained import PairReader, Pretrained
from synthbench.plugins.model_contracts import Trainer, TrainingContext, TrainingSummary


class Untrained(Trainer):
    """Returns the pretrained encoder unchanged; takes no data."""

    version = 1
    model_kind = ModelKind.ENCODER
    is_seeded: ClassVar[bool] = False
    takes_data: ClassVar[bool] = False

    base: Pretrained = Field(description="the model to evaluate")

    def revisions(self) -> dict[str, str]:
        """Return the content hash or commit of the base."""
        return self.base.fingerprint()

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Record the base in the output folder."""
        from synthbench.models.artifact import save_untrained

        save_untrained(self.base, context.output)
        return TrainingSummary()


class ReadyCrossEncoder(Untrained):
    """Returns a pretrained cross-encoder unchanged; takes no data."""

    model_kind = ModelKind.PAIR_SCORER

    base: PairReader = Field(description="the cross-encoder to evaluate; its head must have one score")

    def pair_readers(self) -> Mapping[str, bool]:
        """Return the base, which scores with its own head."""
        return {"base": True}

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Record the base in the output folder; without a head, whose scores would be random, UserError."""
        from synthbench.models.artifact import checkpoint_kind, save_untrained

        folder = Path(reference.resolve(self.base.model, self.base.revision))
        if checkpoint_kind(folder) is not ModelKind.PAIR_SCORER:
            raise UserError(no_pair_head(self.base.model))
        save_untrained(self.base, context.output, ModelKind.PAIR_SCORER)
        return TrainingSummary()
