"""sentence-transformers' trainers, with an order of the data and checkpoints that make a resumption exact."""

import math
from collections.abc import Iterator, Sized
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer
from sentence_transformers.sentence_transformer.trainer import SentenceTransformerTrainer

WEIGHTS_FILE = "weights.pt"


class ShuffledBatches(DefaultBatchSampler):
    """Batches of row numbers whose order is a function of the seed and the epoch, and of nothing else."""

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self._num_rows).tolist()
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    def __len__(self) -> int:
        return math.ceil(self._num_rows / self.batch_size)

    @property
    def _num_rows(self) -> int:
        return len(cast("Sized", self.sampler))


class _BareCheckpoints(BaseTrainer):
    """Replaces the saving of whole model folders with cards and tokenizers by that of the weights alone."""

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        folder = Path(cast("str", output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.model.state_dict(), folder / WEIGHTS_FILE)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: torch.nn.Module | None = None
    ) -> None:
        load_weights(self.model if model is None else model, Path(resume_from_checkpoint))

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Do nothing: the artifact in the store says what the model is."""


class EncoderTrainer(_BareCheckpoints, SentenceTransformerTrainer):
    """Trains a SentenceTransformer."""


class PairScorerTrainer(_BareCheckpoints, CrossEncoderTrainer):
    """Trains a CrossEncoder."""


def load_weights(model: torch.nn.Module, checkpoint: Path) -> None:
    """Give the model the weights of a checkpoint folder."""
    weights = torch.load(checkpoint / WEIGHTS_FILE, map_location="cpu", weights_only=True)
    model.load_state_dict(weights)
