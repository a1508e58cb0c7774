"""sentence-transformers' trainers, with a data order and checkpoints that make resumption exact."""

import math
import random
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from functools import cached_property
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from sentence_transformers.base.sampler import DefaultBatchSampler
from sentence_transformers.base.trainer import BaseTrainer
from sentence_transformers.cross_encoder.trainer import CrossEncoderTrainer
from sentence_transformers.multi_vector_encoder.trainer import MultiVectorEncoderTrainer
from sentence_transformers.sentence_transformer.trainer import SentenceTransformerTrainer
from sentence_transformers.sparse_encoder.trainer import SparseEncoderTrainer

from synthbench.training.settings import OF_RECORD

if TYPE_CHECKING:
    from datasets import Dataset


@contextmanager
def isolated(device: torch.device, seed: int | None = None) -> Iterator[None]:
    """Restore the global random generators after the block; with `seed`, seed them at its start."""
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
    """Batches of row numbers, whose order depends only on the seed and the epoch."""

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
    """Batches in which no text occurs in two records, as sentence-transformers' NO_DUPLICATES.

    A record waits for the next batch without its texts. An epoch has as many batches as in
    ShuffledBatches; records that fit into none are left to the next epoch, which has another order.
    """

    def __iter__(self) -> Iterator[list[int]]:
        waiting = _Waiting(self._order(), self._texts)
        for _ in range(len(self)):
            yield waiting.next_batch(self.batch_size)

    def num_left_out(self) -> int:
        """Return how many records fit into no batch of this epoch."""
        return self.num_rows - sum(map(len, self))

    def filled(self, batch: list[int], size: int) -> list[int]:
        """Return a batch filled up to `size` records with records of other batches.

        The batch stays smaller if all other records share a text with it.
        """
        filled, seen = list(batch), {text for row in batch for text in self._texts[row]}
        for row in self._order() if len(batch) < size else ():
            if seen.isdisjoint(self._texts[row]):
                filled.append(row)
                seen.update(self._texts[row])
                if len(filled) == size:
                    break
        return filled

    def _order(self) -> list[int]:
        return [row for batch in super().__iter__() for row in batch]

    @cached_property
    def _texts(self) -> list[tuple[str, ...]]:
        dataset = cast("Dataset", self.sampler)
        columns = [dataset[name] for name in dataset.column_names if name != OF_RECORD]
        # A missing negative is an empty text.
        return [tuple(filter(None, texts)) for texts in zip(*columns, strict=True)]


class _Waiting:
    """The records in no batch yet: those not tried, in order, and those that wait for a later batch.

    Records wait under the text that kept them out of a batch. Once a batch has a text, the records that wait
    under it are not inspected. So a text shared by thousands of records costs no more than a rare text.
    """

    def __init__(self, order: list[int], texts: list[tuple[str, ...]]) -> None:
        self._order = order
        self._texts = texts
        self._reached = 0
        self._by_text: dict[str, list[int]] = {}
        """Text -> a heap of positions in the order."""

    def next_batch(self, size: int) -> list[int]:
        """Return the next batch: the first records, `size` at most, without a common text."""
        batch: list[int] = []
        seen: set[str] = set()
        firsts = [(places[0], text) for text, places in self._by_text.items()]
        heapify(firsts)
        while len(batch) < size and (firsts or self._reached < len(self._order)):
            place = self._pop(firsts, seen)
            if place is None:
                continue
            texts = self._texts[self._order[place]]
            shared = next((text for text in texts if text in seen), None)
            if shared is None:
                batch.append(self._order[place])
                seen.update(texts)
            else:
                heappush(self._by_text.setdefault(shared, []), place)
        return batch

    def _pop(self, firsts: list[tuple[int, str]], seen: set[str]) -> int | None:
        """Remove and return the first position in the order; None if it waits under a text of the batch.

        `firsts` is a heap of (first waiting position, text). If a position is returned from it, the next one
        that waits under the same text is added.
        """
        if not firsts or (self._reached < len(self._order) and self._reached < firsts[0][0]):
            self._reached += 1
            return self._reached - 1
        place, text = heappop(firsts)
        if text in seen:
            return None
        places = self._by_text[text]
        heappop(places)
        if places:
            heappush(firsts, (places[0], text))
        else:
            del self._by_text[text]
        return place


class _BareCheckpoints(BaseTrainer):
    """Saves only weights in checkpoints, instead of model folders with cards and tokenizers."""

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        folder = Path(cast("str", output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.model.state_dict(), folder / WEIGHTS_FILE)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: torch.nn.Module | None = None
    ) -> None:
        load_weights(self.model if model is None else model, Path(resume_from_checkpoint))

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Do nothing: the artifact in the store describes the model."""


class EncoderTrainer(_BareCheckpoints, SentenceTransformerTrainer):
    """Trains a SentenceTransformer."""


class PairScorerTrainer(_BareCheckpoints, CrossEncoderTrainer):
    """Trains a CrossEncoder."""


class SparseTrainer(_BareCheckpoints, SparseEncoderTrainer):
    """Trains a SparseEncoder."""


class LateInteractionTrainer(_BareCheckpoints, MultiVectorEncoderTrainer):
    """Trains a MultiVectorEncoder."""


TRAINERS: dict[str, type[Any]] = {
    "SentenceTransformer": EncoderTrainer,
    "CrossEncoder": PairScorerTrainer,
    "SparseEncoder": SparseTrainer,
    "MultiVectorEncoder": LateInteractionTrainer,
}
"""A model's `model_type` in sentence-transformers -> its trainer."""


def load_weights(model: torch.nn.Module, checkpoint: Path) -> None:
    """Load the weights of a checkpoint folder into the model."""
    weights = torch.load(checkpoint / WEIGHTS_FILE, map_location="cpu", weights_only=True)
    model.load_state_dict(weights)
