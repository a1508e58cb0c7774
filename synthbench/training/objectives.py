"""Objectives: a loss and the kind of record that it learns from."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from synthbench.data.records import RecordKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


@dataclass(frozen=True)
class Objective:
    """What is minimised: `loss` makes the module of a model, `columns` are read in this order."""

    record_kind: RecordKind
    columns: tuple[str, ...]
    loss: "Callable[[Any], nn.Module]"


def _cosine_similarity_loss(model: Any) -> "nn.Module":  # noqa: ANN401 - a SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    return CosineSimilarityLoss(model)


def _binary_cross_entropy_loss(model: Any) -> "nn.Module":  # noqa: ANN401 - a CrossEncoder
    from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

    return BinaryCrossEntropyLoss(model)


CONTRASTIVE_COLUMNS = {
    RecordKind.TRIPLET: ("anchor", "positive", "negative"),
    RecordKind.PAIR: ("anchor", "positive"),
    RecordKind.SENTENCE: ("sentence",),
}


def contrastive(
    kind: RecordKind,
    temperature: float,
    hard_negative_weight: float = 0.0,
    chunk_size: int | None = None,
    mlm_weight: float = 0.0,
) -> Objective:
    """Return SimCSE's objective for records of this kind, with cached gradients if `chunk_size` is given.

    With an `mlm_weight` the model must end in a `WordHead`.
    """

    def loss(model: Any) -> "nn.Module":  # noqa: ANN401 - a SentenceTransformer
        from synthbench.training.contrastive import CachedContrastiveLoss, ContrastiveLoss
        from synthbench.training.masking import LossWithMasking

        contrast = (
            ContrastiveLoss(model, temperature, hard_negative_weight)
            if chunk_size is None
            else CachedContrastiveLoss(model, temperature, hard_negative_weight, chunk_size)
        )
        return LossWithMasking(contrast, model[-1], mlm_weight, chunk_size) if mlm_weight else contrast

    return Objective(kind, CONTRASTIVE_COLUMNS[kind], loss)


COSINE_SIMILARITY = Objective(
    RecordKind.SCORED_PAIR, ("sentence1", "sentence2", "score"), _cosine_similarity_loss
)
"""Mean squared difference of the cosine and the score (Reimers & Gurevych 2019, section 3)."""

BINARY_CROSS_ENTROPY = Objective(
    RecordKind.SCORED_PAIR, ("sentence1", "sentence2", "score"), _binary_cross_entropy_loss
)
"""Cross-entropy of the sigmoid of the one logit and the score (Thakur et al. 2021, section 4)."""
