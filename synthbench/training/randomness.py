"""Random numbers that neither leak into the rest of the process nor depend on it."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


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
