"""SimCSE's layers after a transformer: pooling, a tanh layer, and a head for masked words."""

from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import DataCollatorForLanguageModeling, PreTrainedModel

from synthbench.base.errors import UserError
from synthbench.models.building import with_modules
from synthbench.training.settings import MASKED_SHARE
from synthbench.training.trainers import isolated

UNMASKED = -100
"""Target of tokens that are not masked."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_INITIALIZER_RANGE = 0.02


class TrainingOnlyDense(Dense):
    """A tanh layer that is the identity outside training."""

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:  # noqa: ANN401 - as the base class
        """Return the features, with the layer applied to the sentence vectors in training."""
        return super().forward(features) if self.training else features


class WordHead(nn.Module):
    """Predicts masked words in training, after an encoder; sentence vectors pass unchanged.

    `language_model` gets the encoder's transformer in place of its own.
    """

    def __init__(self, language_model: PreTrainedModel, encoder: SentenceTransformer) -> None:
        super().__init__()
        if encoder.tokenizer.mask_token is None:
            raise UserError("simcse: mlm_weight needs a base whose tokenizer has a mask token")
        setattr(language_model, language_model.base_model_prefix, encoder[0].auto_model)
        language_model.tie_weights()
        self.language_model = language_model
        self.masking = DataCollatorForLanguageModeling(encoder.tokenizer, mlm_probability=MASKED_SHARE)

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return the features unchanged."""
        return features

    def summed_loss(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """Return the cross-entropy summed over the masked tokens; inputs have the shape (rows, tokens)."""
        logits = self.language_model(**inputs).logits
        return cross_entropy(
            logits.flatten(0, 1).float(), targets.flatten(), ignore_index=UNMASKED, reduction="sum"
        )

    def masked(self, features: dict[str, Any]) -> tuple[dict[str, Tensor], Tensor]:
        """Return inputs with masked tokens, and targets: original ids, but UNMASKED for unmasked tokens."""
        inputs = {name: features[name] for name in _INPUTS if name in features}
        ids = inputs["input_ids"]
        masked, targets = self.masking.torch_mask_tokens(ids.cpu().clone())
        return {**inputs, "input_ids": masked.to(ids.device)}, targets.to(ids.device)


def has_layers(model: SentenceTransformer) -> bool:
    """Return whether the model has a transformer, not only token embeddings."""
    return hasattr(model[0], "auto_model")


def with_pooling(model: SentenceTransformer, pooling: str) -> SentenceTransformer:
    """Return the model's transformer with only this pooling."""
    dimension = model[0].get_embedding_dimension()  # type: ignore[operator]
    return with_modules(model, [model[0], Pooling(dimension, pooling)])


def dropout_layers(model: SentenceTransformer) -> list[nn.Dropout]:
    """Return the dropout layers of the model's transformer."""
    return [layer for layer in model[0].modules() if isinstance(layer, nn.Dropout)]


def with_projection(model: SentenceTransformer, seed: int, *, training_only: bool) -> SentenceTransformer:
    """Return the model with a new final tanh layer of the model's width (Gao et al. 2021, section 6.3).

    Its weights are normal, drawn with `seed`; their standard deviation is the base's `initializer_range`, or
    0.02. Its biases are 0.
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
    return with_modules(model, [*model, layer])


def with_word_head(model: SentenceTransformer, language_model: PreTrainedModel) -> SentenceTransformer:
    """Return the model with a head for masked words; raises UserError without a mask token."""
    head = WordHead(language_model, model).to(model.device)
    return with_modules(model, [*model, head])


def without_training_layers(model: SentenceTransformer) -> SentenceTransformer:
    """Return the model without its training-only layers."""
    kept = [module for module in model if not isinstance(module, TrainingOnlyDense | WordHead)]
    return with_modules(model, kept)
