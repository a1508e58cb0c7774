"""The loss's data on each record besides texts: negatives, temperature, soft labels and mask."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from synthbench.base.errors import UserError
from synthbench.base.frozen import added_field
from synthbench.models.pretrained import Pretrained
from synthbench.training.settings import NUM_NEGATIVES, OF_RECORD, RECORD_TEMPERATURE

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from synthbench.base.runtime import Runtime

SCORES = "scores"
SoftLabels = Literal["positive", "all"]


class FalseNegatives(BaseModel):
    """Settings for masking candidates that a teacher finds equal in meaning to the anchor."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    teacher: Pretrained = Field(
        description="the teacher, an encoder; its vectors of all sentences stay in memory"
    )
    above: float = Field(
        0.95, gt=-1, lt=1, description="mask candidates whose cosine with the anchor exceeds this"
    )
    as_zero: bool = added_field(
        False,
        description="a masked candidate keeps the logit 0, as in MultiCSR's released code; false: it leaves "
        "the softmax",
    )


@dataclass(frozen=True)
class FalseNegativeMask:
    """A teacher's vectors of all texts, which decide the masked candidates (Wang et al. 2023, stage 3)."""

    above: float
    vectors: "Tensor"  # (texts, dimension), of length 1
    texts: "Tensor"  # (records, columns): the vector of each text
    as_zero: bool = False
    """Whether a masked candidate keeps the logit 0 instead of leaving the softmax."""

    def of(self, anchors: "Tensor", candidates: "Tensor", own: "Tensor") -> "Tensor":
        """Return True where a candidate is to be masked for an anchor; shape (anchors, columns x candidates).

        `anchors` and `candidates` are row numbers, `own` is each anchor's index among the candidates. An
        anchor's own positive is never masked.
        """
        import torch

        of_anchors = self.vectors[self.texts[anchors, 0]]
        columns = self.texts[candidates, 1:].T.flatten()
        masked = of_anchors @ self.vectors[columns].T > self.above
        masked[torch.arange(len(anchors)), own] = False
        return masked


@dataclass(frozen=True)
class TrainingRecords:
    """The loss's data on all training records, besides texts."""

    num_negatives: "Tensor"  # (records,), int64
    temperatures: "Tensor"  # (records,), float32; NaN: the loss's own
    scores: "Tensor | None" = None  # (records,), float32 in [0, 1]: the labels of the positives; None: 1
    spreads: bool = False
    """Whether 1 - score is spread over the other candidates."""
    mask: FalseNegativeMask | None = None
    is_binary: bool = False
    """Whether the loss is the binary cross-entropy of each candidate's softmax probability."""


def training_records(
    table: "pa.Table",
    soft_labels: SoftLabels | None,
    false_negatives: FalseNegatives | None,
    runtime: "Runtime",
    *,
    is_binary: bool = False,
) -> tuple["pa.Table", TrainingRecords | None]:
    """Return the texts of a training table with row numbers as labels, and the records' other data.

    Returns the unchanged table and None if the loss needs no other data. Raises UserError if a soft label is
    outside [0, 1].
    """
    import pyarrow as pa
    import torch

    given = [name for name in (NUM_NEGATIVES, RECORD_TEMPERATURE, SCORES) if name in table.column_names]
    if not given and false_negatives is None and not is_binary:
        return table, None
    texts, size = table.drop_columns(given), table.num_rows
    has_facts = NUM_NEGATIVES in given
    records = TrainingRecords(
        torch.tensor(table[NUM_NEGATIVES].to_numpy()) if has_facts else torch.ones(size, dtype=torch.int64),
        torch.tensor(table[RECORD_TEMPERATURE].to_numpy()) if has_facts else torch.full((size,), math.nan),
        None if soft_labels is None else _labels(table),
        soft_labels == "all",
        None if false_negatives is None else _mask(texts, false_negatives, runtime),
        is_binary,
    )
    return texts.append_column(OF_RECORD, pa.array(range(size), pa.int64())), records


def _labels(table: "pa.Table") -> "Tensor":
    """Return the scores of the positives, shape (records,)."""
    import torch

    scores = [each[0] for each in table[SCORES].to_pylist()]
    for score in scores:
        if not 0 <= score <= 1:
            raise UserError(
                f"soft_labels: a positive has the score {score:g}, and labels lie in [0, 1]; let the step"
                " `score-triplets` take a labeller that gives similarities, with `scale: own`"
            )
    return torch.tensor(scores, dtype=torch.float32)


def _mask(texts: "pa.Table", asked: FalseNegatives, runtime: "Runtime") -> FalseNegativeMask:
    # A sentence is its own positive.
    names = texts.column_names if texts.num_columns > 1 else texts.column_names * 2
    columns = [texts[name].to_pylist() for name in names]
    return FalseNegativeMask(asked.above, *_vectors(columns, asked.teacher, runtime), as_zero=asked.as_zero)


def _vectors(columns: list[list[str]], teacher: Pretrained, runtime: "Runtime") -> tuple["Tensor", "Tensor"]:
    """Return the unit vectors of the distinct texts, and each text's index, shape (records, columns)."""
    import torch
    from torch.nn.functional import normalize

    from synthbench.base.runtime import device_name
    from synthbench.models.building import build_encoder
    from synthbench.models.encoder import LengthBatchedEncoder

    numbers: dict[str, int] = {}
    indices = [[numbers.setdefault(text, len(numbers)) for text in column] for column in columns]
    encoder = LengthBatchedEncoder(build_encoder(teacher, 0, device_name(runtime)))
    vectors = torch.from_numpy(encoder.encode(list(numbers)))
    return normalize(vectors, dim=1), torch.tensor(indices).T
