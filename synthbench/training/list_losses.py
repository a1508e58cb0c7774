"""Losses of sentence-transformers' cross-encoders on graded lists, by name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.data.conversions import why_impossible
from synthbench.data.records import RecordKind
from synthbench.training.objectives import Objective

if TYPE_CHECKING:
    from torch import nn

ListLossName = Literal["lambda", "list-net", "list-mle", "p-list-mle", "rank-net", "adr-mse"]
CLASSES: Mapping[ListLossName, str] = {
    "lambda": "LambdaLoss",
    "list-net": "ListNetLoss",
    "list-mle": "ListMLELoss",
    "p-list-mle": "PListMLELoss",
    "rank-net": "RankNetLoss",
    "adr-mse": "ADRMSELoss",
}


class ListLoss(BaseModel):
    """A loss of sentence-transformers on the grades of a query's candidates, with its default options.

    lambda compares pairs of candidates, weighted by how much a swap changes nDCG; rank-net weights all pairs
    equally. list-net compares the softmaxes of grades and scores. list-mle maximises the likelihood of the
    order by grades; p-list-mle also gives the first ranks more weight. adr-mse is the squared difference of
    the ranks by grades and by scores; the first ranks count more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: ListLossName = Field(description="name of the loss")

    @property
    def class_name(self) -> str:
        """The loss's class name in sentence-transformers."""
        return CLASSES[self.name]

    def obstacle(self, kind: RecordKind) -> str:
        """Return why the loss can't learn from records of this kind, "" if it can."""
        if not why_impossible(kind, RecordKind.RANKING):
            return ""
        return (
            f"loss {self.name} learns from graded lists (ranking records), not from {kind} records; without"
            " `loss`, a cross-encoder learns from pairs"
        )

    def objective(self) -> Objective:
        """Return the objective, which takes lists of any length."""
        return Objective(RecordKind.RANKING, self._module, takes_several=True)

    def _module(self, model: Any) -> "nn.Module":  # noqa: ANN401 - a CrossEncoder
        from sentence_transformers.cross_encoder import losses

        loss: nn.Module = getattr(losses, self.class_name)(model)
        return loss
