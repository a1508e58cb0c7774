"""Vectors of many sentences in a memory-mapped file."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.data.likeness import directions
from synthbench.models.interfaces import Encoder, encoded_batches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def unit_vectors(encoder: Encoder, texts: Sequence[str], file: Path) -> "NDArray[np.float32]":
    """Encode distinct texts and return their unit vectors, memory-mapped in `file`.

    Shape: (texts, dimension).
    """
    import numpy as np

    made: NDArray[np.float32] | None = None
    for rows, vectors in encoded_batches(encoder, texts, lambda _batch, _rows: True):
        if made is None:
            made = np.memmap(file, np.float32, "w+", shape=(len(texts), vectors.shape[1]))
        made[np.asarray(rows)] = directions(vectors)
    return np.empty((0, 1), np.float32) if made is None else made
