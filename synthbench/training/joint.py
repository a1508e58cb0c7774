"""Joint training by several processes: each has a device and an equal share of every batch.

torch's DistributedDataParallel averages the gradients: sentence-transformers' trainers use it once the
processes have joined. `fit` and the losses ask this module for the process's rank.
"""

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import distributed
from torch.utils.data import BatchSampler

from synthbench.base.errors import UserError
from synthbench.training.trainers import DistinctBatches, ShuffledBatches

TIMEOUT = timedelta(days=7)
"""Timeout of the processes that wait while the first one scores dev."""

_T = TypeVar("_T")


@contextmanager
def joined(rank: int, num_processes: int, meeting: Path, backend: str) -> Iterator[None]:
    """Join the other processes through the file `meeting`; `backend`: "nccl" on NVIDIA GPUs, else "gloo"."""
    # accelerate needs the variables that torchrun sets, although the processes meet at a file.
    os.environ.update(
        dict.fromkeys(("RANK", "LOCAL_RANK"), str(rank)),
        **dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(num_processes)),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT="0",
    )
    distributed.init_process_group(
        backend, init_method=meeting.as_uri(), rank=rank, world_size=num_processes, timeout=TIMEOUT
    )
    try:
        yield
    finally:
        distributed.destroy_process_group()


def num_processes() -> int:
    """Return the number of processes in this training; 1 without others."""
    return distributed.get_world_size() if _is_joint() else 1


def is_first() -> bool:
    """Return whether this is the first process, which scores dev, writes checkpoints and saves the model."""
    return not _is_joint() or distributed.get_rank() == 0


def from_first_process(value: _T) -> _T:
    """Return the first process's value; the other processes' values are ignored."""
    if not _is_joint():
        return value
    values = [value]
    distributed.broadcast_object_list(values)
    return values[0]


def wait_for_all() -> None:
    """Wait until all processes call this."""
    if _is_joint():
        distributed.barrier()


def dropout_seed(seed: int) -> int:
    """Return this process's seed for dropout: records of one batch must not share a mask."""
    rank = distributed.get_rank() if _is_joint() else 0
    return int(np.random.SeedSequence([seed, rank]).generate_state(1)[0]) if rank else seed


def return_plain_outputs(model: torch.nn.Module) -> None:
    """In joint training, make the model return a plain dict.

    DistributedDataParallel can't find outputs in other mappings.
    """

    def plain(_: torch.nn.Module, inputs: object, output: Mapping[str, Any]) -> dict[str, Any]:
        return dict(output)

    if _is_joint():
        model.register_forward_hook(plain)


class SharedBatches(BatchSampler):
    """The batches of another sampler, each divided into one equal share per process.

    The shares follow one another, and accelerate deals them out to the processes in turn. A batch leaves out
    the remainder of its division by the number of processes.
    """

    # accelerate accepts shares of different sizes only from a sampler without a batch size.
    batch_size = None  # type: ignore[assignment]
    drop_last = False

    def __init__(self, batches: ShuffledBatches, num_shares: int) -> None:
        self.batches = batches
        self.num_shares = num_shares

    def set_epoch(self, epoch: int) -> None:
        """Use the order of this epoch."""
        self.batches.set_epoch(epoch)

    def __iter__(self) -> Iterator[list[int]]:
        for batch in islice(self.batches, self.num_steps):
            shared = self._filled(batch)
            size = len(shared) // self.num_shares
            yield from (shared[turn * size : (turn + 1) * size] for turn in range(self.num_shares))

    def _filled(self, batch: list[int]) -> list[int]:
        """Return a batch with at least one record per process.

        A smaller batch of `DistinctBatches` gets records of other batches. Raises UserError if it stays too
        small.
        """
        filled = batch
        if isinstance(self.batches, DistinctBatches):
            filled = self.batches.filled(batch, self.num_shares)
        if len(filled) < self.num_shares:
            raise UserError(
                f"devices: {self.num_shares} can't share a batch: only {len(filled)} of"
                f" {self.batches.num_rows} records have no text in common (no_duplicates); take fewer devices"
            )
        return filled

    def __len__(self) -> int:
        return self.num_steps * self.num_shares

    @property
    def num_steps(self) -> int:
        """The number of batches in an epoch; a last batch with fewer records than processes is dropped."""
        num_rows = self.batches.num_rows
        return math.ceil((num_rows - num_rows % self.num_shares) / self.batches.batch_size)


def shared(batches: type[ShuffledBatches], num_shares: int, dataset: Any, **options: Any) -> SharedBatches:  # noqa: ANN401
    """Return a data set's batches in shares; `options`: those of `batches`, with `batch_size` per share."""
    size = options.pop("batch_size") * num_shares
    return SharedBatches(batches(dataset, batch_size=size, **options), num_shares)


def _is_joint() -> bool:
    return distributed.is_available() and distributed.is_initialized()
