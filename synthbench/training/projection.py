"""What SimCSE puts behind the transformer: a pooling and, behind it, a tanh layer and a head for words."""

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import PreTrainedModel

from synthbench.training.masking import WordHead
from synthbench.training.randomness import isolated

_INITIALIZER_RANGE = 0.02


class TrainingOnlyDense(Dense):
    """A layer that is there in training and lets everything pass otherwise."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - as the base class
        """Return the features, with the layer applied to the sentence vectors in training."""
        return super().forward(features) if self.training else features


def has_layers(model: SentenceTransformer) -> bool:
    """Say whether the model is a transformer, and not token embeddings alone."""
    return hasattr(model[0], "auto_model")


def with_pooling(model: SentenceTransformer, pooling: str) -> SentenceTransformer:
    """Return the model's transformer with this pooling behind it, and nothing else."""
    dimension = model[0].get_embedding_dimension()  # type: ignore[operator]
    return SentenceTransformer(modules=[model[0], Pooling(dimension, pooling)], device=str(model.device))


def set_dropout(model: SentenceTransformer, probability: float) -> None:
    """Give all dropout layers of the model's transformer this probability, in [0, 1)."""
    for layer in _dropout_layers(model):
        layer.p = probability


def has_dropout(model: SentenceTransformer) -> bool:
    """Say whether two passes of the model's transformer differ in training."""
    return any(layer.p > 0 for layer in _dropout_layers(model))


def _dropout_layers(model: SentenceTransformer) -> list[nn.Dropout]:
    return [layer for layer in model[0].modules() if isinstance(layer, nn.Dropout)]


def with_projection(model: SentenceTransformer, seed: int, *, training_only: bool) -> SentenceTransformer:
    """Return the model with a new tanh layer of its own size at the end.

    Its weights are drawn, governed by `seed`, as the base draws new layers; its biases are 0.
    """
    dimension = model.get_embedding_dimension()
    assert dimension is not None  # a pooling and token embeddings always know it
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    deviation = getattr(config, "initializer_range", _INITIALIZER_RANGE)
    with isolated(torch.device("cpu"), seed):
        kind = TrainingOnlyDense if training_only else Dense
        layer = kind(
            dimension,
            dimension,
            init_weight=torch.randn(dimension, dimension) * deviation,
            init_bias=torch.zeros(dimension),
        )
    return SentenceTransformer(modules=[*model, layer], device=str(model.device))


def with_word_head(model: SentenceTransformer, language_model: PreTrainedModel) -> SentenceTransformer:
    """Return the model with a head that guesses masked words; raises UserError if it has no mask."""
    head = WordHead(language_model, model).to(model.device)
    return SentenceTransformer(modules=[*model, head], device=str(model.device))


def as_used(model: SentenceTransformer) -> SentenceTransformer:
    """Return the model without the layers that are there in training only."""
    kept = [module for module in model if not isinstance(module, TrainingOnlyDense | WordHead)]
    return SentenceTransformer(modules=kept, device=str(model.device))
