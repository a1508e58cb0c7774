"""What a model under test can do, whatever it is made of."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class ModelKind(StrEnum):
    """What a trainer makes."""

    ENCODER = "encoder"
    PAIR_SCORER = "pair_scorer"


@runtime_checkable
class Encoder(Protocol):
    """Turns sentences into vectors, one by one."""

    def encode(self, sentences: Sequence[str]) -> "NDArray[np.float32]":
        """Return one row per sentence, shape (len(sentences), dimension)."""


@runtime_checkable
class PairScorer(Protocol):
    """Scores pairs of sentences: a cross-encoder, word overlap, or an encoder through cosine."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> "NDArray[np.float64]":
        """Return one score per pair, shape (len(pairs),); higher means more similar."""
