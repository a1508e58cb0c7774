"""What a teacher adds to the contrastive loss: soft labels, and a mask over false negatives."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.errors import UserError
from synthbench.models.pretrained import Pretrained
from synthbench.training.settings import OF_RECORD

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from synthbench.base.runtime import Runtime

SCORES = "scores"
SCORE, ROW = 2, 3
"""Positions of the positive's score and of the record's number among a record's facts."""
SoftLabels = Literal["positive", "all"]


class FalseNegatives(BaseModel):
    """Which candidates of a batch are no negatives, since a teacher holds them for the same."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    teacher: Pretrained = Field(
        description="the encoder whose cosines say so; its vectors of all sentences are kept in memory"
    )
    above: float = Field(
        0.95, gt=-1, lt=1, description="candidates whose cosine with the anchor is greater are masked"
    )


@dataclass(frozen=True)
class Teaching:
    """The teacher's part in the loss.

    `vectors` are the unit vectors of all texts, of shape (texts, dimension), and `texts` the text of each
    record's columns, of shape (records, columns); None: nothing is masked.
    """

    soft_labels: SoftLabels | None = None
    above: float = 1.0
    vectors: "Tensor | None" = None
    texts: "Tensor | None" = None

    @property
    def masks(self) -> bool:
        """Whether false negatives are masked."""
        return self.vectors is not None

    def false_negatives(self, anchors: "Tensor", candidates: "Tensor", own: "Tensor") -> "Tensor":
        """Return True where a candidate is no negative of an anchor (Wang et al. 2023, stage 3).

        `anchors` and `candidates` are numbers of records, `own` the candidates' row of each anchor; the shape
        is (anchors, columns x candidates). An anchor's own positive always stays.
        """
        import torch

        assert self.vectors is not None and self.texts is not None
        of_anchors = self.vectors[self.texts[anchors.cpu().long(), 0]]
        columns = self.texts[candidates.cpu().long(), 1:].T.flatten()
        masked = (of_anchors @ self.vectors[columns].T > self.above).to(anchors.device)
        masked[torch.arange(len(anchors), device=anchors.device), own] = False
        return masked


def teaching_of(
    table: "pa.Table",
    soft_labels: SoftLabels | None,
    false_negatives: FalseNegatives | None,
    runtime: "Runtime",
) -> tuple["pa.Table", Teaching | None]:
    """Return a training table with the facts that the teaching needs, and the teaching; None without one.

    Raises UserError if a score is no label in [0, 1].
    """
    if soft_labels is None and false_negatives is None:
        return table, None
    texts = [name for name in table.column_names if name not in (OF_RECORD, SCORES)]
    taught = _with_facts(table, texts, is_soft=soft_labels is not None)
    if false_negatives is None:
        return taught, Teaching(soft_labels)
    # A sentence is its own positive.
    columns = [table[name].to_pylist() for name in (texts if len(texts) > 1 else texts * 2)]
    vectors, indices = _vectors(columns, false_negatives.teacher, runtime)
    return taught, Teaching(soft_labels, false_negatives.above, vectors, indices)


def _with_facts(table: "pa.Table", texts: list[str], *, is_soft: bool) -> "pa.Table":
    """Return texts and facts: negatives, temperature, the positive's score, and the record's number."""
    import pyarrow as pa

    size = table.num_rows
    known = table[OF_RECORD].to_pylist() if OF_RECORD in table.column_names else [[1.0, math.nan]] * size
    scores = [each[0] for each in table[SCORES].to_pylist()] if is_soft else [math.nan] * size
    for score in scores if is_soft else ():
        if not 0 <= score <= 1:
            raise UserError(
                f"soft_labels: a positive has the score {score:g}, and labels lie in [0, 1]; let the step"
                " `score-triplets` take a labeller that gives similarities, with `scale: own`"
            )
    facts = [[*pair, score, row] for row, (pair, score) in enumerate(zip(known, scores, strict=True))]
    return table.select(texts).append_column(OF_RECORD, pa.array(facts, pa.list_(pa.float32())))


def _vectors(columns: list[list[str]], teacher: Pretrained, runtime: "Runtime") -> tuple["Tensor", "Tensor"]:
    """Return the unit vectors of the different texts, and the number of each record's text by column."""
    import torch
    from torch.nn.functional import normalize

    from synthbench.base.runtime import device_name
    from synthbench.models.encoder import LengthBatchedEncoder
    from synthbench.models.pretrained import build_encoder

    numbers: dict[str, int] = {}
    indices = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    encoder = LengthBatchedEncoder(build_encoder(teacher, 0, device_name(runtime)))
    vectors = torch.from_numpy(encoder.encode(list(numbers)))
    return normalize(vectors, dim=1), torch.tensor(indices).T
