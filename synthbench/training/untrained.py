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
        """Record the base in the output folder; raises UserError if there is data."""
        from synthbench.models.artifact import save_untrained

        refuse_data("none", data)
        save_untrained(self.base, context.output)
        return TrainingSummary()


class ReadyCrossEncoder(Untrained):
    """Returns a pretrained cross-encoder unchanged; takes no data."""

    model_kind = ModelKind.PAIR_SCORER

    base: PairReader = Field(description="the cross-encoder to evaluate; its head must have one score")

    def pair_readers(self) -> Mapping[str, bool]:
        """Return {"base": True}: the base needs a trained head."""
        return {"base": True}

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Record the base in the output folder.

        Raises UserError if there is data, or the base has no head: its scores would be random.
        """
        from synthbench.models.artifact import checkpoint_kind, save_untrained

        refuse_data("none-cross-encoder", data)
        folder = Path(reference.resolve(self.base.model, self.base.revision))
        if checkpoint_kind(folder) is not ModelKind.PAIR_SCORER:
            raise UserError(no_pair_head(self.base.model))
        save_untrained(self.base, context.output, ModelKind.PAIR_SCORER)
        return TrainingSummary()


def refuse_data(trainer: str, data: Sequence[SyntheticDataset]) -> None:
    """Raise UserError if there are records for a trainer that learns nothing."""
    num_records = sum(dataset.manifest.num_records for dataset in data)
    if num_records:
        raise UserError(
            f"trainer '{trainer}' learns nothing, but got {num_records} records; leave `data` empty"
        )
