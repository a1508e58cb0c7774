"""huggingface/transformers #43140: a checkpoint's rng_state.pth was unpickled whole, and ran what it held.

Here the trainer that resumes a training refuses such a file, with every allowed version of torch.
"""

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from synthbench.training.trainers import EncoderTrainer


class Bomb:
    """Writes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.marker,))


def test_loading_the_random_state_runs_no_pickled_code(tmp_path: Path) -> None:
    torch.save(Bomb(tmp_path / "marker"), tmp_path / "rng_state.pth")
    trainer = SimpleNamespace(args=SimpleNamespace(world_size=1, process_index=0))
    with pytest.raises(pickle.UnpicklingError):
        EncoderTrainer._load_rng_state(trainer, str(tmp_path))
    assert not (tmp_path / "marker").exists()
