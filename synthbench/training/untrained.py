"""The baseline without training: the pretrained model as it is."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from synthbench.data.dataset import SyntheticDataset
from synthbench.errors import UserError
from synthbench.models.interfaces import ModelKind
from synthbench.models.pretrained import Pretrained
from synthbench.plugins import Trainer, TrainingContext, TrainingSummary


class Untrained(Trainer):
    """Hands on the pretrained encoder; takes no data."""

    version = 1
    model_kind = ModelKind.ENCODER
    is_seeded: ClassVar[bool] = False
    takes_data: ClassVar[bool] = False

    base: Pretrained = Field(description="the model that is evaluated")

    def revisions(self) -> dict[str, str]:
        """Return the content hash or commit of the base."""
        return self.base.fingerprint()

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Note the base in the output folder; raises UserError if there is data."""
        from synthbench.models.artifact import save_untrained

        num_records = sum(dataset.manifest.num_records for dataset in data)
        if num_records:
            raise UserError(
                f"trainer 'none' learns nothing, but got {num_records} records; leave `data` empty"
            )
        save_untrained(self.base, context.output)
        return TrainingSummary()
