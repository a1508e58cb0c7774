"""Baselines that train nothing: word overlap, or a constant score."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from synthbench.data.dataset import SyntheticDataset
from synthbench.models.interfaces import ModelKind
from synthbench.plugins.model_contracts import Trainer, TrainingContext, TrainingSummary
from synthbench.training.untrained import refuse_data


class Baseline(Trainer):
    """Produces a pair scorer that has learnt nothing; takes no data."""

    version = 1
    model_kind = ModelKind.PAIR_SCORER
    is_seeded: ClassVar[bool] = False
    takes_data: ClassVar[bool] = False

    scorer: Literal["jaccard", "jaccard-pairs", "constant"] = Field(
        description="jaccard: share of words in both sentences among the words in either; jaccard-pairs:"
        " the same, but in scripts without spaces, pairs of letters count as words; constant: the same score"
        " for every pair, so that the evaluator `pairs` measures the majority class"
    )

    def train(self, data: Sequence[SyntheticDataset], context: TrainingContext) -> TrainingSummary:
        """Record the scorer in the output folder; raises UserError if there is data."""
        from synthbench.models.artifact import save_baseline

        refuse_data("baseline", data)
        save_baseline(self.scorer, context.output)
        return TrainingSummary()
