"""Masked language modelling beside another loss, which keeps the transformer's knowledge of words."""

from collections.abc import Iterable
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint
from transformers import DataCollatorForLanguageModeling, PreTrainedModel

from synthbench.errors import UserError

MASKED_SHARE = 0.15
_UNMASKED = -100
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")

Features = Iterable[dict[str, Any]]


class WordHead(nn.Module):
    """Stands behind an encoder while it is trained: lets its vectors pass, and guesses masked words.

    `language_model` gets the encoder's own transformer in place of its own.
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
        """Return the features as they are."""
        return features

    def summed_loss(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """Return the cross-entropy summed over the masked tokens; inputs have the shape (rows, tokens)."""
        logits = self.language_model(**inputs).logits
        return cross_entropy(
            logits.flatten(0, 1).float(), targets.flatten(), ignore_index=_UNMASKED, reduction="sum"
        )

    def masked(self, features: dict[str, Any]) -> tuple[dict[str, Tensor], Tensor]:
        """Return inputs with masks in them and the tokens to be guessed, -100 for those that are not."""
        inputs = {name: features[name] for name in _INPUTS if name in features}
        ids = inputs["input_ids"]
        masked, targets = self.masking.torch_mask_tokens(ids.cpu().clone())
        return {**inputs, "input_ids": masked.to(ids.device)}, targets.to(ids.device)


class LossWithMasking(nn.Module):
    """A loss plus `weight` times the mean cross-entropy of the masked tokens of all columns.

    `chunk_size` rows at a time are held in memory; None holds all.
    """

    def __init__(self, loss: nn.Module, head: WordHead, weight: float, chunk_size: int | None) -> None:
        super().__init__()
        self.loss = loss
        self.head = head
        self.weight = weight
        self.chunk_size = chunk_size

    def forward(self, sentence_features: Features, labels: Tensor) -> Tensor:
        """Return the sum of both."""
        features = list(sentence_features)
        masked = [self.head.masked(column) for column in features]
        num_masked = sum(int((targets != _UNMASKED).sum()) for _, targets in masked)
        word_loss = torch.stack([self._summed(*column) for column in masked]).sum() / max(1, num_masked)
        contrast: Tensor = self.loss(features, labels)
        return contrast + self.weight * word_loss

    def _summed(self, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        if self.chunk_size is None:
            return self.head.summed_loss(inputs, targets)
        parts = []
        for begin in range(0, len(targets), self.chunk_size):
            rows = slice(begin, begin + self.chunk_size)
            chunk = {name: value[rows] for name, value in inputs.items()}
            parts.append(checkpoint(self.head.summed_loss, chunk, targets[rows], use_reentrant=False))
        return torch.stack(parts).sum()
