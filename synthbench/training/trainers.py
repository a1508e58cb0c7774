"""sentence-transformers' trainers, with an order of the data and checkpoints that make a resumption exact."""

import math
import random
from collections import deque
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer
from sentence_transformers.sentence_transformer.trainer import SentenceTransformerTrainer

from synthbench.training.settings import OF_RECORD

if TYPE_CHECKING:
    from datasets import Dataset


@contextmanager
def isolated(device: torch.device, seed: int | None = None) -> Iterator[None]:
    """Put the global generators back afterwards to where they were; inside, begin at `seed` if given."""
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = [device] if device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=devices):
            if seed is not None:
                seed_everything(seed)
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, numpy and torch (all devices)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


WEIGHTS_FILE = "weights.pt"


class ShuffledBatches(DefaultBatchSampler):
    """Batches of row numbers whose order is a function of the seed and the epoch, and of nothing else."""

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng([self.seed, self.epoch]).permutation(self.num_rows).tolist()
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]

    def __len__(self) -> int:
        return math.ceil(self.num_rows / self.batch_size)

    @property
    def num_rows(self) -> int:
        """The number of records in an epoch."""
        return len(cast("Sized", self.sampler))


class DistinctBatches(ShuffledBatches):
    """The same without a text that is in two records of a batch.

    A record waits for the next batch without its texts. There are as many batches as without the condition:
    records that would come in further, smaller ones are left to the next epoch, which has another order.
    """

    def __iter__(self) -> Iterator[list[int]]:
        waiting = deque(row for batch in super().__iter__() for row in batch)
        for _ in range(len(self)):
            batch: list[int] = []
            seen: set[str] = set()
            passed: list[int] = []
            while waiting and len(batch) < self.batch_size:
                row = waiting.popleft()
                if seen.isdisjoint(self._texts[row]):
                    batch.append(row)
                    seen.update(self._texts[row])
                else:
                    passed.append(row)
            yield batch
            waiting.extendleft(reversed(passed))

    @cached_property
    def _texts(self) -> list[tuple[str, ...]]:
        dataset = cast("Dataset", self.sampler)
        columns = [dataset[name] for name in dataset.column_names if name != OF_RECORD]
        # A missing negative is an empty text.
        return [tuple(filter(None, texts)) for texts in zip(*columns, strict=True)]


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
