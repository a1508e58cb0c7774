"""How a computation is carried out, as opposed to what it computes."""

from contextlib import AbstractContextManager
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

SEQUENCES = {"cpu": 192, "cuda": 2048}


class Runtime(BaseModel):
    """Settings that change speed and memory but never results; no part of any stage's identity."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    device: str = Field("auto", description="auto, cpu, cuda, cuda:1, mps")
    threads: int | None = Field(
        None, ge=1, description="CPU threads of one process; null: all cores divided by `--jobs`"
    )
    batch_tokens: int = Field(4096, ge=16, description="tokens in one inference batch")
    sequences: int | None = Field(
        None,
        ge=1,
        description="sequences (texts and their counter prompts) that a language model writes side by side;"
        f" null: {SEQUENCES['cpu']} on a CPU, {SEQUENCES['cuda']:,} on a GPU",
    )

    def num_sequences(self, device_type: str) -> int:
        """Return how many sequences a language model writes side by side on "cpu", "cuda" ..."""
        return self.sequences or SEQUENCES.get(device_type, SEQUENCES["cuda"])


class ProgressTask(Protocol):
    """One bar (on a terminal) or a line now and then (in a log)."""

    def advance(self, amount: int = 1) -> None:
        """Count `amount` more as done."""


class Progress(Protocol):
    """Where long work says how far it is."""

    def task(self, description: str, total: int) -> AbstractContextManager[ProgressTask]:
        """Open a task of `total` units, closed at the end of the `with` block."""

    def say(self, message: str) -> None:
        """Print one line for people."""
