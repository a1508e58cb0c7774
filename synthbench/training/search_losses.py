"""Losses of sparse and late-interaction encoders: sentence-transformers' counterparts of the dense ones."""

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from torch import nn

PREFIXES = {"sparse": "Sparse", "late-interaction": "MultiVector"}
"""Kind of encoder -> prefix of its losses' class names in sentence-transformers."""
COUNTERPARTS = ("multiple-negatives", "margin-mse", "kl-divergence")
"""The losses that all kinds of encoders have."""


class Sparsity(BaseModel):
    """SPLADE's regulariser, which makes vectors sparse: its weights for queries and passages.

    Each weight multiplies the sum over vocabulary words of the squared mean value in the batch's vectors
    (FLOPS, Paria et al. 2020, arXiv 2004.05665). The weights rise quadratically from 0 over the first third
    of the steps (lambda_q and lambda_d in Formal et al. 2021, arXiv 2109.10086, section 4).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    queries: float = Field(ge=0, le=1000, description="weight of the regulariser on queries")
    passages: float = Field(ge=0, le=1000, description="weight of the regulariser on passages")


def search_loss(name: str, model: Any, sparsity: Sparsity | None, **options: float) -> "nn.Module":  # noqa: ANN401
    """Return the loss for a sparse or late-interaction encoder; `name`: class name of the dense loss."""
    from sentence_transformers.multi_vector_encoder import losses as of_tokens
    from sentence_transformers.sparse_encoder import losses as of_words

    if model.model_type != "SparseEncoder":
        loss: nn.Module = getattr(of_tokens, PREFIXES["late-interaction"] + name)(model, **options)
        return loss
    loss = getattr(of_words, PREFIXES["sparse"] + name)(model, **options)
    if sparsity is None:
        return loss
    regularised: nn.Module = of_words.SpladeLoss(
        model,
        loss,
        document_regularizer_weight=sparsity.passages,
        query_regularizer_weight=sparsity.queries,
    )
    return regularised
