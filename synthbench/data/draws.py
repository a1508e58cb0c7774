"""Seeded random draws by hashing seed and record id: record order and PYTHONHASHSEED don't matter."""

import hashlib
from typing import TYPE_CHECKING

from synthbench.data.views import Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def digest(*parts: str | int) -> bytes:
    """Return a hash of the parts that is the same on every machine and Python version."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()


def shuffled(name: str, seed: int, records: Records) -> "NDArray[np.intp]":
    """Return row numbers, shape (len(records),), shuffled by the ids; equal ids keep their order.

    `name` names the drawing step, so that a sample and a split with the same seed choose different records.
    """
    import numpy as np

    hashes = bytearray()
    for (each,) in records.rows_of("id"):
        hashes += digest(name, seed, each)
    columns = np.frombuffer(hashes, ">u8").reshape(-1, 4).astype(np.uint64)
    return np.lexsort(columns.T[::-1])


def rounded(number: float) -> int:
    """Return a non-negative number rounded to a whole one, halves up."""
    return int(number + 0.5)
